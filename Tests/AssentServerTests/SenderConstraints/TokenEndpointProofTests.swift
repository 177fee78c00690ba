import AssentCore
import AssentJOSE
import AssentTesting
import Crypto
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

/// Proofs at the token endpoint, by the conformance suite's modules.
@Suite("Proofs at the token endpoint")
struct TokenEndpointProofTests {
    /// A code of Ana's for an app, and what it takes to change it.
    struct Code: Sendable {
        let value: String
        let verifier: String
        let client: String

        var form: [(String, String)] {
            [
                ("grant_type", "authorization_code"), ("code", value), ("client_id", client),
                ("redirect_uri", "http://127.0.0.1/callback"), ("code_verifier", verifier),
            ]
        }
    }

    private static func code(
        _ fixture: ServerFixture, client: String = "bank-app", _ parameters: [(String, String)] = []
    ) async throws -> Code {
        let verifier = SystemRandom().token()
        let challenge = Base64URL.encode(Array(SHA256.hash(data: Array(verifier.utf8))))
        let answer = try await fixture.authorize(
            session: try await fixture.session(),
            [("scope", "openid accounts"), ("code_challenge", challenge), ("client_id", client)] + parameters)
        return Code(value: try #require(answer.parameter("code")), verifier: verifier, client: client)
    }

    /// What a proof for the endpoint is about: with a nonce of the server, made now.
    private static func subject(_ fixture: ServerFixture) -> ProofKey.Subject {
        fixture.subject("POST", fixture.oauth("access_token"), token: "")
    }

    private static func proof(
        _ fixture: ServerFixture, _ key: ProofKey, header: (inout JSONObject) -> Void = { _ in },
        claims: (inout JSONObject) -> Void = { _ in }
    ) async throws -> String {
        try await key.proof(subject(fixture), header: header) { content in
            content["ath"] = nil
            claims(&content)
        }
    }

    private static func ask(
        _ fixture: ServerFixture, _ form: [(String, String)], _ proofs: String..., fields: [(String, String)] = [],
        url: String? = nil, name: String = "DPoP"
    ) async throws -> Answer {
        try await fixture.send(
            "POST", url ?? fixture.oauth("access_token"),
            [("Content-Type", "application/x-www-form-urlencoded")] + fields + proofs.map { (name, $0) },
            text: ServerFixture.query(form))
    }

    private static func bound(_ answer: Answer) throws -> String? {
        let token = try #require(answer.json["access_token"]?.string)
        return try JWTClaims(payload: UnverifiedJWS.parse(token).payload)["cnf"]?["jkt"]?.string
    }

    /// A proof that is wrong in one place, and the error that it is answered with; `nil` for one that must work.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let error: String?
        var header: @Sendable (inout JSONObject) -> Void = { _ in }
        var claims: @Sendable (inout JSONObject) -> Void = { _ in }

        static func header(_ name: String, _ change: @escaping @Sendable (inout JSONObject) -> Void) -> Case {
            Case(testDescription: name, error: "invalid_dpop_proof", header: change)
        }

        static func claims(
            _ name: String, _ error: String? = "invalid_dpop_proof",
            _ change: @escaping @Sendable (inout JSONObject) -> Void
        ) -> Case {
            Case(testDescription: name, error: error, claims: change)
        }

        static func htu(
            _ name: String, _ error: String? = "invalid_dpop_proof", _ change: @escaping @Sendable (String) -> String
        ) -> Case {
            claims(name, error) { $0["htu"] = .string(change($0["htu"]?.string ?? "")) }
        }

        /// `iat` at another time, without a nonce.
        static func iat(_ name: String, _ error: String?, _ seconds: Int64) -> Case {
            claims(name, error) {
                $0["iat"] = .integer(($0["iat"]?.integer ?? 0) + seconds)
                $0["nonce"] = nil
            }
        }
    }

