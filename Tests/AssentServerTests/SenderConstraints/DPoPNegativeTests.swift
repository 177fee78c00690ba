import AssentCore
import AssentJOSE
import Foundation
import StoreTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

/// The conformance suite's module `dpop-negative-tests` at resources, case by case, and further proofs that only an
/// attacker makes.
@Suite("dpop-negative-tests: proofs at resources", .server)
struct DPoPNegativeTests {
    /// One request with a proof.
    struct Attempt: Sendable {
        let fixture: ServerFixture
        let key: ProofKey
        let subject: ProofKey.Subject
        let url: String

        var token: String { subject.token }

        func proof(
            header: @Sendable (inout JSONObject) -> Void = { _ in },
            claims: @Sendable (inout JSONObject) -> Void = { _ in }
        ) async throws -> String {
            try await key.proof(subject, header: header, claims: claims)
        }

        func fields(_ proofs: String..., name: String = "DPoP") -> [(String, String)] {
            [("Authorization", "DPoP \(token)")] + proofs.map { (name, $0) }
        }
    }

    /// A case, and the error that it is answered with; `nil` for one that must work.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let error: String?
        let fields: @Sendable (Attempt) async throws -> [(String, String)]
        /// What the request's address ends with.
        var query = ""

        init(
            _ name: String, _ error: String? = "invalid_dpop_proof",
            fields: @escaping @Sendable (Attempt) async throws -> [(String, String)]
        ) {
            testDescription = name
            self.error = error
            self.fields = fields
        }

        /// A proof that is wrong in its claims.
        static func claims(
            _ name: String, _ error: String? = "invalid_dpop_proof",
            _ change: @escaping @Sendable (inout JSONObject) -> Void
        ) -> Case {
            Case(name, error) { $0.fields(try await $0.proof(claims: change)) }
        }

        /// A proof that is wrong in its header.
        static func header(_ name: String, _ change: @escaping @Sendable (inout JSONObject) -> Void) -> Case {
            Case(name) { $0.fields(try await $0.proof(header: change)) }
        }

