import AssentCore
import AssentJOSE
import AssentTesting
import Crypto
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

/// The names of tests in front of a colon are those of the modules of the OpenID conformance suite.
@Suite("Clients with a key, over HTTP")
struct ClientAssertionRouteTests {
    /// A server with the client `keyed`, which proves itself by `key`.
    private static func run(
        _ key: ProofKey, extra: String = "", _ body: (ServerFixture) async throws -> Void
    ) async throws {
        let fixture = try await ServerFixture(editing: { file(key, $0, extra: extra) })
        do {
            try await body(fixture)
        } catch {
            await fixture.stop()
            throw error
        }
        await fixture.stop()
    }

    /// The file of the fixture with one more client.
    static func file(_ key: ProofKey, _ text: String, extra: String = "") -> String {
        let set = JSONValue.object(["keys": [key.jwk.json]]).serialized()
        return text.replacing(
            "      reader:\n",
            with: """
                      keyed:
                        jwks: \(set)
                        redirectURIs: ["http://127.0.0.1/callback"]
                        scopes: [openid, accounts]
                        defaultScopes: [accounts]
                        idTokenAlgorithm: ES256
                        grantTypes: [authorization_code, refresh_token, client_credentials]\(extra)
                      reader:

                """, maxReplacements: 1)
    }

    /// What a form has with a new assertion of the client.
    static func assertion(
        _ fixture: ServerFixture, _ key: ProofKey, aud: String? = nil
    ) async throws -> [(String, String)] {
        try await key.assertion(
            of: "keyed", to: aud ?? fixture.published(String(fixture.oauth("").dropLast())),
            at: Int64(fixture.clock.now.timeIntervalSince1970))
    }

    private static func post(
        _ fixture: ServerFixture, _ path: String, _ items: [(String, String)], _ fields: [(String, String)] = []
    ) async throws -> Answer {
        try await fixture.send(
            "POST", fixture.oauth(path), [("Content-Type", "application/x-www-form-urlencoded")] + fields,
            text: ServerFixture.query(items))
    }

