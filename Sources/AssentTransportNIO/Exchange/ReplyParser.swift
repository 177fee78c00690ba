import AssentCore
import HTTPTypes
import NIOCore

/// Reads one reply of HTTP/1.1 (RFC 9112) from bytes. It does no I/O and accepts less than a lenient parser does: lines
/// end in CRLF, a length appears once and in one form, nothing is folded.
struct ReplyParser {
    enum Step {
        /// More bytes are needed.
        case needsMore
        /// The final status line and header fields.
        case head(HTTPResponse)
        /// Some of the content.
        case content(ByteBuffer)
        /// The reply is complete.
        case end
    }

    struct Limits: Sendable {
        var headerBytes: Int
        var headerFields: Int
    }

    private enum State {
        case head
        case fixed(remaining: Int)
        case chunkSize
        case chunk(remaining: Int)
        case chunkEnd
        case trailer
        case untilClose
        case done
    }

    private let limits: Limits
    private let isHEAD: Bool
    private var state = State.head
    /// How far the search for the end of the head has come, and where the line begins that it is in.
    private var searched = 0
    private var lineStart = 0
    private var lines = 0
    private var interimReplies = 0
    private var trailerBytes = 0

    /// The content's length, where the reply says it.
    private(set) var declaredLength: Int?
    /// Whether the peer will take another request on this connection.
    private(set) var keepsAlive = false

    private static let maximumInterimReplies = 8
    private static let maximumChunkLine = 256

    init(limits: Limits, isHEAD: Bool) {
        self.limits = limits
        self.isHEAD = isHEAD
    }

    /// The next piece that `input` holds.
    mutating func next(_ input: inout ByteBuffer) throws(HTTPTransportError) -> Step {
        while true {
            switch state {
            case .head:
                guard let length = try findHeadEnd(input), let bytes = input.readBytes(length: length) else {
                    return .needsMore
                }
                let head = try ReplyHead(bytes, limits: limits)
                guard head.response.status.code >= 200 else {
                    try countInterim(head.response.status.code)
                    continue
                }
                try begin(head)
                return .head(head.response)
            case .fixed(let remaining):
                if remaining == 0 { return finish() }
                guard let slice = input.readSlice(length: min(remaining, input.readableBytes)),
                    slice.readableBytes > 0
                else { return .needsMore }
                state = .fixed(remaining: remaining - slice.readableBytes)
                return .content(slice)
            case .chunkSize:
                guard let line = try readLine(&input, limit: Self.maximumChunkLine) else { return .needsMore }
                let size = try Self.chunkSize(line)
                state = size == 0 ? .trailer : .chunk(remaining: size)
            case .chunk(let remaining):
                guard let slice = input.readSlice(length: min(remaining, input.readableBytes)),
                    slice.readableBytes > 0
                else { return .needsMore }
                let rest = remaining - slice.readableBytes
                state = rest == 0 ? .chunkEnd : .chunk(remaining: rest)
                return .content(slice)
            case .chunkEnd:
                guard let end = input.readBytes(length: 2) else { return .needsMore }
                guard end == [0x0d, 0x0a] else { throw Self.malformed("A chunk is longer than its declared size.") }
                state = .chunkSize
            case .trailer:
                guard let line = try readLine(&input, limit: limits.headerBytes) else { return .needsMore }
                if line.isEmpty { return finish() }
                trailerBytes += line.count + 2
                guard trailerBytes <= limits.headerBytes else {
                    throw HTTPTransportError(.headerTooLarge, "The trailer is too long.")
                }
                _ = try ReplyHead.field(line[...])
            case .untilClose:
                guard input.readableBytes > 0, let slice = input.readSlice(length: input.readableBytes) else {
                    return .needsMore
                }
                return .content(slice)
            case .done: return .end
            }
        }
    }

    /// The connection ended; `orderly` when the peer said so (close_notify), which a content without a length depends
    /// on. Returns normally when the reply is complete with that.
    mutating func endOfInput(orderly: Bool) throws(HTTPTransportError) {
        switch state {
        case .done: return
        case .untilClose where orderly: state = .done
        case .fixed(0): state = .done
        default: throw HTTPTransportError(.connectionClosed, "The connection ended before the reply was complete.")
        }
    }

