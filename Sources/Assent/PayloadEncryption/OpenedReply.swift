import AssentCore
import AssentPayload
import HTTPTypes

/// A reply whose first chunk has opened: it was sealed for the request.
struct OpenedReply: Sendable {
    /// What came is not a reply that was sealed for the request.
    struct Unsealed: Error {
        /// What the plain answer says; `nil` when it says nothing that is known.
        var refusal: PayloadRefusal?

        var error: HTTPTransportError {
            HTTPTransportError(
                .payloadEncryptionFailed,
                refusal.map { "The server does not take the sealed request: \($0.rawValue)." }
                    ?? "The answer is not sealed for the request. Somebody may be in between.")
        }
    }

    private let content: SealedContent

    /// Reads until the first chunk has opened.
    ///
    /// - Parameters:
    ///   - reply: what came.
    ///   - message: what the request was sealed with.
    ///   - request: the head of the request.
    ///   - call: the call that it answers.
    /// - Returns: the reply.
    /// - Throws: ``Unsealed``; what the transport throws.
    static func open(
        _ reply: HTTPReply, _ message: ClientSession.Message, to request: FrameHead, of call: HTTPCall
    ) async throws -> OpenedReply {
        guard SealedCall.isSealed(reply.response) else { throw await Unsealed(refusal: refusal(in: reply)) }
        let pull = reply.body.reading()
        do {
            var buffer: [UInt8] = []
            while buffer.count < FrameHead.length { try await more(&buffer, pull) }
            let head = try FrameHead(buffer.prefix(FrameHead.length))
            var opener = try message.opener(head, to: request)
            // No further than the first chunk: if the second one does not open, this is still a reply.
            while true {
                let rest = buffer.dropFirst(FrameHead.length)
                if let length = try opener.chunkLength(at: rest), rest.count >= length {
                    let first = try opener.open(rest.prefix(length))
                    let unread = Array(rest.dropFirst(length))
                    return OpenedReply(
                        content: SealedContent(
                            opener, plaintext: first, unread: unread, pull, call, received: buffer.count))
                }
                try await more(&buffer, pull)
            }
        } catch is PayloadError {
            throw Unsealed()
        }
    }

    /// The reply, with a content that is opened as it is read.
    ///
    /// - Parameter ended: is called with the bytes of the whole message when all of it has opened.
    /// - Returns: status, fields and content.
    /// - Throws: `HTTPTransportError` when what is sealed is not a reply.
    func handedOver(_ ended: @escaping @Sendable (Int) -> Void) async throws -> HTTPReply {
        let response = try await content.response(ended)
        let content = content
        return HTTPReply(
            response, body: HTTPBody(length: content.length, isReplayable: false) { { try await content.next() } })
    }

    private static func more(
        _ buffer: inout [UInt8], _ pull: @Sendable () async throws -> [UInt8]?
    ) async throws {
        guard let piece = try await pull() else { throw Unsealed() }
        buffer.join(piece)
    }

    private static func refusal(in reply: HTTPReply) async -> PayloadRefusal? {
        guard PayloadRefusal.allCases.contains(where: { $0.status == reply.status }),
            let body = try? await reply.body.collect(upTo: PayloadRefusal.sizeLimit)
        else { return nil }
        return PayloadRefusal(status: reply.status, body: body)
    }
}

/// The content of a sealed reply, opened piece by piece as its reader wants it.
private final class SealedContent: Sendable {
    private struct State {
        var opener: FrameOpener
        var reader = BinaryHTTPReader(.reply)
        var response: HTTPResponse?
        /// What has opened and was not read yet, in one piece: a server may send a content in pieces of one byte, and
        /// the first of many would be taken from a list in a time that grows with their number.
        var opened: [UInt8] = []
        /// The bytes of content, and those of the message.
        var count = 0
        var received: Int
        /// What the reply says of its content.
        var length: Int?
        var hasEnded = false
        var failure: HTTPTransportError?
        /// What stands behind the first chunk, until it is read.
        var unread: [UInt8]
        var ended: (@Sendable (Int) -> Void)?
    }

