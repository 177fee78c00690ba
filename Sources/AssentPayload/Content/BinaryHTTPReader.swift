package import HTTPTypes

/// Reads Binary HTTP (RFC 9292) of both lengths as it arrives. It keeps a head that is not complete, at most
/// ``headLimit`` bytes, and hands content on at once.
package struct BinaryHTTPReader: Sendable {
    /// The most bytes of control data and field lines.
    package static let headLimit = 65_536
    /// The most field lines.
    package static let fieldLimit = 256
    /// In how many pieces a head may come: each is read from the start.
    static let headPieceLimit = 64

    /// What is read. A head is referred to, since parts go through several arrays and a head has dozens of texts.
    package enum Part: Hashable, Sendable {
        indirect case request(HTTPRequest)
        indirect case response(HTTPResponse)
        case content([UInt8])
    }

    private enum Phase: Sendable {
        case head
        /// Known length: where the content's length is expected.
        case contentLength
        /// Known length: so many bytes are left.
        case content(left: UInt64)
        /// Streamed: where the next piece's length is expected.
        case pieceLength
        case piece(left: UInt64)
        case trailers
        case padding
    }

    private let kind: FrameHead.Kind
    private var phase = Phase.head
    private var isStreamed = false
    private var buffer: [UInt8] = []
    /// How many bytes of ``buffer`` were read. They are dropped once for each call, so that content in tiny pieces
    /// costs no copy of all that follows it.
    private var position = 0
    /// The bytes that were read before the padding.
    private var length = 0
    private var padding = 0
    private var headPieces = 0

    /// - Parameter kind: what is expected.
    package init(_ kind: FrameHead.Kind) { self.kind = kind }

    /// What `bytes` complete.
    ///
    /// - Throws: ``PayloadError/malformedContent(_:)``.
    package mutating func read(_ bytes: [UInt8]) throws(PayloadError) -> [Part] {
        buffer.join(bytes)
        var parts: [Part] = []
        while position < buffer.count, let part = try next() { parts += part }
        // A part may have the buffer's storage: that is let go of, and not copied to be emptied.
        if position == buffer.count { buffer = [] } else if position > 0 { buffer.removeFirst(position) }
        position = 0
        return parts
    }

    private var unread: ArraySlice<UInt8> { buffer[position...] }

    /// The message's end. Empty sections at the end may be left out (RFC 9292 §3.8).
    ///
    /// - Returns: a head that has no field section behind it.
    /// - Throws: ``PayloadError/malformedContent(_:)`` for a message that ends inside a part.
    package mutating func finish() throws(PayloadError) -> [Part] {
        let isComplete =
            switch phase {
            case .head, .piece: false
            case .contentLength, .pieceLength, .trailers, .padding: buffer.isEmpty
            case .content(let left): left == 0
            }
        if isComplete { return [] }
        guard case .head = phase else { throw .malformedContent("it ends inside a part") }
        var head = BinaryHTTPHead(buffer[...], expecting: kind)
        guard try head.read() == nil, head.endsBeforeFields else { throw .malformedContent("it ends inside its head") }
        // An empty field section, in either form.
        return try read([0])
    }

    /// One step; `nil` when bytes are missing.
    private mutating func next() throws(PayloadError) -> [Part]? {
        switch phase {
        case .head: try head()
        case .contentLength: try integer().map { left in advance(.content(left: left)) }
        case .pieceLength: try integer().map { left in advance(left == 0 ? .trailers : .piece(left: left)) }
        case .content(let left): content(left) { $0 == 0 ? .trailers : .content(left: $0) }
        case .piece(let left): content(left) { $0 == 0 ? .pieceLength : .piece(left: $0) }
        case .trailers: try trailers()
        case .padding: try pad()
        }
    }

    private mutating func advance(_ next: Phase) -> [Part] {
        phase = next
        return []
    }

    private mutating func integer() throws(PayloadError) -> UInt64? {
        var rest = unread
        guard let value = VariableInteger.read(&rest) else { return nil }
        consume(to: rest)
        return value
    }

    private mutating func content(_ left: UInt64, then next: (UInt64) -> Phase) -> [Part] {
        let count = min(Int(clamping: left), buffer.count - position)
        // What comes in the middle of a content is nothing else, and is handed on as it is.
        let piece = count == buffer.count ? buffer : Array(buffer[position..<position + count])
        length += count
        position += count
        phase = next(left - UInt64(count))
        return count == 0 ? [] : [.content(piece)]
    }

    private mutating func trailers() throws(PayloadError) -> [Part] {
        guard unread.first == 0 else { throw .malformedContent("it has trailers") }
        consume(to: unread.dropFirst())
        return advance(.padding)
    }

    private mutating func pad() throws(PayloadError) -> [Part]? {
        // All of them, since a loop without an early end takes many at once; and where they lie in memory, since a
        // slice checks the place of each.
        guard unread.withUnsafeBufferPointer({ $0.reduce(UInt8(0), |) }) == 0 else {
            throw .malformedContent("its padding is not zero")
        }
        padding += unread.count
        position = buffer.count
        guard padding <= Padding.limit(behind: length) else { throw .malformedContent("it has too much padding") }
        return nil
    }

    private mutating func consume(to rest: ArraySlice<UInt8>) {
        length += unread.count - rest.count
        position = buffer.count - rest.count
    }

    private mutating func head() throws(PayloadError) -> [Part]? {
        headPieces += 1
        guard headPieces <= Self.headPieceLimit else { throw .malformedContent("its head comes in too many pieces") }
        var reader = BinaryHTTPHead(unread, expecting: kind)
        let part = try reader.read()
        let size = part == nil ? unread.count : unread.count - reader.rest.count
        guard size <= Self.headLimit else { throw .malformedContent("its head is too large") }
        guard let part else { return nil }
        consume(to: reader.rest)
        return advance(reader.isStreamed ? .pieceLength : .contentLength) + [part]
    }
}