    private mutating func finish() -> Step {
        state = .done
        return .end
    }

    private mutating func countInterim(_ code: Int) throws(HTTPTransportError) {
        // Nobody asked for another protocol.
        guard code != 101 else { throw Self.malformed("The server switches protocols, although it was not asked to.") }
        interimReplies += 1
        guard interimReplies <= Self.maximumInterimReplies else {
            throw Self.malformed("There are too many interim replies.")
        }
        searched = 0
        lineStart = 0
        lines = 0
    }

    private mutating func begin(_ head: ReplyHead) throws(HTTPTransportError) {
        keepsAlive = head.keepsAlive
        let code = head.response.status.code
        if isHEAD || code == 204 || code == 304 {
            state = .fixed(remaining: 0)
        } else if head.isChunked {
            state = .chunkSize
        } else if let length = head.contentLength {
            declaredLength = length
            state = .fixed(remaining: length)
        } else {
            keepsAlive = false
            state = .untilClose
        }
    }

    /// The number of bytes up to and with the empty line, once it is there.
    private mutating func findHeadEnd(_ input: ByteBuffer) throws(HTTPTransportError) -> Int? {
        let view = input.readableBytesView
        while let found = view[(view.startIndex + searched)...].firstIndex(of: 0x0a) {
            let position = found - view.startIndex
            guard position > lineStart, view[found - 1] == 0x0d else {
                throw Self.malformed("A line does not end in CRLF.")
            }
            let isEmptyLine = position == lineStart + 1
            searched = position + 1
            guard searched <= limits.headerBytes else { break }
            if isEmptyLine && lines > 0 { return searched }
            lines += 1
            guard lines <= limits.headerFields + 1 else {
                throw HTTPTransportError(
                    .headerTooLarge, "The reply has more than \(limits.headerFields) header fields.")
            }
            lineStart = searched
        }
        guard view.count <= limits.headerBytes, searched <= limits.headerBytes else {
            throw HTTPTransportError(.headerTooLarge, "The header has more than \(limits.headerBytes) bytes.")
        }
        searched = view.count
        return nil
    }

    /// A line without its CRLF.
    private func readLine(_ input: inout ByteBuffer, limit: Int) throws(HTTPTransportError) -> [UInt8]? {
        let view = input.readableBytesView
        guard let found = view.prefix(limit + 2).firstIndex(of: 0x0a) else {
            guard view.count <= limit else { throw Self.malformed("A line is too long.") }
            return nil
        }
        guard var line = input.readBytes(length: found - view.startIndex + 1), line.count >= 2 else {
            throw Self.malformed("A line does not end in CRLF.")
        }
        line.removeLast()
        guard line.removeLast() == 0x0d else { throw Self.malformed("A line does not end in CRLF.") }
        return line
    }

    /// RFC 9112 §7.1: hexadecimal digits, then perhaps extensions, which mean nothing here.
    private static func chunkSize(_ line: [UInt8]) throws(HTTPTransportError) -> Int {
        let digits = line.prefix { Hexadecimal.value($0) != nil }
        let rest = line[digits.endIndex...]
        guard (1...15).contains(digits.count), rest.isEmpty || rest.first == UInt8(ascii: ";"),
            rest.allSatisfy({ $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 })
        else { throw malformed("A chunk has no valid size.") }
        return digits.reduce(0) { $0 << 4 | (Hexadecimal.value($1) ?? 0) }
    }

    static func malformed(_ detail: String) -> HTTPTransportError { HTTPTransportError(.malformedReply, detail) }
}

private enum Hexadecimal {
    static func value(_ byte: UInt8) -> Int? {
        switch byte {
        case 0x30...0x39: Int(byte - 0x30)
        case 0x41...0x46: Int(byte - 0x41) + 10
        case 0x61...0x66: Int(byte - 0x61) + 10
        default: nil
        }
    }
}
