import AssentCore
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

/// The client `keyed` of a server: it proves itself by one key, and its tokens belong to another one.
struct KeyedApp: Sendable {
    let fixture: ServerFixture
    let session: String
    /// What assertions are signed with.
    let key: ProofKey
    /// What proofs are signed with.
    let proofKey: ProofKey

    /// RFC 7636, appendix B.
    static let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    private static let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"

    /// Runs `body` with the client of a server of its own, at which Ana has signed in.
    static func run(_ body: (KeyedApp) async throws -> Void) async throws {
        let (key, proofKey) = (try ProofKey(), try ProofKey())
        let fixture = try await ServerFixture(editing: { ClientAssertionRouteTests.file(key, $0) })
        do {
            let session = try await fixture.session()
            try await body(KeyedApp(fixture: fixture, session: session, key: key, proofKey: proofKey))
        } catch {
            await fixture.stop()
            throw error
        }
        await fixture.stop()
    }

    /// Replaces items, or adds them; those without a value are left out.
    private static func changed(_ usual: [(String, String)], _ changes: [(String, String)]) -> [(String, String)] {
        usual.filter { item in !changes.contains { $0.0 == item.0 } } + changes.filter { !$0.1.isEmpty }
    }

    /// Asks for a code, with these parameters in place of the usual ones; an empty one is left out.
    func authorize(_ changes: [(String, String)] = []) async throws -> Answer {
        let own = [
            ("client_id", "keyed"), ("scope", "openid accounts"), ("nonce", "n-0S6"),
            ("code_challenge", Self.challenge),
        ]
        let names = Set(changes.map(\.0))
        return try await fixture.authorize(session: session, own.filter { !names.contains($0.0) } + changes)
    }

    /// A new code.
    func code(_ changes: [(String, String)] = []) async throws -> String {
        let answer = try await authorize(changes)
        return try #require(answer.parameter("code"), "\(answer.text)")
    }

    /// A request to the token endpoint, with a new assertion and a new proof.
    func token(_ form: [(String, String)]) async throws -> Answer {
        let assertion = try await ClientAssertionRouteTests.assertion(fixture, key)
        let proof = try await fixture.provedTokenRequest(by: proofKey)
        return try await fixture.send(
            "POST", fixture.oauth("access_token"), [("Content-Type", "application/x-www-form-urlencoded")] + proof,
            text: ServerFixture.query(form + assertion))
    }

    /// Changes a code for tokens, with these parameters in place of the usual ones; an empty one is left out.
    func exchange(_ code: String, _ changes: [(String, String)] = []) async throws -> Answer {
        try await token(
            Self.changed(
                [
                    ("grant_type", "authorization_code"), ("code", code),
                    ("redirect_uri", "http://127.0.0.1/callback"), ("code_verifier", Self.verifier),
                ], changes))
    }

    /// Asks who the user is, with a token and a new proof.
    func userInfo(_ token: String) async throws -> Answer {
        let url = fixture.oauth("userinfo")
        return try await fixture.send("GET", url, try await fixture.proved("GET", url, token: token, by: proofKey))
    }
}