    private let state: Locked<State>
    private let pull: @Sendable () async throws -> [UInt8]?
    private let limit: Int
    private let isHEAD: Bool
    private let first: [UInt8]

    init(
        _ opener: FrameOpener, plaintext: [UInt8], unread: [UInt8],
        _ pull: @escaping @Sendable () async throws -> [UInt8]?, _ call: HTTPCall, received: Int
    ) {
        state = Locked(State(opener: opener, received: received, unread: unread))
        (self.pull, first) = (pull, plaintext)
        (limit, isHEAD) = (call.limits.replyBytes, call.request.method == .head)
    }

    /// The length that the reply says; `nil` when it says none.
    var length: Int? { state.withLock { $0.length } }

    /// Status and fields, which may need more than the first chunk.
    func response(_ ended: @escaping @Sendable (Int) -> Void) async throws -> HTTPResponse {
        state.withLock { $0.ended = ended }
        try step { state throws(PayloadError) in try state.reader.read(self.first) }
        while true {
            if let response = state.withLock({ $0.response }) { return response }
            guard !state.withLock({ $0.hasEnded }) else { throw Self.damaged }
            try await read()
        }
    }

    /// The next bytes of content; `nil` at the end.
    func next() async throws -> [UInt8]? {
        while true {
            let (opened, hasEnded, failure) = state.withLock { state in
                defer { state.opened = [] }
                return (state.opened, state.hasEnded, state.failure)
            }
            if !opened.isEmpty { return opened }
            if let failure { throw failure }
            if hasEnded { return nil }
            try await read()
        }
    }

    private func read() async throws {
        let unread = state.withLock { state in
            defer { state.unread = [] }
            return state.unread
        }
        let piece: [UInt8]?
        do {
            piece = unread.isEmpty ? try await pull() : unread
        } catch let error as HTTPTransportError {
            throw error.afterSending()
        }
        guard let piece else { return try end() }
        try step { state throws(PayloadError) in
            if unread.isEmpty { state.received += piece.count }
            return try state.reader.read(try state.opener.open(piece[...]))
        }
    }

    private func end() throws {
        try step { state throws(PayloadError) in
            try state.opener.finish()
            let parts = try state.reader.finish()
            state.hasEnded = true
            return parts
        }
        try state.withLock { state in
            guard let length = state.length, state.count != length else { return }
            state.failure = Self.damaged
            throw Self.damaged
        }
        let (ended, received) = state.withLock { ($0.ended, $0.received) }
        ended?(received)
    }

    /// What a piece completes. Nothing behind a damaged one is used.
    private func step(
        _ parts: (inout State) throws(PayloadError) -> [BinaryHTTPReader.Part]
    ) throws(HTTPTransportError) {
        let failure = state.withLock { state -> HTTPTransportError? in
            do throws(PayloadError) {
                for part in try parts(&state) {
                    switch part {
                    case .request: throw .malformedContent("it is not a reply")
                    case .response(let response):
                        state.response = response
                        state.length = response.contentLength(toHEAD: isHEAD)
                    case .content(let bytes):
                        guard bytes.count <= limit - state.count else {
                            state.failure = Self.tooLarge(limit)
                            return state.failure
                        }
                        state.count += bytes.count
                        state.opened.join(bytes)
                    }
                }
                if let length = state.length, length > limit { state.failure = Self.tooLarge(limit) }
            } catch {
                state.failure = Self.damaged
            }
            return state.failure
        }
        if let failure { throw failure }
    }

    private static let damaged = HTTPTransportError(
        .payloadEncryptionFailed, "The sealed reply is damaged or cut off: what came of it must not be used.",
        mayHaveHadEffect: true)

    private static func tooLarge(_ limit: Int) -> HTTPTransportError {
        HTTPTransportError(.bodyTooLarge, "The reply has more than \(limit) bytes.", mayHaveHadEffect: true)
    }
}
