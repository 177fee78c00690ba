import AssentCore
import AssentPayload
import HTTPTypes
import Hummingbird
import NIOCore

/// Seals the reply to one message.
struct SealedReply: Sendable {
    /// The media type of sealed messages.
    static let mediaType = "application/assent-pe"

    /// Up to this length a content that is known is sealed in one piece.
    static let wholeLimit = 65_536

    /// What belongs to a connection (RFC 9110 §7.6.1), in lower case.
    private static let connectionFields: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    /// What all sealed replies say of themselves.
    private static let fields: HTTPFields = [.contentType: mediaType, .cacheControl: "no-store"]

    private let sealer: FrameSealer
    private let running: RunningMessage

    init(_ sealer: FrameSealer, _ running: RunningMessage) { (self.sealer, self.running) = (sealer, running) }

    /// The reply that is sent in place of `response`; without the content where the request was `HEAD`.
    ///
    /// - Throws: why the content could not be had.
    func sealing(_ response: Response, toHead isHead: Bool) async throws -> Response {
        var head = response.head
        var isLast = false
        // Mostly there are none, and then the list is not copied.
        if head.headerFields.contains(where: Self.isOfConnection) {
            isLast = head.headerFields[.connection] == "close"
            head.headerFields.removeAll(where: Self.isOfConnection)
        }
        let length = isHead ? 0 : response.body.contentLength
        if let length, length <= Self.wholeLimit {
            let content = isHead ? [] : try await Self.content(of: response.body)
            var plaintext = BinaryHTTPWriter.response(head, content: content)
            Padding.pad(&plaintext)
            var sealer = sealer
            let sealed = try sealer.finish(with: plaintext)
            return Self.response(ResponseBody(byteBuffer: ByteBuffer(bytes: sealed)), isLast: isLast)
        }
        let (sealer, running, body) = (sealer, running, response.body)
        let isStreamed = length == nil
        let beginning = length.map { BinaryHTTPWriter.head(head, contentLength: $0) } ?? BinaryHTTPWriter.head(head)
        return Self.response(
            ResponseBody { writer in
                try await body.write(
                    SealingWriter(writer, sealer, beginning: beginning, length: length, isStreamed: isStreamed))
                // The session is in use until here.
                withExtendedLifetime(running) {}
            }, isLast: isLast)
    }

    private static func isOfConnection(_ field: HTTPField) -> Bool {
        connectionFields.contains(field.name.canonicalName)
    }

    /// A sealed reply; `isLast` says whether it is the last of its connection.
    private static func response(_ body: ResponseBody, isLast: Bool) -> Response {
        var fields = Self.fields
        if isLast { fields[.connection] = "close" }
        // Otherwise Hummingbird writes it, by finding out at run time what a number is.
        if let length = body.contentLength { fields[.contentLength] = String(length) }
        return Response(status: .ok, headers: fields, body: body)
    }

    private static func content(of body: ResponseBody) async throws -> [UInt8] {
        let bytes = Locked<[UInt8]>([])
        try await body.write(Collector(bytes: bytes))
        return bytes.withLock { $0 }
    }

    private struct Collector: ResponseBodyWriter {
        let bytes: Locked<[UInt8]>

        mutating func write(_ buffer: ByteBuffer) async throws { bytes.withLock { $0.join(Array(buffer: buffer)) } }

        consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
    }
}

/// A content that has another length than its head says.
private struct WrongLength: Error {}

/// Seals a content piece by piece. A stream's pieces are sent at once; those of a known length when a chunk is full, or
/// nothing was sent for a second: a slow service must not seem to be silent. The first one goes out with the head, and
/// what ends the content with the padding.
struct SealingWriter: ResponseBodyWriter {
    private static let patience = TimeAmount.seconds(1)
    private static let paddingPiece = 65_536

    private var base: any ResponseBodyWriter
    private var sealer: FrameSealer
    private var beginning: [UInt8]
    private var left: Int?
    private let isStreamed: Bool
    /// The bytes before the padding.
    private var count = 0
    /// When something was sent last.
    private var sentAt = NIODeadline.distantPast
    /// What was sent last of a content of known length. Its place is used again, once who sends it has let go of it.
    private var place = ByteBuffer()

