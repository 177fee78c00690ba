import AssentCore
import Foundation

extension ProviderClient {
    /// Gets a token of the client's own (RFC 6749 §4.4), bound to the key by which it authenticates.
    ///
    /// - Returns: the token, and the scopes that were granted.
    /// - Throws: ``TokenError``: `notRegistered` when the server has ended the registration, which is then forgotten;
    ///   `scopeRefused`; what the token endpoint says.
    func clientCredentials(
        _ ask: MemoryTokenLife.Ask
    ) async throws -> (grant: MemoryTokenLife.Grant, scopes: Set<String>) {
        let identity = ask.mayRegister ? try await client.identity() : try await client.renewingIdentity()
        guard let place = identity.key else {
            throw TokenError(
                .invalidConfiguration, "A client without a key has no token of its own.",
                suggestion: "Set registration in the configuration.")
        }
        let key = ProofKey(client: try await client.key(at: place), name: place.name)
        let asked = ask.scopes.sorted()
        var form = FormItems()
        form.append("grant_type", "client_credentials")
        form.append("client_id", identity.id)
        if !asked.isEmpty { form.append("scope", asked.joined(separator: " ")) }
        do {
            let reply = try await token(form, as: identity, key, try await metadata(), isNewGrant: true)
            let set = TokenSet(
                reply, idToken: nil, requestedScopes: asked, now: now, sessionFingerprint: nil, key: key.binding)
            let token = AccessToken(set.accessToken, binding: .init(key: key, proofs: proofs))
            let grant = MemoryTokenLife.Grant(
                token: token, scopes: ask.scopes, expiresAt: set.expiresAt, obtainedAt: set.obtainedAt ?? now)
            return (grant, Set(set.scopes))
        } catch let error as TokenError where error.isScopeRefusal {
            throw MemoryTokenLife.scopeRefused
        } catch let error as TokenError where error.oauthError == "invalid_client" {
            guard await client.isGone(identity) else { throw error }
            throw TokenError(.notRegistered, "The server has ended the registration of this installation.")
        }
    }
}
