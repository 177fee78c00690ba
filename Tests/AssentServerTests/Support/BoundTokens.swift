import AssentCore
import AssentTesting
import Crypto
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

/// Access tokens that belong to a key, and what clients send with them.
extension ServerFixture {
    /// The realm `alpha` of the fixtures' file. It is the same for all of them, and hundreds of tokens are asked for.
    private static let alpha: Result<RealmConfiguration?, any Error> = Result {
        try ServerConfiguration.parse(
            FixtureConfiguration.yaml(upstream: 1, refusing: 2), file: "/etc/assent.yaml"
        ).realms.first { $0.name == "/alpha" }
    }

    /// The provider of the realm `alpha`, as the server's own.
    private func provider() throws -> OAuthProvider {
        let realm = try #require(try Self.alpha.get())
        return try OAuthProvider(
            server.context, keys: ServerKeys(server.context),
            configuration: OAuthProviderConfiguration(
                realm: realm.name, issuer: published(oauth("").dropLast().description), clients: realm.clients,
                contexts: realm.contexts, scopeTexts: realm.scopeTexts))
    }

    /// An address of this fixture as clients know it: nodes behind a balancer have one for all.
    func published(_ url: String) -> String {
        let gateway = gateway("")
        if url.hasPrefix(gateway + "/"), let known = endpoints.gateway { return known + url.dropFirst(gateway.count) }
        let known = String(endpoints.server.dropLast("/am".count))
        return known + url.dropFirst(root("").count)
    }

    /// An access token of a session's user that belongs to a key.
    func boundToken(
        session: String, to key: ProofKey, scope: String = "openid profile accounts", client: String = "bank-app"
    ) async throws -> String {
        let verifier = SystemRandom().token()
        let challenge = Base64URL.encode(Array(SHA256.hash(data: Array(verifier.utf8))))
        let redirect = try await authorize(
            session: session, [("scope", scope), ("code_challenge", challenge), ("client_id", client)])
        let tokens = try await provider().tokens(
            try Self.parameters([
                ("grant_type", "authorization_code"), ("code", try #require(redirect.parameter("code"))),
                ("client_id", client), ("redirect_uri", "http://127.0.0.1/callback"), ("code_verifier", verifier),
            ]), keyThumbprint: key.thumbprint)
        #expect(tokens.tokenType == "DPoP")
        return tokens.accessToken.reveal()
    }

    /// An access token of the relying party `shop` that belongs to a key.
    func boundPartyToken(to key: ProofKey) async throws -> String {
        try await boundToken(ofClient: "shop", scope: "signing", to: key)
    }

    /// An access token of a client itself that belongs to a key.
    func boundToken(ofClient client: String, scope: String, to key: ProofKey) async throws -> String {
        let basic = Data("\(client):\(FixtureConfiguration.clientSecret)".utf8).base64EncodedString()
        let tokens = try await provider().tokens(
            try Self.parameters([("grant_type", "client_credentials"), ("scope", scope)]),
            authorization: "Basic \(basic)", keyThumbprint: key.thumbprint)
        return tokens.accessToken.reveal()
    }

    private static func parameters(_ items: [(String, String)]) throws -> OAuthParameters {
        var form = FormItems()
        for (name, value) in items { form.append(name, value) }
        return try OAuthParameters(form)
    }

    /// A nonce that the server, or the gateway, gives now.
    func nonce(of server: ProofServer) -> String { SenderProofs(self.server.context).nonce(of: server) }

    /// What a proof for a request to this fixture is about: with a nonce of the door, made now.
    func subject(_ method: String, _ url: String, token: String) -> ProofKey.Subject {
        let server: ProofServer = url.hasPrefix(gateway("") + "/") ? .gateway : .authorizationServer
        return ProofKey.Subject(
            method: method, url: published(url), token: token, nonce: nonce(of: server),
            issuedAt: Int64(clock.now.timeIntervalSince1970))
    }

    /// The fields of a request with a bound token and a right proof.
    func proved(
        _ method: String, _ url: String, token: String, by key: ProofKey
    ) async throws -> [(String, String)] {
        Self.dpop(token, try await key.proof(subject(method, url, token: token)))
    }

    /// The fields of a request with a bound token and these proofs.
    static func dpop(_ token: String, _ proofs: String...) -> [(String, String)] {
        [("Authorization", "DPoP \(token)")] + proofs.map { ("DPoP", $0) }
    }
}

extension Answer {
    /// The challenge that is about access tokens; `nil` without one. There is one field at most.
    var tokenChallenge: Challenge? {
        get throws {
            #expect(all("WWW-Authenticate").count <= 1)
            let challenges = try self["WWW-Authenticate"].map(Challenge.parse) ?? []
            return challenges.first { $0.isScheme("DPoP") || $0.isScheme("Bearer") }
        }
    }
}

extension OAuthProvider {
    /// The token endpoint, for a client that has yet to authenticate.
    func tokens(
        _ parameters: OAuthParameters, authorization: String? = nil, keyThumbprint: String? = nil
    ) async throws -> IssuedTokens {
        try await tokens(
            parameters, of: try await clients.client(of: parameters, authorization: authorization, at: .token),
            proof: keyThumbprint.map { TokenRequestProof(keyThumbprint: $0) }, claimingProof: {})
    }
}
