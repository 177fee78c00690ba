import AssentCore
import HTTPTypes

extension ProviderClient {
    /// Posts a form to the token endpoint, with a proof where tokens are bound to a key.
    func post(_ form: FormItems, to url: String, _ key: ProofKey?) async throws -> ProviderExchange.Reply {
        guard let key else { return try await exchange.post(url, form: form) }
        return try await proofs.exchange(.init(method: .post, url: url), key: key) { proof in
            try await exchange.post(url, form: form, fields: [.dpop: proof])
        } read: { reply in
            (reply.fields, [400, 401].contains(reply.status) && reply.oauthError == "use_dpop_nonce")
        }
    }

    /// Reads what a session opens, with a proof where that belongs to a key.
    func get(_ url: String, _ fields: HTTPFields, _ session: Session) async throws -> ProviderExchange.Reply {
        guard let key = try await proofs.keys.key(of: session) else {
            return try await exchange.get(url, fields: fields)
        }
        let target = ProofMaker.Target(method: .get, url: url, token: session.token)
        return try await proofs.exchange(target, key: key) { proof in
            var proved = fields
            proved[.dpop] = proof
            return try await exchange.get(url, fields: proved)
        } read: { reply in
            let response = HTTPResponse(status: .init(code: reply.status), headerFields: reply.fields)
            return (reply.fields, ResourceRefusal(response) == .nonce)
        }
    }

    /// Reads what the access token opens, with a proof where it is bound to a key.
    func get(_ url: String, _ tokens: TokenSet) async throws -> ProviderExchange.Reply {
        guard let binding = tokens.key else {
            return try await exchange.get(
                url, fields: [.authorization: TokenScheme.bearer.field(tokens.accessToken)])
        }
        let target = ProofMaker.Target(method: .get, url: url, token: tokens.accessToken)
        return try await proofs.exchange(target, key: try await proofs.keys.key(of: binding)) { proof in
            var fields = HTTPFields()
            fields.setBound(tokens.accessToken, proof: proof)
            return try await exchange.get(url, fields: fields)
        } read: { reply in
            let response = HTTPResponse(status: .init(code: reply.status), headerFields: reply.fields)
            return (reply.fields, ResourceRefusal(response) == .nonce)
        }
    }
}