    private static let cases: [Case] = [
        .header("without typ") { $0["typ"] = nil },
        .header("without jwk") { $0["jwk"] = nil },
        .header("wrong typ") { $0["typ"] = "JWT" },
        .header("none") { $0["alg"] = "none" },
        .header("crit") { $0["crit"] = ["exp"] },
        .header("a symmetric key") { $0["jwk"] = ["kty": "oct", "k": "AAAA"] },
        .header("longer than a proof may be") { $0["x"] = .string(String(repeating: "a", count: 6 << 10)) },
        .header("a member twice") { $0 = JSONObject($0.members + [.init(name: "typ", value: "dpop+jwt")]) },
        .claims("without jti") { $0["jti"] = nil },
        .claims("without htm") { $0["htm"] = nil },
        .claims("without htu") { $0["htu"] = nil },
        .claims("without iat") { $0["iat"] = nil },
        .claims("wrong htm") { $0["htm"] = "GET" },
        .htu("htu with query and fragment", nil) { $0 + "?a=1#part" },
        .htu("other htu") { $0 + "x" },
        .htu("htu with user information") { $0.replacing("https://", with: "https://u@") },
        .htu("htu with dots") { $0.replacing("access_token", with: "x/../access_token") },
        .htu("htu of another port") { $0.replacing(/:\d+/, with: ":1") },
        .htu("htu with an escaped slash") { $0.replacing("/access_token", with: "%2faccess_token") },
        .claims("iat an hour ahead, with a nonce", nil) { $0["iat"] = .integer(($0["iat"]?.integer ?? 0) + 3600) },
        .iat("iat an hour ahead", "use_dpop_nonce", 3600),
        .iat("iat an hour ago", "use_dpop_nonce", -3600),
        .iat("ensure-dpopproof-with-iat-10seconds-before-succeeds", nil, -10),
        .iat("ensure-dpopproof-with-iat-10seconds-after-succeeds", nil, 10),
        .claims("check-dpop-proof-nbf-exp", nil) {
            $0["exp"] = 1
            $0["nbf"] = 4_000_000_000
        },
        .claims("the nonce of nobody", "use_dpop_nonce") { $0["nonce"] = "AAAA" },
    ]

    @Test("dpop-negative-tests: a refused proof spends nothing of the code, and a right one is accepted after it")
    func refused() async throws {
        try await ServerFixture.run { fixture in
            // What was proved before the start is not known: afterwards a proof needs no nonce.
            fixture.clock.advance(by: 200)
            let key = try ProofKey()
            for wrong in Self.cases {
                let code = try await Self.code(fixture)
                let answer = try await Self.ask(
                    fixture, code.form, try await Self.proof(fixture, key, header: wrong.header, claims: wrong.claims))
                guard let error = wrong.error else {
                    #expect(answer.status == 200, "\(wrong.testDescription): \(answer.text)")
                    #expect(try Self.bound(answer) == key.thumbprint)
                    continue
                }
                #expect(answer.status == 400 && answer.error == error, "\(wrong.testDescription): \(answer.text)")
                #expect(answer.all("DPoP-Nonce").count == (error == "use_dpop_nonce" ? 1 : 0))
                #expect(answer["WWW-Authenticate"] == nil)
                let right = try await Self.ask(fixture, code.form, try await Self.proof(fixture, key))
                #expect(right.status == 200, "\(wrong.testDescription): \(right.text)")
            }
        }
    }

    @Test("dpop-negative-tests: two fields, another algorithm, a changed signature, a proof used before")
    func further() async throws {
        try await ServerFixture.run { fixture in
            let key = try ProofKey()
            let code = try await Self.code(fixture)
            let two = try await Self.ask(
                fixture, code.form, try await Self.proof(fixture, key), try await Self.proof(fixture, key))
            #expect(two.status == 400 && two.error == "invalid_dpop_proof")
            let rsa = try await Self.ask(fixture, code.form, try await Self.proof(fixture, try ProofKey(.rs256)))
            #expect(rsa.status == 400 && rsa.error == "invalid_dpop_proof")
            var parts = try await Self.proof(fixture, key).split(separator: ".").map(String.init)
            var signature = try #require(Base64URL.decode(parts[2]))
            signature[9] ^= 1
            parts[2] = Base64URL.encode(signature)
            let changed = try await Self.ask(fixture, code.form, parts.joined(separator: "."))
            #expect(changed.status == 400 && changed.error == "invalid_dpop_proof")

            let proof = try await Self.proof(fixture, key)
            let first = try await Self.ask(fixture, code.form, proof, name: "DPOP")
            #expect(first.status == 200 && first.json["token_type"]?.string == "DPoP", "\(first.text)")
            let refresh = try #require(first.json["refresh_token"]?.string)
            let form = ServerFixture.refreshForm(refresh, attempt: nil)
            let again = try await Self.ask(fixture, form, proof)
            #expect(again.status == 400 && again.error == "invalid_dpop_proof")
            #expect(try await Self.ask(fixture, form, try await Self.proof(fixture, key)).status == 200)
        }
    }

    @Test("A proof beside a code or a refresh token that nobody has given is not remembered")
    func madeUp() async throws {
        try await ServerFixture.run { fixture in
            let key = try ProofKey()
            let code = try await Self.code(fixture)
            let proof = try await Self.proof(fixture, key)
            let forms = [
                Code(value: "made-up", verifier: code.verifier, client: code.client).form,
                ServerFixture.refreshForm("made-up", attempt: nil),
                Code(value: code.value, verifier: SystemRandom().token(), client: code.client).form,
            ]
            for form in forms {
                let answer = try await Self.ask(fixture, form, proof)
                #expect(answer.status == 400 && answer.error == "invalid_grant", "\(answer.text)")
            }
            let right = try await Self.ask(fixture, code.form, proof)
            #expect(right.status == 200, "\(right.text)")
        }
    }

