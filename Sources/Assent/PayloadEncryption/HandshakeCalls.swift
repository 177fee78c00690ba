import AssentCore
import AssentPayload
import HTTPTypes

/// Makes handshakes at one origin, in one role.
struct HandshakeCalls: Sendable {
    let settings: PayloadSettings
    let seams: PayloadSeams
    let network: any HTTPTransport
    private let prover: (any PayloadProver)?
    private let nonce = Locked<String?>(nil)

    /// Whether this task asks for what a handshake needs: its calls must not wait for that handshake.
    @TaskLocal static var isAsking = false

    private static let limits = HTTPLimits(
        read: .seconds(15), total: .seconds(30), replyBytes: HandshakeReply.sizeLimit)

    /// Without a `prover` the role is `app`.
    init(
        _ settings: PayloadSettings, prover: (any PayloadProver)? = nil, over network: any HTTPTransport,
        seams: PayloadSeams
    ) {
        (self.settings, self.prover, self.network, self.seams) = (settings, prover, network, seams)
    }

    var role: PayloadPeer.Role { prover == nil ? .app : .device }

    /// One handshake.
    ///
    /// - Returns: what has come of it, and the transport's error where there was no answer.
    func make(with key: PayloadKey) async -> (ClientSession.HandshakeResult, HTTPTransportError?) {
        do {
            let client = try await asking { try await prover?.clientID() }
            guard (client == nil) == (prover == nil) else { return (.refused(.badProof), nil) }
            let handshake = try ClientHandshake(settings.peer(client: client), serverKey: key, random: seams.random)
            let reply = try await network.send(try await call(handshake.request))
            nonce.withLock { $0 = reply.response.headerFields.givenNonce ?? $0 }
            return (
                result(reply.response, try await reply.body.collect(upTo: HandshakeReply.sizeLimit), handshake), nil
            )
        } catch {
            return (.noAnswer, error as? HTTPTransportError)
        }
    }

    /// What the server says of the registration.
    func registration() async -> ClientSession.Registration {
        await Self.$isAsking.withValue(true) { await prover?.registration() ?? .unreadable }
    }

    private func call(_ request: HandshakeRequest) async throws -> HTTPCall {
        let url = "\(settings.origin)\(ContentRules.root)/1/handshake"
        var fields: HTTPFields = [.contentType: "application/json", .accept: "application/json"]
        if let prover {
            let nonce = nonce.withLock { $0 }
            fields[.dpop] = try await asking {
                try await prover.proof(url: url, claim: request.claim, nonce: nonce)
            }
        }
        seams.observe?(PayloadTrace(kind: .handshake, origin: settings.origin, length: request.body.count))
        return try HTTPCall(
            .post, url: url, headerFields: fields, body: HTTPBody(request.body), limits: Self.limits)
    }

    private func result(
        _ response: HTTPResponse, _ body: [UInt8], _ handshake: ClientHandshake
    ) -> ClientSession.HandshakeResult {
        let status = response.status.code
        guard status != 200 else {
            guard let (secrets, expires) = try? handshake.finish(body) else { return .notConfirmed }
            return .agreed(secrets, expires: expires)
        }
        guard let refusal = PayloadRefusal(status: status, body: body) else { return .noAnswer }
        return .refused(refusal, retryAfter: response.headerFields[.retryAfter].flatMap { Int($0) })
    }

    private func asking<Result>(_ body: () async throws -> Result) async rethrows -> Result {
        try await Self.$isAsking.withValue(true, operation: body)
    }
}
