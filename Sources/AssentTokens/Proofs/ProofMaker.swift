import AssentCore
import AssentJOSE
import HTTPTypes

/// Makes the proofs that go with requests, each for one sending.
struct ProofMaker: Sendable {
    let keys: ProofKeys
    let nonces = NonceMemory()
    let clock: any WallClock
    let random: any RandomSource

    /// What a proof is for.
    struct Target: Sendable {
        let method: HTTPRequest.Method
        /// The URL as it is sent; its query does not matter.
        let url: String
        /// Whose nonces count for it.
        let role: NonceMemory.Server.Role
        /// The token that goes with it; `nil` at the token endpoint.
        var token: Secret?

        /// Who gives the nonces; `nil` when the URL has no origin.
        var server: NonceMemory.Server? { (try? Origin(url)).map { NonceMemory.Server(origin: $0, role: role) } }
    }

    /// A proof with its own `jti`.
    ///
    /// - Throws: ``TokenError``: `unprovable` when the URL is not one that a proof can name, and what the key throws.
    func proof(for target: Target, nonce: String?, key: ProofKey) async throws -> String {
        do {
            return try await key.prover.proof(
                method: target.method.rawValue, uri: target.url, accessToken: target.token, nonce: nonce, clock: clock,
                random: random)
        } catch let error as JOSEError {
            throw TokenError(
                .unprovable, "No proof can be made for the request: \(error.detail)",
                suggestion: "Use a URL without user information and dot segments.")
        } catch let error as KeyProviderError {
            // The next look-up says whether it is gone for good.
            await keys.forget()
            throw key.failure(error)
        }
    }

    /// Sends a request with a proof, and once more with another proof when the server wants a nonce and gives one, or
    /// when a kept connection turned out to be stale, or no sealed reply came: the transport does not repeat what
    /// carries a proof.
    ///
    /// - Parameters:
    ///   - target: what is sent.
    ///   - key: signs.
    ///   - mayRepeat: whether the request can be sent a second time at all.
    ///   - isHarmless: whether it may be sent a second time although the first may have arrived.
    ///   - send: sends the request with this value of the field `DPoP`.
    ///   - read: the reply's fields, and whether it asks for a nonce.
    ///   - drain: reads what is left of a reply that is not returned.
    /// - Returns: the last reply.
    /// - Throws: what making a proof and `send` throw.
    func exchange<Reply>(
        _ target: Target, key: ProofKey, mayRepeat: Bool = true, isHarmless: Bool = false,
        send: (String) async throws -> Reply,
        read: (Reply) -> (fields: HTTPFields, wantsNonce: Bool), drain: (Reply) async -> Void = { _ in }
    ) async throws -> Reply {
        try await exchange(
            target, key: key, mayRepeat: mayRepeat, isHarmless: isHarmless,
            sendWithNonce: { proof, _ in try await send(proof) }, read: read, drain: drain)
    }

    /// The same for a request that says the proof's nonce itself; `nil` while the server has given none.
    func exchange<Reply>(
        _ target: Target, key: ProofKey, mayRepeat: Bool = true, isHarmless: Bool = false,
        sendWithNonce send: (_ proof: String, _ nonce: String?) async throws -> Reply,
        read: (Reply) -> (fields: HTTPFields, wantsNonce: Bool), drain: (Reply) async -> Void = { _ in }
    ) async throws -> Reply {
        let server = target.server
        var round = ProofRound(
            nonce: server.flatMap { nonces.newest(for: $0) }, mayRepeat: mayRepeat, isHarmless: isHarmless)
        while true {
            let proof = try await proof(for: target, nonce: round.nonce, key: key)
            let reply: Reply
            do {
                reply = try await send(proof, round.nonce)
            } catch {
                guard error.mayBeSentWithNewProof, round.hadNoReply() else { throw error }
                continue
            }
            let (fields, wantsNonce) = read(reply)
            let given = server.flatMap { nonces.take(from: fields, of: $0) }
            guard round.answered(wantsNonce: wantsNonce, given: given) else { return reply }
            await drain(reply)
        }
    }
}

extension Error {
    /// Whether a request went out on a kept connection that had ended, or no sealed reply came to it.
    fileprivate var mayBeSentWithNewProof: Bool {
        (self as? HTTPTransportError ?? (self as? TokenError)?.transportError)?.mayBeSentWithNewProof == true
    }
}

extension HTTPFields {
    /// Puts a token that is bound to a key, and the proof that the sender has that key, into a request (RFC 9449 §7.1).
    mutating func setBound(_ token: Secret, proof: String) {
        self[.authorization] = TokenScheme.dpop.field(token)
        self[.dpop] = proof
    }
}