    @Test("The proof is about the public address, by whichever path the realm is named, and never about Host")
    func address() async throws {
        try await ServerFixture.run { fixture in
            let key = try ProofKey()
            let url = fixture.server("/oauth2/access_token")
            let code = try await Self.code(fixture)
            let other = try await Self.ask(
                fixture, code.form, try await Self.proof(fixture, key), url: url + "?realm=/alpha")
            #expect(other.status == 400 && other.error == "invalid_dpop_proof")
            let named = try await Self.proof(
                fixture, key, claims: { $0["htu"] = "https://other.example/am/oauth2/access_token" })
            let host = try await Self.ask(fixture, code.form, named, fields: [("X-Forwarded-Host", "other.example")])
            #expect(host.status == 400 && host.error == "invalid_dpop_proof")
            let right = try await Self.proof(fixture, key, claims: { $0["htu"] = .string(fixture.published(url)) })
            #expect(try await Self.ask(fixture, code.form, right, url: url + "?realm=/alpha").status == 200)
        }
    }

    @Test("Replies carry a new nonce when it is due, and the next proof is accepted with it")
    func nonces() async throws {
        try await ServerFixture.run { fixture in
            let key = try ProofKey()
            fixture.clock.advance(by: 200)
            let code = try await Self.code(fixture)
            let bare = try await Self.proof(fixture, key, claims: { $0["nonce"] = nil })
            let first = try await Self.ask(fixture, code.form, bare)
            #expect(first.status == 200 && first.all("DPoP-Nonce").count == 1)
            let nonce = try #require(first["DPoP-Nonce"])
            var refresh = try #require(first.json["refresh_token"]?.string)
            for (seconds, isDue) in [(0.0, false), (119, false), (1, true), (119, true)] {
                fixture.clock.advance(by: seconds)
                let answer = try await Self.ask(
                    fixture, ServerFixture.refreshForm(refresh, attempt: nil),
                    try await Self.proof(fixture, key, claims: { $0["nonce"] = .string(nonce) }))
                #expect(answer.status == 200 && (answer["DPoP-Nonce"] != nil) == isDue, "\(answer.text)")
                refresh = try #require(answer.json["refresh_token"]?.string)
            }
            fixture.clock.advance(by: 1)
            let expired = try await Self.ask(
                fixture, ServerFixture.refreshForm(refresh, attempt: nil),
                try await Self.proof(fixture, key, claims: { $0["nonce"] = .string(nonce) }))
            #expect(expired.status == 400 && expired.error == "use_dpop_nonce")
            let given = try #require(expired["DPoP-Nonce"])
            let renewed = try await Self.ask(
                fixture, ServerFixture.refreshForm(refresh, attempt: nil),
                try await Self.proof(fixture, key, claims: { $0["nonce"] = .string(given) }))
            #expect(renewed.status == 200)
        }
    }

    @Test("The gateway's nonce is refused at the token endpoint")
    func gatewayNonce() async throws {
        try await ServerFixture.run { fixture in
            let key = try ProofKey()
            let code = try await Self.code(fixture)
            let nonce = fixture.nonce(of: .gateway)
            let answer = try await Self.ask(
                fixture, code.form, try await Self.proof(fixture, key, claims: { $0["nonce"] = .string(nonce) }))
            #expect(answer.status == 400 && answer.error == "use_dpop_nonce")
            #expect(try await Self.ask(fixture, code.form, try await Self.proof(fixture, key)).status == 200)
        }
    }

    @Test("Where nonces are required, for a realm or a client, a proof without one is told which to take")
    func requiredNonce() async throws {
        for change in [
            { (text: String) in
                text.replacing(
                    "    defaultJourney: Login\n", with: "    defaultJourney: Login\n    dpop: {nonce: required}\n",
                    maxReplacements: 1)
            },
            { (text: String) in
                text.replacing("      bank-app:\n", with: "      bank-app:\n        dpop: {nonce: required}\n")
            },
        ] {
            let fixture = try await ServerFixture(editing: change)
            fixture.clock.advance(by: 200)
            let key = try ProofKey()
            let code = try await Self.code(fixture)
            let answer = try await Self.ask(
                fixture, code.form, try await Self.proof(fixture, key, claims: { $0["nonce"] = nil }))
            #expect(answer.status == 400 && answer.error == "use_dpop_nonce", "\(answer.text)")
            let nonce = try #require(answer["DPoP-Nonce"])
            let right = try await Self.ask(
                fixture, code.form, try await Self.proof(fixture, key, claims: { $0["nonce"] = .string(nonce) }))
            #expect(right.status == 200, "\(right.text)")
            await fixture.stop()
        }
    }