    init(
        _ base: any ResponseBodyWriter, _ sealer: FrameSealer, beginning: [UInt8], length: Int?, isStreamed: Bool
    ) {
        (self.base, self.sealer, self.beginning) = (base, sealer, beginning)
        (left, self.isStreamed) = (length, isStreamed)
    }

    @concurrent mutating func write(_ buffer: ByteBuffer) async throws {
        let sealed = try buffer.withUnsafeReadableBytes { try seal($0) }
        if !sealed.isEmpty { try await base.write(contentsOf: sealed) }
    }

    /// The same for bytes in an array.
    @concurrent mutating func write(bytes: [UInt8]) async throws {
        let sealed = try bytes.withUnsafeBytes { try seal($0) }
        if !sealed.isEmpty { try await base.write(contentsOf: sealed) }
    }

    @concurrent consuming func finish(_ trailingHeaders: HTTPFields?) async throws {
        guard left ?? 0 == 0 else { throw WrongLength() }
        let end = beginning + (isStreamed ? BinaryHTTPWriter.end : BinaryHTTPWriter.knownEnd)
        let length = count + end.count
        var rest = try sealer.seal(end)
        // In pieces: behind a long content there may be megabytes.
        var padding = Padding.length(of: length) - length
        while padding > 0 {
            let piece = [UInt8](repeating: 0, count: min(padding, Self.paddingPiece))
            rest.join(try sealer.seal(piece))
            padding -= piece.count
            guard !rest.isEmpty, padding > 0 else { continue }
            try await base.write(ByteBuffer(bytes: rest))
            rest = []
        }
        rest.join(try sealer.finish())
        try await base.write(ByteBuffer(bytes: rest))
        try await base.finish(nil)
    }

    /// What can be sent once these bytes are there. They are sealed from where they lie, into what is sent: an array
    /// before and one behind would be two more copies of all bytes.
    private mutating func seal(_ content: UnsafeRawBufferPointer) throws -> [ByteBuffer] {
        if let left {
            guard content.count <= left else { throw WrongLength() }
            self.left = left - content.count
        }
        let now = NIODeadline.now()
        // The lengths of chunks are not sealed: one that ended with the content would tell how long that is.
        let isFlushed = isStreamed || left != 0 && now - sentAt >= Self.patience
        // The head goes out with the first piece.
        var before = beginning
        beginning = []
        if isStreamed { before += BinaryHTTPWriter.pieceHead(content.count) }
        let length = before.count + content.count
        count += length
        let sealedLength = sealer.sealedLength(adding: length, isFlushed: isFlushed)
        // A stream may wait for its next piece for minutes, and keeps no place.
        var sealed = isStreamed ? SealedPieces(sealedLength) : SealedPieces(sealedLength, in: &place)
        try before.withUnsafeBytes { bytes in try sealer.seal(bytes) { sealed.append($0) } }
        try sealer.seal(content) { sealed.append($0) }
        if isFlushed { try sealer.flush { sealed.append($0) } }
        guard let first = sealed.buffers.first else { return [] }
        if !isStreamed { place = first }
        sentAt = now
        return sealed.buffers
    }
}

/// Sealed bytes on their way out. Each buffer is a chunk of HTTP and records of TLS of its own, and may come to the
/// client as a piece of its own. A buffer is as large as the next power of two.
private struct SealedPieces {
    private let most: Int
    private(set) var buffers: [ByteBuffer] = []
    /// How many bytes are still to come.
    private var left: Int

    /// In new buffers of 64 KiB. One for a full chunk, which is a little longer, would be twice as large, and such a
    /// block is mapped anew each time.
    init(_ length: Int) { (left, most) = (length, 65_536) }

    /// In `place`, which is taken away, with room for a full chunk: in two buffers each chunk would have to be put
    /// together again.
    init(_ length: Int, in place: inout ByteBuffer) {
        (left, most) = (length, 131_072)
        guard length > 0 else { return }
        place.clear(minimumCapacity: min(length, most))
        buffers.append(place)
        place = ByteBuffer()
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes
        while !rest.isEmpty {
            if buffers.isEmpty || buffers[buffers.count - 1].readableBytes == most {
                buffers.append(ByteBufferAllocator().buffer(capacity: max(0, min(left, most))))
            }
            let last = buffers.count - 1
            let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(most - buffers[last].readableBytes))
            buffers[last].writeBytes(piece)
            left -= piece.count
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(piece.count))
        }
    }
}
