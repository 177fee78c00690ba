import AssentCore
import HTTPTypes

extension ProviderClient {
    /// Posts a form to the token endpoint, with a proof where tokens are bound to a key. Each sending has an assertion
    /// of its own.
    func post(
        _ form: FormItems, as identity: TokenClient, to url: String, _ key: ProofKey?
    ) async throws -> ProviderExchange.Reply {
        try await correctingClock(of: identity) {
            guard let key else {
                return try await exchange.post(url, form: try await client.authenticated(form, as: identity))
            }
            let target = ProofMaker.Target(method: .post, url: url, role: .authorizationServer)
            return try await proofs.exchange(target, key: key) { proof in
                let form = try await client.authenticated(form, as: identity)
                return try await exchange.post(url, form: form, fields: [.dpop: proof])
            } read: { reply in
                (reply.fields, [400, 401].contains(reply.status) && reply.oauthError == "use_dpop_nonce")
            }
        }
    }

    /// Sends a request with an assertion. Where the provider refuses the client, nothing has happened; when the time of
    /// its reply says that a wrong clock may be the reason, the request is sent once more with that time.
    func correctingClock(
        of identity: TokenClient, _ send: () async throws -> ProviderExchange.Reply
    ) async throws -> ProviderExchange.Reply {
        let used = await client.ahead
        let first = try await send()
        guard identity.key != nil, first.refusesClient,
            let tried = await client.correctClock(by: first.fields, since: used)
        else { return first }
        let second: ProviderExchange.Reply
        do {
            second = try await send()
        } catch {
            // Nobody has said that the time is right.
            await client.settleClock(tried, isTaken: false)
            throw error
        }
        await client.settleClock(tried, isTaken: !second.refusesClient && second.isVerdict)
        return second
    }

    /// The error for a reply that refuses; one that refuses the client's assertion says so.
    func refused(
        _ code: TokenError.Code, _ detail: String, suggestion: String? = nil, by reply: ProviderExchange.Reply,
        of identity: TokenClient
    ) async -> TokenError {
        let refusal = await client.refusal(reply.oauthError, of: identity) ?? TokenError.words(about: reply.assentError)
        return TokenError(
            code, refusal?.detail ?? detail, suggestion: refusal?.suggestion ?? suggestion, status: reply.status,
            oauthError: reply.oauthError
        ).saying(reply.assentError)
    }

    /// Reads what a session opens, with a proof where that belongs to a key.
    func get(_ url: String, _ fields: HTTPFields, _ session: Session) async throws -> ProviderExchange.Reply {
        guard let key = try await proofs.keys.key(of: session) else {
            return try await exchange.get(url, fields: fields)
        }
        let target = ProofMaker.Target(method: .get, url: url, role: .authorizationServer, token: session.token)
        return try await proofs.exchange(target, key: key, isHarmless: true) { proof in
            var proved = fields
            proved[.dpop] = proof
            return try await exchange.get(url, fields: proved)
        } read: { reply in
            (reply.fields, ResourceRefusal(reply.response) == .nonce)
        }
    }

    /// Reads what the access token opens, with a proof where it is bound to a key.
    func get(_ url: String, _ tokens: TokenSet) async throws -> ProviderExchange.Reply {
        guard let binding = tokens.key else {
            return try await exchange.get(
                url, fields: [.authorization: TokenScheme.bearer.field(tokens.accessToken)])
        }
        let target = ProofMaker.Target(
            method: .get, url: url, role: .authorizationServer, token: tokens.accessToken)
        let key = try await proofs.keys.key(of: binding)
        return try await proofs.exchange(target, key: key, isHarmless: true) { proof in
            var fields = HTTPFields()
            fields.setBound(tokens.accessToken, proof: proof)
            return try await exchange.get(url, fields: fields)
        } read: { reply in
            (reply.fields, ResourceRefusal(reply.response) == .nonce)
        }
    }
}

extension ProviderExchange.Reply {
    /// Whether it comes from somebody who has looked at the request: a busy server, or a proxy with a page of its own,
    /// has said nothing of what was signed.
    var isVerdict: Bool {
        (200..<300).contains(status) && !isPage || [400, 401].contains(status) && oauthError != nil
    }

    /// Whether the provider refuses the client's assertion, and says nothing more exact.
    fileprivate var refusesClient: Bool {
        [400, 401].contains(status) && oauthError == "invalid_client" && object?["assent_error"] == nil
    }
}