        /// A proof whose `htu` is another text, made from the right one.
        static func htu(
            _ name: String, _ error: String? = "invalid_dpop_proof", query: String = "",
            _ change: @escaping @Sendable (String) -> String
        ) -> Case {
            var wrong = claims(name, error) { $0["htu"] = .string(change($0["htu"]?.string ?? "")) }
            wrong.query = query
            return wrong
        }
    }

    /// The cases that the suite's module has.
    static let suite: [Case] = [
        Case("the field's name in capitals", nil) { $0.fields(try await $0.proof(), name: "DPOP") },
        Case("two fields") { $0.fields(try await $0.proof(), try await $0.proof()) },
        Case("no JWT") { $0.fields("this.is.none") },
        Case("an empty field") { $0.fields("") },
        .header("without typ") { $0["typ"] = nil },
        .header("without alg") { $0["alg"] = nil },
        .header("without jwk") { $0["jwk"] = nil },
        .claims("without jti") { $0["jti"] = nil },
        .claims("without htm") { $0["htm"] = nil },
        .claims("without htu") { $0["htu"] = nil },
        .claims("without iat") { $0["iat"] = nil },
        .claims("without ath") { $0["ath"] = nil },
        .header("wrong typ") { $0["typ"] = "jwt" },
        Case("RS256") { attempt in
            attempt.fields(try await ProofKey(.rs256).proof(attempt.subject))
        },
        Case("none") { attempt in
            let proof = try await attempt.proof(header: { $0["alg"] = "none" })
            return attempt.fields(proof.split(separator: ".").dropLast().joined(separator: ".") + ".")
        },
        Case("bad signature") { attempt in
            var parts = try await attempt.proof().split(separator: ".").map(String.init)
            var signature = try #require(Base64URL.decode(parts[2]))
            signature[7] ^= 1
            parts[2] = Base64URL.encode(signature)
            return attempt.fields(parts.joined(separator: "."))
        },
        .header("private key in jwk") { header in
            var jwk = header["jwk"]?.object ?? JSONObject()
            jwk["d"] = .string(Base64URL.encode([UInt8](repeating: 1, count: 32)))
            header["jwk"] = .object(jwk)
        },
        .claims("wrong htm") { $0["htm"] = "PUT" },
        .htu("htu with query and fragment", nil) { $0 + "?a=1&b=%2F#part" },
        .htu("htu without query and fragment", nil, query: "?a=1") { String($0.prefix { $0 != "?" }) },
        .htu("htu of another path") { $0 + "x" },
        .claims("iat an hour ahead, with a nonce", nil) { $0["iat"] = .integer(($0["iat"]?.integer ?? 0) + 3600) },
        .claims("iat an hour ago, with a nonce", nil) { $0["iat"] = .integer(($0["iat"]?.integer ?? 0) - 3600) },
        .claims("iat an hour ahead, without one", "use_dpop_nonce") {
            $0["iat"] = .integer(($0["iat"]?.integer ?? 0) + 3600)
            $0["nonce"] = nil
        },
        .claims("iat an hour ago, without one", "use_dpop_nonce") {
            $0["iat"] = .integer(($0["iat"]?.integer ?? 0) - 3600)
            $0["nonce"] = nil
        },
        Case("jti twice") { attempt in
            let fields = attempt.fields(try await attempt.proof())
            let first = try await attempt.fixture.send(attempt.subject.method, attempt.url, fields)
            try #require([200, 404].contains(first.status))
            return fields
        },
        .claims("wrong ath") { $0["ath"] = .string(Base64URL.encode(Array(SHA2.sha256("another".utf8)))) },
        .claims("exp and nbf", nil) {
            $0["exp"] = 1
            $0["nbf"] = 4_000_000_000
        },
    ]

    /// Further ones.
    static let further: [Case] = [
        Case("no field") { $0.fields() },
        .htu("htu with user information") { $0.replacing("https://", with: "https://u@") },
        .htu("htu with dots") { $0 + "/../x" },
        .htu("htu of another port") { $0.replacing(/:\d+/, with: ":1") },
        .htu("htu with an escaped slash") { text in
            text.lastIndex(of: "/").map { "\(text[..<$0])%2f\(text[text.index(after: $0)...])" } ?? text
        },
        .htu("htu of another scheme") { $0.replacing("https://", with: "http://") },
        .htu("htu in capitals", nil) { $0.replacing("https://localhost", with: "HTTPS://LOCALHOST") },
        .htu("htu with its path in capitals") { $0.replacing(/:\d+\/.*/) { $0.output.uppercased() } },
        .header("crit") { $0["crit"] = ["exp"] },
        .header("a symmetric key") { $0["jwk"] = ["kty": "oct", "k": "AAAA"] },
        .header("a point off the curve") { header in
            var jwk = header["jwk"]?.object ?? JSONObject()
            jwk["y"] = .string(Base64URL.encode([UInt8](repeating: 7, count: 32)))
            header["jwk"] = .object(jwk)
        },
        .header("a member of the key twice") { header in
            let jwk = header["jwk"]?.object ?? JSONObject()
            header["jwk"] = .object(JSONObject(jwk.members + jwk.members.prefix(1)))
        },
        .header("a long header") { $0["x"] = .string(String(repeating: "a", count: 7 << 10)) },
        .header("a member twice") { $0 = JSONObject($0.members + [.init(name: "typ", value: "dpop+jwt")]) },
        .claims("htm in small letters") { $0["htm"] = .string(($0["htm"]?.string ?? "").lowercased()) },
        .claims("an empty jti") { $0["jti"] = "" },
        .claims("a nonce of nobody", "use_dpop_nonce") { $0["nonce"] = "AAAA" },
        Case("the other server's nonce", "use_dpop_nonce") { attempt in
            let isGateway = attempt.url.hasPrefix(attempt.fixture.gateway("") + "/")
            let other = attempt.fixture.nonce(of: isGateway ? .authorizationServer : .gateway)
            return attempt.fields(try await attempt.proof(claims: { $0["nonce"] = .string(other) }))
        },
        Case("another key's proof", "invalid_token") { attempt in
            attempt.fields(try await ProofKey().proof(attempt.subject))
        },
    ]

    @Test(
        "Each case is answered as it must be, and a right proof is accepted after it",
        .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"),
        arguments: suite + further + malformed)
    func answered(_ wrong: Case) async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        for door in ResourceDoor.allCases {
            let key = try ProofKey()
            let token = try await door.boundToken(fixture, session: session, to: key)
            let name = SystemRandom().uuid()
            let url = door.url(fixture, name) + wrong.query
            let attempt = Attempt(
                fixture: fixture, key: key, subject: fixture.subject("GET", url, token: token), url: url)
            let fields = try await wrong.fields(attempt)
            let before = Self.arrived(name, fixture)
            let answer = try await fixture.send("GET", url, fields)
            let expected = wrong.error.map { "401 `DPoP` `\($0)`" } ?? "yes"
            #expect(try door.outcome(answer) == expected, "\(door): \(answer.text)")
            if wrong.error != nil { #expect(Self.arrived(name, fixture) == before, "\(door)") }
            let right = try await fixture.send("GET", url, try await fixture.proved("GET", url, token: token, by: key))
            #expect(door.accepts(right), "\(door): \(right.text)")
        }
    }

    @Test("Every algorithm that challenges name is accepted", arguments: SenderProofs.algorithms)
    func algorithms(_ algorithm: SignatureAlgorithm) async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        let key = try ProofKey(algorithm)
        for door in ResourceDoor.allCases {
            let token = try await door.boundToken(fixture, session: session, to: key)
            let url = door.url(fixture)
            let answer = try await fixture.send("GET", url, try await fixture.proved("GET", url, token: token, by: key))
            #expect(door.accepts(answer), "\(door): \(answer.text)")
        }
    }

    @Test(
        "access-token-type-header-case-sensitivity: the scheme's case does not matter",
        arguments: ["dpop", "DPOP", "dPoP"])
    func schemeCase(_ scheme: String) async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        let key = try ProofKey()
        for door in ResourceDoor.allCases {
            let token = try await door.boundToken(fixture, session: session, to: key)
            let url = door.url(fixture)
            let proof = try await key.proof(fixture.subject("GET", url, token: token))
            let answer = try await fixture.send(
                "GET", url, [("Authorization", "\(scheme) \(token)"), ("DPoP", proof)])
            #expect(door.accepts(answer), "\(door): \(answer.text)")
            let alone = try await fixture.send("GET", url, [("Authorization", "\(scheme) \(token)")])
            #expect(try door.outcome(alone) == "401 `DPoP` `invalid_dpop_proof`")
        }
    }

    @Test("A proof for another host that the request names is refused: the public address counts")
    func host() async throws {
        let fixture = try #require(ServerFixture.shared)
        let key = try ProofKey()
        let token = try await fixture.boundToken(session: try await fixture.session(), to: key)
        let url = fixture.gateway("/accounts")
        let named = [("Host", "127.0.0.1:\(fixture.gatewayPort)")]
        var subject = fixture.subject("GET", url, token: token)
        subject.url = "https://127.0.0.1:\(fixture.gatewayPort)/accounts"
        let wrong = try await fixture.send("GET", url, ServerFixture.dpop(token, try await key.proof(subject)) + named)
        #expect([400, 401].contains(wrong.status))
        let right = try await fixture.send("GET", url, try await fixture.proved("GET", url, token: token, by: key))
        #expect(right.status == 200)
    }

    /// How many requests with this name have come to the service.
    private static func arrived(_ name: String, _ fixture: ServerFixture) -> Int {
        fixture.upstream.requests.count { $0.line.contains(name) }
    }
}
