import AssentCore
import AssentEngine
import AssentPayload
import HTTPTypes
import Hummingbird
import Logging
import NIOCore

/// Payload encryption at one listener (docs/payload-encryption.md, "What a listener does"): opens sealed requests, has
/// them answered by the same handler as plain ones, which is told that they were sealed, and seals the replies.
struct SealedDoor: RequestHandler {
    /// What answers plain requests.
    let plain: any RequestHandler

    /// What answers requests that were sealed: the same, with ``/AssentEngine/Callers/isSealed``.
    let opened: any RequestHandler

    /// The listener's.
    let origin: Origin

    /// Whose nonces the proofs of devices may have.
    let server: ProofServer

    let handshakes: PayloadHandshakes
    let sessions: PayloadSessions

    let clock: any WallClock

    let logger: Logger

    static let handshakePath = ContentRules.root + "/1/handshake"
    static let messagePath = ContentRules.root + "/1/message"

    private static let safeMethods: Set<HTTPRequest.Method> = [.get, .head, .options, .trace]

    func respond(to request: Request, from client: ClientAddress) async throws -> Response {
        // By bytes, and without a path of its own: each plain request comes by here.
        let written = request.head.path ?? ""
        let target = written.utf8
        guard target.first != UInt8(ascii: "/") || target.starts(with: ContentRules.root.utf8) else {
            return try await plain.respond(to: request, from: client)
        }
        // As clients write it: no text is made of it to be compared.
        if request.method == .post, written.hasSameBytes(as: Self.messagePath) {
            return try await message(request, from: client)
        }
        let path = request.uri.path
        guard path == ContentRules.root || path.hasPrefix(ContentRules.root + "/") else {
            return try await plain.respond(to: request, from: client)
        }
        guard path == Self.handshakePath || path == Self.messagePath else { return .crest(404, "Not Found") }
        guard request.method == .post else {
            return .crest(405, "The method is not allowed.", headers: [.allow: "POST"])
        }
        return path == Self.handshakePath
            ? await handshake(request, from: client) : try await message(request, from: client)
    }

    private static func refused(_ refusal: PayloadRefusal) -> Response { .json(refusal.status, refusal.body) }

    // MARK: - Handshake

    private func handshake(_ request: Request, from client: ClientAddress) async -> Response {
        guard let body = try? await request.bytes(upTo: HandshakeRequest.sizeLimit) else {
            return Self.refused(.malformed)
        }
        let answer = await handshakes.answer(
            PayloadHandshakes.Call(
                body: body, proof: PresentedProof(request, origin: origin.description, server: server),
                origin: origin.description, address: client.limitKey))
        var response =
            switch answer.result {
            case .success(let reply): Response.json(200, bytes: reply.body)
            case .failure(let refusal): Self.refused(refusal)
            }
        response.give(nonce: answer.nonce)
        return response
    }

    // MARK: - Message

    private func message(_ request: Request, from client: ClientAddress) async throws -> Response {
        guard request.headers[values: .contentType] == [SealedReply.mediaType] else {
            return Self.refused(.malformed)
        }
        let isChunked = request.headers.contains(.transferEncoding)
        let length = isChunked ? nil : request.headers[.contentLength].flatMap(Int.init)
        do {
            let (beginning, content, sealed) = try await begin(request, length: length)
            switch beginning {
            case .refused(let refusal): return Self.refused(refusal)
            case .unacceptable(let refusal, let reply):
                return try await reply.sealing(.crest(refusal.rawValue, refusal.message), toHead: false)
            case .call(let inner, let hasContent, let head, let reply):
                // Also where a proof inside is spent: a copy that comes when the proof, or the token, is too old would
                // be refused in words after which the client sends anew what the first one has done.
                if !Self.safeMethods.contains(inner.method) { try await sessions.spendOnce(head) }
                // It may have ended since its message was claimed.
                guard let peer = sessions.peer(of: head) else { return Self.refused(.unknownSession) }
                let response = await SealedSession.$peer.withValue(peer) {
                    await answer(Self.plain(inner, hasContent ? content : nil), from: client)
                }
                // Who has no content to read cannot have met damage. To ask costs a turn of the event loop.
                if hasContent, let sealed, await sealed.isDamaged { return Self.ending }
                return try await reply.sealing(response, toHead: inner.method == .head)
            }
        } catch let refusal as PayloadRefusal {
            return Self.refused(refusal)
        } catch let error as CancellationError {
            throw error
        } catch {
            logger.error("a sealed request could not be answered", metadata: ["error": "\(type(of: error))"])
            return Self.refused(.busy)
        }
    }

    /// What a message has led to, its content, and what reads that; `nil` for one that is whole.
    private func begin(
        _ request: Request, length: Int?
    ) async throws -> (SealedRequest.Beginning, content: RequestBody, sealed: SealedRequest?) {
        if let length, length <= WholeSealedRequest.limit {
            let whole = try await WholeSealedRequest(request.body, at: origin, sessions: sessions)
            return (whole.beginning, RequestBody(buffer: ByteBuffer(bytes: whole.content)), nil)
        }
        let sealed = SealedRequest(
            request.body.makeAsyncIterator(), at: origin, sessions: sessions, length: length)
        return (try await sealed.begin(), RequestBody(sealed), sealed)
    }

    /// The upstream has not got a regular end, and the connection gets none either.
    private static var ending: Response {
        var response = refused(.malformed)
        response.headers[.connection] = "close"
        return response
    }

    private static let host = HTTPField.Name("Host")

    /// The request as a plain listener would have it; `content` is `nil` where it has none.
    private static func plain(_ request: HTTPRequest, _ content: RequestBody?) -> Request {
        var head = request
        if let host { head.headerFields[host] = nil }
        guard let content else { return Request(head: head, body: RequestBody(buffer: ByteBuffer())) }
        // So handlers know that there is one.
        if !head.headerFields.contains(.contentLength) { head.headerFields[.transferEncoding] = "chunked" }
        return Request(head: head, body: content)
    }

    private func answer(_ request: Request, from client: ClientAddress) async -> Response {
        do {
            var response = try await opened.respond(to: request, from: client)
            // Plain replies get it on their way out. A client whose clock is wrong learns the time from a refusal.
            if (400..<500).contains(response.status.code), !response.headers.contains(.date) {
                response.headers[.date] = DateField.text(of: clock.now)
            }
            return response
        } catch {
            logger.error("a request failed", metadata: ["error": "\(type(of: error))"])
            return .crest(500, "Internal Server Error")
        }
    }
}

extension ContentRefusal {
    fileprivate var message: String {
        switch self {
        case .badRequest: "The content of the sealed request is not acceptable."
        case .misdirected: "The request is for another origin."
        }
    }
}
