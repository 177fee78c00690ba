package import Crypto

/// Opens the chunks of one message behind its head, in whatever pieces they arrive. It keeps at most one chunk that is
/// not complete.
package struct FrameOpener: Sendable {
    private var cipher: FrameCipher
    /// A chunk that is not complete, behind the zero bytes that its nonce begins with; empty between chunks.
    private var buffer: [UInt8] = []
    /// Whether something could not be opened: then nothing behind it is opened either.
    private var isDamaged = false

    /// - Parameters:
    ///   - head: the message's.
    ///   - key: that of the direction.
    ///   - bound: ``FrameHead/binding`` of the request that a reply answers; empty for a request.
    package init(_ head: FrameHead, key: SymmetricKey, bound: [UInt8]) {
        self.init(head, keys: MessageKeys(key), bound: bound)
    }

    /// The same for a direction that has more messages.
    package init(_ head: FrameHead, keys: MessageKeys, bound: [UInt8]) {
        cipher = FrameCipher(keys, head, bound: bound)
    }

    /// Whether the first chunk was opened: the message is one of the session's peer.
    package private(set) var hasBegun = false

    /// Whether the last chunk was opened.
    package var hasEnded: Bool { cipher.hasEnded }

    /// The plaintext that `piece` completes.
    ///
    /// - Throws: ``PayloadError``; nothing of the message may be used any further then.
    package mutating func open(_ piece: ArraySlice<UInt8>) throws(PayloadError) -> [UInt8] {
        // Not of any collection: other modules would call generic code, which takes longer.
        try piece.withUnsafeBufferPointer { (bytes: UnsafeBufferPointer<UInt8>) throws(PayloadError) -> [UInt8] in
            try open(UnsafeRawBufferPointer(bytes))
        }
    }

    /// The same for bytes that are in no array. What is in a whole chunk is opened where it lies.
    ///
    /// - Throws: ``PayloadError``; nothing of the message may be used any further then.
    package mutating func open(_ piece: UnsafeRawBufferPointer) throws(PayloadError) -> [UInt8] {
        // What is kept of a damaged chunk has no head any more: its nonce was written over that.
        guard !isDamaged else { throw .damagedFrame }
        isDamaged = true
        let plaintext = try opened(piece)
        isDamaged = false
        return plaintext
    }

    private mutating func opened(_ piece: UnsafeRawBufferPointer) throws(PayloadError) -> [UInt8] {
        var rest = piece
        var plaintext: [UInt8] = []
        // First the chunk that an earlier piece began: no more is added to it than it lacks.
        while !buffer.isEmpty, !rest.isEmpty {
            let wanted = try bufferedLength() ?? FrameCipher.chunkHeadLength
            let more = UnsafeRawBufferPointer(rebasing: rest.prefix(FrameCipher.nonceZeros + wanted - buffer.count))
            buffer.append(contentsOf: more)
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(more.count))
            guard let length = try bufferedLength(), buffer.count == FrameCipher.nonceZeros + length else { continue }
            plaintext.reserveCapacity(length + plaintextLength(in: rest))
            try openBuffer(into: &plaintext)
        }
        // Once, and not for each chunk: thousands may come that hold nothing, and all behind it is walked past.
        if plaintext.isEmpty { plaintext.reserveCapacity(plaintextLength(in: rest)) }
        while let length = try chunkLength(beginning: rest), rest.count >= length {
            try open(chunk: UnsafeRawBufferPointer(rebasing: rest.prefix(length)), into: &plaintext)
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(length))
        }
        keep(rest)
        return plaintext
    }

    /// How long the chunk is that begins here, with its head; `nil` while its head is not complete.
    ///
    /// - Throws: ``PayloadError/malformedFrame`` for a head that is not possible.
    package func chunkLength(at bytes: ArraySlice<UInt8>) throws(PayloadError) -> Int? {
        try chunkLength(beginning: bytes)
    }

    private func chunkLength(beginning bytes: some Collection<UInt8>) throws(PayloadError) -> Int? {
        guard let first = bytes.first else { return nil }
        guard !hasEnded, first <= 1 else { throw .malformedFrame }
        let head = bytes.prefix(FrameCipher.chunkHeadLength)
        guard head.count == FrameCipher.chunkHeadLength else { return nil }
        let length = head.dropFirst().reduce(0) { $0 << 8 | Int($1) }
        guard FrameCipher.tagLength...FrameCipher.chunkLength + FrameCipher.tagLength ~= length else {
            throw .malformedFrame
        }
        return FrameCipher.chunkHeadLength + length
    }

    /// The same of the chunk that an earlier piece began.
    private func bufferedLength() throws(PayloadError) -> Int? {
        try chunkLength(beginning: buffer.dropFirst(FrameCipher.nonceZeros))
    }

    /// Keeps the beginning of a chunk.
    private mutating func keep(_ rest: UnsafeRawBufferPointer) {
        guard !rest.isEmpty else { return }
        buffer.reserveCapacity(FrameCipher.nonceZeros + rest.count)
        buffer.append(contentsOf: repeatElement(0, count: FrameCipher.nonceZeros))
        buffer.append(contentsOf: rest)
    }

    /// How much the chunks hold that are whole here, so that their array has room for that and for no more: room for
    /// all that has come would be twice as much, since most pieces are about as long as a chunk and complete one.
    private func plaintextLength(in bytes: UnsafeRawBufferPointer) -> Int {
        var (sum, rest) = (0, bytes)
        while let length = try? chunkLength(beginning: rest), rest.count >= length {
            sum += length - FrameCipher.chunkHeadLength - FrameCipher.tagLength
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(length))
        }
        return sum
    }

    /// Opens the chunk that was put together. Its place is kept for the next one.
    private mutating func openBuffer(into plaintext: inout [UInt8]) throws(PayloadError) {
        try cipher.open(behindZeros: &buffer, into: &plaintext)
        hasBegun = true
        buffer.removeAll(keepingCapacity: true)
    }

    private mutating func open(
        chunk: UnsafeRawBufferPointer, into plaintext: inout [UInt8]
    ) throws(PayloadError) {
        let sealed = UnsafeRawBufferPointer(rebasing: chunk.dropFirst(FrameCipher.chunkHeadLength))
        try cipher.open(sealed, isLast: chunk.first == 1, into: &plaintext)
        hasBegun = true
    }

    /// The peer says that this was all.
    ///
    /// - Throws: ``PayloadError/damagedFrame`` when something could not be opened, `truncated` when the last chunk has
    ///   not come.
    package func finish() throws(PayloadError) {
        guard !isDamaged else { throw .damagedFrame }
        guard hasEnded else { throw .truncated }
    }
}
