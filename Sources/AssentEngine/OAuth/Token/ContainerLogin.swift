import AssentCore
import AssentJOSE

/// Signs a user in whose device has signed a login (RFC 7523 §2.1): with their PIN, or as somebody who is only
/// remembered. Installations of apps alone may ask, each for the containers that were made in it.
struct ContainerLogin: Sendable {
    private let provider: OAuthProvider

    init(_ provider: OAuthProvider) { self.provider = provider }

    /// Gives the tokens. None of them is a refresh token: a thief of what an installation has stored must not become
    /// the user by it.
    ///
    /// - Throws: ``OAuthError``; `StoreError`.
    func tokens(
        _ parameters: OAuthParameters, by caller: AuthenticatedClient, _ proof: TokenRequestProof?,
        _ claim: @Sendable () async throws -> Void
    ) async throws -> IssuedTokens {
        let (client, configuration) = (caller.client, provider.configuration)
        guard let instance = client.instanceID, let app = configuration.app(ofInstance: instance),
            let logins = configuration.signing?.logins
        else {
            throw OAuthError(.unauthorizedClient, "Only an installation of an app signs users in by a device's login.")
        }
        guard let proof, let nonce = proof.nonce, client.ownKeyThumbprint == proof.keyThumbprint else {
            throw OAuthError(.invalidDPoPProof, "A login needs a proof by the installation's own key, with a nonce.")
        }
        let request = LoginRequest(
            assertion: try parameters.required("assertion"), instanceID: instance, audience: configuration.issuer,
            keyThumbprint: proof.keyThumbprint, nonce: nonce, allowsImplicit: app.implicitScopes != nil)
        let login = try await judge(request, by: logins)
        let asked = try parameters.scopes()
        let scopes: [String]
        if login.kind == .implicit {
            let most = app.implicitScopes ?? []
            scopes = try OAuthClient.allowed(asked ?? most, where: most.contains)
        } else {
            scopes = asked ?? client.defaultScopes
        }
        do {
            // What it gives ends with the key, which may have been replaced since it was proved.
            let key = ClientInstance.holding(key: proof.keyThumbprint, of: instance)
            return try await GrantWithoutRedirect(provider).tokens(
                for: login.signIn, as: login.kind, scopes: scopes, to: caller, keyThumbprint: proof.keyThumbprint,
                spending: [key] + login.spending, claimingProof: claim)
        } catch let error as OAuthError where error.code == .invalidGrant {
            // Something has changed since it was judged, and may say why.
            try await logins.noteUnspendable(
                try await judge(request, by: logins), because: error.reason, by: instance)
            throw error
        }
    }

    private func judge(_ request: LoginRequest, by logins: SigningLogins) async throws -> JudgedLogin {
        do {
            return try await logins.judge(request)
        } catch let refusal as LoginRefusal {
            try await logins.note(refusal, by: request.instanceID)
            throw OAuthError.invalidGrant(because: refusal.reason)
        }
    }
}

/// The proof of a key that a request to the token endpoint came with, after its check.
package struct TokenRequestProof: Sendable {
    /// The RFC 7638 thumbprint of its key.
    package let keyThumbprint: String

    /// The server's nonce in it, if it has one.
    package let nonce: String?

    /// A proof.
    package init(keyThumbprint: String, nonce: String? = nil) {
        self.keyThumbprint = keyThumbprint
        self.nonce = nonce
    }
}

extension OAuthClient {
    /// The thumbprint of an instance's one key; `nil` for a client of the file.
    fileprivate var ownKeyThumbprint: String? {
        guard instanceID != nil, case .keyed(let keys) = kind, case .listed(let set) = keys.source,
            set.keys.count == 1
        else { return nil }
        return set.keys.first?.thumbprint
    }
}