    /// What it takes to change a code of Ana's.
    private static func code(_ fixture: ServerFixture) async throws -> [(String, String)] {
        let verifier = SystemRandom().token()
        let challenge = Base64URL.encode(Array(SHA256.hash(data: Array(verifier.utf8))))
        let answer = try await fixture.authorize(
            session: try await fixture.session(),
            [("scope", "openid accounts"), ("code_challenge", challenge), ("client_id", "keyed")])
        return [
            ("grant_type", "authorization_code"), ("code", try #require(answer.parameter("code"))),
            ("redirect_uri", "http://127.0.0.1/callback"), ("code_verifier", verifier),
        ]
    }

    @Test("An assertion does at token, introspection and revocation, also with the endpoint's own address as aud")
    func endpoints() async throws {
        let key = try ProofKey()
        try await Self.run(key) { fixture in
            let tokens = try await Self.post(
                fixture, "access_token", try await Self.code(fixture) + Self.assertion(fixture, key))
            #expect(tokens.status == 200, "\(tokens.text)")
            let refresh = try #require(tokens.json["refresh_token"]?.string)
            for path in ["introspect", "token/revoke"] {
                for aud in [nil, "access_token", path].map({ $0.map { fixture.published(fixture.oauth($0)) } }) {
                    let answer = try await Self.post(
                        fixture, path,
                        [("token", path == "introspect" ? refresh : "unknown")]
                            + Self.assertion(fixture, key, aud: aud))
                    #expect(answer.status == 200, "\(path) \(aud ?? "") \(answer.text)")
                    if path == "introspect" { #expect(answer.json["active"] == true) }
                }
            }
            let elsewhere = try await Self.post(
                fixture, "access_token",
                [("grant_type", "client_credentials")]
                    + Self.assertion(fixture, key, aud: fixture.published(fixture.oauth("introspect"))))
            #expect(elsewhere.status == 400 && elsewhere.error == "invalid_client", "\(elsewhere.text)")
            let end = try await Self.post(
                fixture, "token/revoke", [("token", refresh)] + Self.assertion(fixture, key))
            #expect(end.status == 200)
            let gone = try await Self.post(
                fixture, "introspect", [("token", refresh)] + Self.assertion(fixture, key))
            #expect(gone.json["active"] == false)
        }
    }

    @Test("Used a second time, at whichever endpoint, an assertion is refused, and says no more than a wrong secret")
    func replay() async throws {
        let key = try ProofKey()
        try await Self.run(key) { fixture in
            let asked = [("grant_type", "client_credentials"), ("token", "x")]
            let assertion = try await Self.assertion(fixture, key)
            let first = try await Self.post(fixture, "access_token", asked + assertion)
            #expect(first.status == 200, "\(first.text)")
            for path in ["access_token", "introspect", "token/revoke"] {
                let again = try await Self.post(fixture, path, asked + assertion)
                #expect(again.status == (path == "introspect" ? 401 : 400) && again.error == "invalid_client")
                #expect(again.json["error_description"] == "Client authentication failed")
                #expect(again["Cache-Control"]?.contains("no-store") == true)
            }
            let twice = try await Self.post(fixture, "access_token", asked + assertion + assertion)
            #expect(twice.status == 400 && twice.error == "invalid_request")
            let basic = ("Authorization", "Basic " + Data("keyed:x".utf8).base64EncodedString())
            let both = try await Self.post(
                fixture, "access_token", asked + Self.assertion(fixture, key), [basic])
            #expect(both.status == 400 && both.error == "invalid_request")
        }
    }

    @Test("With a proof: use_dpop_nonce spends nothing, and the same assertion and code are accepted with the nonce")
    func withProof() async throws {
        let (key, proof) = (try ProofKey(), try ProofKey())
        try await Self.run(key, extra: "\n        dpopBound: true\n        dpop: {nonce: required}") { fixture in
            func made(_ nonce: String?) async throws -> (String, String) {
                var subject = fixture.subject("POST", fixture.oauth("access_token"), token: "")
                subject.nonce = nonce
                return ("DPoP", try await proof.proof(subject, claims: { $0["ath"] = nil }))
            }
            let form = try await Self.code(fixture) + Self.assertion(fixture, key)
            let asked = try await Self.post(fixture, "access_token", form, [try await made(nil)])
            #expect(asked.status == 400 && asked.error == "use_dpop_nonce", "\(asked.text)")
            let nonce = try #require(asked["DPoP-Nonce"])
            let tokens = try await Self.post(fixture, "access_token", form, [try await made(nonce)])
            #expect(tokens.status == 200 && tokens.json["token_type"] == "DPoP", "\(tokens.text)")
            let refresh = [
                ("grant_type", "refresh_token"),
                ("refresh_token", try #require(tokens.json["refresh_token"]?.string)),
            ]
            // A thief has the token and the old assertion, and even the key of the proof.
            let stolen = try await Self.post(
                fixture, "access_token", refresh + form.suffix(2), [try await made(nonce)])
            #expect(stolen.status == 400 && stolen.error == "invalid_client")
            let mine = try await Self.post(
                fixture, "access_token", refresh + Self.assertion(fixture, key), [try await made(nonce)])
            #expect(mine.status == 200 && mine.json["token_type"] == "DPoP", "\(mine.text)")
        }
    }

    @Test("A request whose assertion was used before does not spend its proof")
    func spentAssertion() async throws {
        let (key, proof) = (try ProofKey(), try ProofKey())
        try await Self.run(key) { fixture in
            let url = fixture.oauth("access_token")
            let grant = [("grant_type", "client_credentials")]
            let assertion = try await Self.assertion(fixture, key)
            let first = try await Self.post(
                fixture, "access_token", grant + assertion, [try await fixture.proof("POST", url, by: proof)])
            #expect(first.status == 200 && first.json["token_type"] == "DPoP", "\(first.text)")
            let next = try await fixture.proof("POST", url, by: proof)
            let again = try await Self.post(fixture, "access_token", grant + assertion, [next])
            #expect(again.status == 400 && again.error == "invalid_client", "\(again.text)")
            let right = try await Self.post(
                fixture, "access_token", grant + Self.assertion(fixture, key), [next])
            #expect(right.status == 200, "\(right.text)")
        }
    }

    @Test("The metadata offer what the client uses")
    func metadata() async throws {
        try await Self.run(try ProofKey()) { fixture in
            let document = try await fixture.send("GET", fixture.oauth(".well-known/openid-configuration")).json
            #expect(
                document["token_endpoint_auth_methods_supported"]?.strings
                    == ["none", "client_secret_post", "client_secret_basic", "private_key_jwt"])
            #expect(
                document["token_endpoint_auth_signing_alg_values_supported"]?.strings == ["ES256", "PS256", "EdDSA"])
        }
    }

    @Test(
        "Keys at an address of a host that the file names are fetched; without its name the client is told to come later"
    )
    func fetched() async throws {
        // The other server's published keys are the client's, so that its signing keys make the assertions.
        try await ServerFixture.run { other in
            let authorities = try #require(other.endpoints.authorityFile)
            for isNamed in [true, false] {
                let outbound =
                    isNamed
                    ? "outbound: {privateHosts: [localhost], authorities: \(authorities)}\n"
                    : "outbound: {authorities: \(authorities)}\n"
                let fixture = try await ServerFixture(editing: {
                    outbound
                        + $0.replacing(
                            "      reader:\n",
                            with: """
                                      keyed:
                                        jwksURI: \(other.oauth("connect/jwk_uri"))
                                        scopes: [accounts]
                                        defaultScopes: [accounts]
                                        grantTypes: [client_credentials]
                                      reader:

                                """, maxReplacements: 1)
                })
                let now = Int64(fixture.clock.now.timeIntervalSince1970)
                let assertion = try await ServerKeys(other.server.context).sign(
                    [
                        "iss": "keyed", "sub": "keyed", "jti": "1", "exp": .integer(now + 60),
                        "aud": .string(fixture.published(String(fixture.oauth("").dropLast()))),
                    ], type: "JWT", for: .idToken)
                let answer = try await Self.post(
                    fixture, "access_token",
                    [
                        ("grant_type", "client_credentials"), ("client_assertion", assertion.reveal()),
                        ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
                    ])
                #expect(answer.status == (isNamed ? 200 : 503), "\(answer.text)")
                if !isNamed { #expect(answer.error == "temporarily_unavailable") }
                await fixture.stop()
            }
        }
    }

    #if PostgreSQL && os(Linux)
    @Test("Of a hundred requests with one assertion, half at each of two nodes, one gets a token; ten more times")
    func race() async throws {
        let key = try ProofKey()
        try await TwoNodes.run(editingBoth: { Self.file(key, $0) }) { nodes in
            for round in 1...11 {
                let form = try await [("grant_type", "client_credentials")] + Self.assertion(nodes.first, key)
                let answers = try await nodes.race(round == 1 ? 100 : 20) { node, _ in
                    try await Self.post(node, "access_token", form)
                }
                #expect(answers.count { $0.status == 200 } == 1)
                #expect(answers.allSatisfy { $0.status == 200 || $0.error == "invalid_client" })
            }
        }
    }
    #endif
}