    @Test("ensure-holder-of-key-required: a client with dpopBound gets no token without a proof, and spends no code")
    func boundClient() async throws {
        let fixture = try await ServerFixture(editing: {
            $0.replacing("      bank-app:\n", with: "      bank-app:\n        dpopBound: true\n")
        })
        let code = try await Self.code(fixture)
        let answer = try await Self.ask(fixture, code.form)
        #expect(answer.status == 400 && answer.error == "invalid_dpop_proof", "\(answer.text)")
        let key = try ProofKey()
        #expect(try await Self.ask(fixture, code.form, try await Self.proof(fixture, key)).status == 200)
        await fixture.stop()
    }

    @Test(
        "ensure-dpop-auth-code-binding-success, ensure-token-endpoint-fails-with-mismatched-dpop-proof-jkt: a stolen code"
    )
    func stolenCode() async throws {
        try await ServerFixture.run { fixture in
            let (key, thief) = (try ProofKey(), try ProofKey())
            let code = try await Self.code(fixture, [("dpop_jkt", key.thumbprint)])
            for proofs in [[try await Self.proof(fixture, thief)], []] {
                let fields = proofs.map { ("DPoP", $0) }
                let answer = try await Self.ask(fixture, code.form, fields: fields)
                #expect(answer.status == 400 && answer.error == "invalid_grant", "\(answer.text)")
            }
            let mine = try await Self.ask(fixture, code.form, try await Self.proof(fixture, key))
            #expect(mine.status == 200, "\(mine.text)")
            #expect(try Self.bound(mine) == key.thumbprint)
        }
    }

    @Test("A stolen refresh token of a public client is refused with another key's proof, and without one")
    func stolenRefreshToken() async throws {
        try await ServerFixture.run { fixture in
            let (key, thief) = (try ProofKey(), try ProofKey())
            let code = try await Self.code(fixture)
            let first = try await Self.ask(fixture, code.form, try await Self.proof(fixture, key))
            let refresh = try #require(first.json["refresh_token"]?.string)
            let form = ServerFixture.refreshForm(refresh, attempt: nil)
            let stolen = try await Self.ask(fixture, form, try await Self.proof(fixture, thief))
            #expect(stolen.status == 400 && stolen.error == "invalid_grant")
            let bare = try await Self.ask(fixture, form)
            #expect(bare.status == 400 && bare.error == "invalid_grant")
            let mine = try await Self.ask(fixture, form, try await Self.proof(fixture, key))
            #expect(mine.status == 200 && mine.json["token_type"]?.string == "DPoP")
        }
    }

    @Test("A confidential client refreshes with another key; introspection names the key of each token")
    func confidential() async throws {
        try await ServerFixture.run { fixture in
            let basic = Data(
                "\(ServerFixture.escaped("web:1 +%")):\(ServerFixture.escaped(FixtureConfiguration.webSecret))".utf8
            ).base64EncodedString()
            let fields = [("Authorization", "Basic \(basic)")]
            let code = try await Self.code(fixture, client: "web:1 +%")
            var form = code.form
            for _ in 0..<2 {
                let key = try ProofKey()
                let answer = try await Self.ask(fixture, form, try await Self.proof(fixture, key), fields: fields)
                #expect(answer.status == 200, "\(answer.text)")
                #expect(try Self.bound(answer) == key.thumbprint)
                let told = try await fixture.send(
                    "POST", fixture.oauth("introspect"),
                    [("Content-Type", "application/x-www-form-urlencoded")],
                    text: ServerFixture.query([
                        ("client_id", "reader"), ("client_secret", FixtureConfiguration.readerSecret),
                        ("token", try #require(answer.json["access_token"]?.string)),
                    ]))
                #expect(told.json["token_type"]?.string == "DPoP")
                #expect(told.json["cnf"]?["jkt"]?.string == key.thumbprint)
                form = [
                    ("grant_type", "refresh_token"),
                    ("refresh_token", try #require(answer.json["refresh_token"]?.string)),
                ]
            }
        }
    }

    @Test("A client that does not authenticate is told so, whatever its proof is like")
    func unauthenticated() async throws {
        try await ServerFixture.run { fixture in
            let answer = try await Self.ask(
                fixture, [("grant_type", "refresh_token"), ("refresh_token", "x"), ("client_id", "nobody")], "no proof")
            #expect(answer.error == "invalid_client")
        }
    }
}
