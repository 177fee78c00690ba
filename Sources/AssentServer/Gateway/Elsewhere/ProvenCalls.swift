import AssentCore
import AssentJOSE
import Foundation
import HTTPTypes

/// Calls to the engine with proofs of the gateway's own key (RFC 9449): its access tokens belong to that key, and are
/// useless to a thief.
struct ProvenCalls: HTTPTransport {
    private let base: any HTTPTransport
    private let prover: DPoPProver
    /// The path of the engine's address as the gateway calls it, and that address as the engine knows itself: proofs
    /// name the latter.
    private let path: String
    private let publicURL: String
    private let clock: any WallClock
    private let random: any RandomSource
    /// The newest nonces: of what takes tokens (`true`), and of the token endpoint.
    private let nonces = Locked<[Bool: String]>([:])

    private static let replyBytes = 64 << 10

    /// Calls with proofs of `key`.
    ///
    /// - Throws: `JOSEError` for a key that cannot prove.
    init(
        _ base: any HTTPTransport, key: any SigningKey, to engine: EngineSettings, clock: any WallClock,
        random: any RandomSource
    ) throws {
        self.base = base
        prover = try DPoPProver(key)
        path = String(engine.url.drop { $0 != ":" }.dropFirst(3).drop { $0 != "/" })
        publicURL = engine.publicURL
        self.clock = clock
        self.random = random
    }

    /// Sends a call; once more where the engine wants a nonce and gives one: it has done nothing then. The call's limit
    /// is that of both together.
    @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
        let began = clock.now
        let token = call.request.headerFields[.authorization].flatMap(Self.token)
        let hasToken = token != nil
        let used = nonces.withLock { $0[hasToken] }
        let reply = try await base.send(proven(call, token, nonce: used))
        guard let given = reply.response.headerFields.givenNonce, given != used else { return reply }
        nonces.withLock { $0[hasToken] = given }
        guard reply.status == (hasToken ? 401 : 400) else { return reply }
        var call = call
        if let total = call.limits.total {
            let left = total - .seconds(clock.now.timeIntervalSince(began))
            guard left > .zero else { return reply }
            call.limits.total = left
        }
        _ = try? await reply.body.collect(upTo: Self.replyBytes)
        return try await base.send(proven(call, token, nonce: given))
    }

    private func proven(_ call: HTTPCall, _ token: Secret?, nonce: String?) async throws -> HTTPCall {
        var call = call
        let target = call.request.path.map { String($0.dropFirst($0.hasPrefix(path) ? path.count : 0)) } ?? ""
        call.request.headerFields[.dpop] = try await prover.proof(
            method: call.request.method.rawValue, uri: publicURL + target, accessToken: token, nonce: nonce,
            clock: clock, random: random)
        if let token { call.request.headerFields[.authorization] = TokenScheme.dpop.field(token) }
        return call
    }

    /// The access token of a call; `nil` where the client authenticates in another way.
    private static func token(_ field: String) -> Secret? {
        let scheme = TokenScheme.bearer.rawValue + " "
        return field.hasPrefix(scheme) ? Secret(String(field.dropFirst(scheme.count))) : nil
    }
}

extension EngineSettings {
    /// The way to the engine for a client: with proofs where it has a key for them.
    ///
    /// - Throws: `JOSEError` for a key that cannot prove.
    func transport(
        of client: Client, over transport: any HTTPTransport, clock: any WallClock, random: any RandomSource
    ) throws -> any HTTPTransport {
        guard let key = client.proofKey else { return transport }
        return try ProvenCalls(transport, key: key, to: self, clock: clock, random: random)
    }
}
