import AssentCore
import HTTPTypes

extension ProviderClient {
    /// Posts a form to the token endpoint, with a proof where tokens are bound to a key.
    func post(_ form: FormItems, to url: String, _ key: ProofKey?) async throws -> ProviderExchange.Reply {
        guard let key else { return try await exchange.post(url, form: form) }
        let target = ProofMaker.Target(method: .post, url: url, role: .authorizationServer)
        return try await proofs.exchange(target, key: key) { proof in
            try await exchange.post(url, form: form, fields: [.dpop: proof])
        } read: { reply in
            (reply.fields, [400, 401].contains(reply.status) && reply.oauthError == "use_dpop_nonce")
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
