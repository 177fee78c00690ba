import AssentCore
import AssentTesting
import Crypto
import Testing

@testable import AssentEngine
@testable import AssentServer

/// Sign-ins that leave nothing behind, as an installation asks for them.
extension RegistrationDoor {
    /// What an app's file has that allows them.
    static let stateless = "\n        stateless: true"

    /// Ana's sign-in, by a key, or by none.
    func signInStateless(
        by key: ProofKey?, session: String? = nil, _ more: [(String, String)] = []
    ) async throws -> Answer {
        try await fixture.runProvedJourney(
            ServerFixture.service("Quick") + [("stateless", "true")] + more, session: session, by: key,
            answer: fixture.answers(of: "ana"))
    }

    /// The session of Ana's sign-in at an installation.
    func statelessSession(_ instance: Instance) async throws -> String {
        let answer = try await signInStateless(by: instance.key)
        #expect(answer.json["assent_kind"] == "stateless", "\(answer.text)")
        #expect(answer.json["cnf"] == ["jkt": .string(instance.key.thumbprint)])
        #expect(answer["Set-Cookie"] == nil)
        return try #require(answer.json["tokenId"]?.string, "\(answer.text)")
    }

    private static let verifier = String(repeating: "v", count: 43)

    /// Asks for a code for a client by a session that belongs to a key.
    func code(
        for client: String, session: String, by key: ProofKey, scope: String = "openid accounts offline_access"
    ) async throws -> Answer {
        let url = fixture.oauth("authorize")
        return try await fixture.send(
            "GET",
            url + "?"
                + ServerFixture.query([
                    ("response_type", "code"), ("client_id", client), ("state", "s"), ("scope", scope),
                    ("redirect_uri", "http://127.0.0.1/callback"), ("prompt", "none"),
                    ("code_challenge_method", "S256"),
                    ("code_challenge", Base64URL.encode(Array(SHA256.hash(data: Array(Self.verifier.utf8))))),
                ]), try await fixture.proved("GET", url, session: session, by: key))
    }

    /// An installation's tokens by its own session.
    func tokens(of instance: Instance, session: String) async throws -> Answer {
        let redirect = try await code(for: instance.id, session: session, by: instance.key)
        let url = fixture.oauth("access_token")
        return try await fixture.send(
            "POST", url, [KindCredentials.form, ("DPoP", try await proof("POST", url, by: instance.key))],
            text: ServerFixture.query(
                [
                    ("grant_type", "authorization_code"),
                    ("code", try #require(redirect.parameter("code"), "\(redirect.text)")),
                    ("client_id", instance.id), ("redirect_uri", "http://127.0.0.1/callback"),
                    ("code_verifier", Self.verifier),
                ] + (try await assertion(instance.id, by: instance.key))))
    }
}
