import AssentCore
import AssentJOSE
import AssentTesting
import Crypto
import Foundation
import Testing

@testable import AssentEngine

/// The names of tests in front of a colon are those of the modules of the OpenID conformance suite.
@Suite("Assertions of clients: which are accepted")
struct ClientAssertionTests {
    /// A change to a right assertion, and whether it is accepted then.
    struct Change: Sendable, CustomTestStringConvertible {
        typealias Header = @Sendable (inout JSONObject) -> Void
        typealias Claims = @Sendable (inout JSONObject, _ now: Int64) -> Void

        let name: String
        let isAccepted: Bool
        let header: Header
        let claims: Claims

        var testDescription: String { name }

        static func accepted(_ name: String, _ claims: @escaping Claims = { _, _ in }) -> Change {
            Change(name: name, isAccepted: true, header: { _ in }, claims: claims)
        }

        static func accepted(_ name: String, header: @escaping Header) -> Change {
            Change(name: name, isAccepted: true, header: header, claims: { _, _ in })
        }

        static func refused(_ name: String, _ claims: @escaping Claims) -> Change {
            Change(name: name, isAccepted: false, header: { _ in }, claims: claims)
        }

        static func refused(_ name: String, header: @escaping Header) -> Change {
            Change(name: name, isAccepted: false, header: header, claims: { _, _ in })
        }
    }

    private static let issuer = ProviderFixture.issuer
    private static let tokenURL = issuer + "/access_token"

    private static let audiences: [Change] = [
        .accepted("ensure-client-assertion-with-iss-aud-to-token-endpoint-succeeds"),
        .accepted("the token endpoint's URL as aud") { claims, _ in claims["aud"] = .string(tokenURL) },
        .accepted("an array of both") { claims, _ in claims["aud"] = [.string(issuer), .string(tokenURL)] },
        .refused("ensure-client-assertion-with-wrong-aud-fails") { claims, _ in
            claims["aud"] = "https://other.example/"
        },
        .refused("the issuer with a slash behind it") { claims, _ in claims["aud"] = .string(issuer + "/") },
        .refused("a foreign server beside the issuer") { claims, _ in
            claims["aud"] = [.string(issuer), "https://other.example"]
        },
        .refused("an empty array") { claims, _ in claims["aud"] = [] },
        .refused("a number as aud") { claims, _ in claims["aud"] = 7 },
        .refused("a number in the array") { claims, _ in claims["aud"] = [.string(issuer), 7] },
        .refused("no aud") { claims, _ in claims["aud"] = nil },
        .refused("another endpoint's URL") { claims, _ in claims["aud"] = .string(issuer + "/introspect") },
    ]

    private static let parties: [Change] = [
        .refused("ensure-client-assertion-with-no-sub-fails") { claims, _ in claims["sub"] = nil },
        .refused("no iss") { claims, _ in claims["iss"] = nil },
        .refused("another client as iss") { claims, _ in claims["iss"] = "bank-app" },
        .refused("another client as sub") { claims, _ in claims["sub"] = "bank-app" },
        .refused("an unknown client") { claims, _ in
            claims["iss"] = "nobody"
            claims["sub"] = "nobody"
        },
        .refused("a sub that is not a text") { claims, _ in claims["sub"] = ["office"] },
        .refused("no jti") { claims, _ in claims["jti"] = nil },
        .refused("an empty jti") { claims, _ in claims["jti"] = "" },
        .refused("a number as jti") { claims, _ in claims["jti"] = 1 },
        .accepted("a long jti") { claims, _ in claims["jti"] = .string(String(repeating: "j", count: 512)) },
        .refused("a jti that is too long") { claims, _ in
            claims["jti"] = .string(String(repeating: "j", count: 513))
        },
    ]

    private static let times: [Change] = [
        .accepted("without iat") { claims, _ in claims["iat"] = nil },
        .accepted("an hour ahead") { claims, now in claims["exp"] = .integer(now + 3600) },
        .accepted("an hour by a clock that is ahead") { claims, now in
            claims["exp"] = .integer(now + 3630)
            claims["iat"] = .integer(now + 30)
        },
        .refused("more than an hour ahead") { claims, now in claims["exp"] = .integer(now + 3631) },
        .refused("years ahead") { claims, _ in claims["exp"] = 253_402_300_799 },
        .refused("beyond all years") { claims, _ in claims["exp"] = .integer(Int64.max) },
        .refused("no exp") { claims, _ in claims["exp"] = nil },
        .refused("a text as exp") { claims, now in claims["exp"] = .string("\(now + 60)") },
        .refused("an exp before 1970") { claims, _ in claims["exp"] = -1 },
        .refused("ensure-client-assertion-with-exp-is-5-minutes-in-past-fails") { claims, now in
            claims["exp"] = .integer(now - 300)
            claims["iat"] = .integer(now - 360)
        },
        .accepted("expired by a clock that is behind") { claims, now in claims["exp"] = .integer(now - 29) },
        .refused("expired for as long as clocks may differ") { claims, now in claims["exp"] = .integer(now - 30) },
        .accepted("par-ensure-jwt-client-assertions-nbf-8-seconds-in-the-future-is-accepted") { claims, now in
            claims["nbf"] = .integer(now + 8)
        },
        .refused("par-ensure-jwt-client-assertions-nbf-over-60-seconds-in-the-future-fails") { claims, now in
            claims["nbf"] = .integer(now + 61)
            claims["exp"] = .integer(now + 300)
        },
        .accepted("iat 8 seconds in the future") { claims, now in claims["iat"] = .integer(now + 8) },
        .refused("iat over 60 seconds in the future") { claims, now in
            claims["iat"] = .integer(now + 61)
            claims["exp"] = .integer(now + 300)
        },
        .refused("a text as nbf") { claims, _ in claims["nbf"] = "now" },
    ]

    private static let headers: [Change] = [
        .accepted("typ JWT", header: { $0["typ"] = "JWT" }),
        .accepted("the type of its own", header: { $0["typ"] = "client-authentication+jwt" }),
        .refused("a proof's type", header: { $0["typ"] = "dpop+jwt" }),
        .refused("a request object's type", header: { $0["typ"] = "oauth-authz-req+jwt" }),
        .refused("an access token's type", header: { $0["typ"] = "at+jwt" }),
        .refused("crit", header: { $0["crit"] = ["exp"] }),
        .refused("b64", header: { $0["b64"] = false }),
        .refused("another kid", header: { $0["kid"] = "another" }),
        .accepted("its kid", header: { $0["kid"] = "one" }),
        .refused("no alg", header: { $0["alg"] = nil }),
        .refused("none", header: { $0["alg"] = "none" }),
        .refused("an algorithm of another kind of key", header: { $0["alg"] = "PS256" }),
        .refused("an algorithm that no client may use", header: { $0["alg"] = "ES384" }),
    ]

    @Test(
        "What an assertion must say, and may say",
        arguments: [audiences, parties, times, headers])
    func changes(_ changes: [Change]) async throws {
        let key = try AssertionKey(keyID: "one")
        let fixture = try await ProviderFixture(clients: [AssertionKey.client([key]), ProviderFixture.bank])
        for change in changes {
            let assertion = try await key.assertion(now: fixture.clock, header: change.header) {
                change.claims(&$0, fixture.clock.epochSeconds)
            }
            let refusal = try await fixture.refusal(assertion)
            #expect(refusal == (change.isAccepted ? nil : "invalid_client"), "\(change.name)")
        }
        // Nothing was kept of the ones that were refused.
        #expect(try await fixture.count("client_assertions") == Int64(changes.count(where: \.isAccepted)))
    }

    @Test("ES256, PS256 and EdDSA verify; RS256 only for a client that says so, and then nothing else")
    func algorithms() async throws {
        for algorithm in ClientKeys.usualAlgorithms {
            let key = try AssertionKey(algorithm)
            let fixture = try await ProviderFixture(clients: [AssertionKey.client([key])])
            #expect(try await fixture.refusal(try await key.assertion(now: fixture.clock)) == nil, "\(algorithm)")
        }
        let key = try AssertionKey(.rs256)
        let modern = try AssertionKey(.es256)
        let old = AssertionKey.client([key], algorithms: [.rs256])
        let fixture = try await ProviderFixture(clients: [old])
        #expect(try await fixture.refusal(try await key.assertion(now: fixture.clock)) == nil)
        #expect(try await fixture.refusal(try await modern.assertion(now: fixture.clock)) == "invalid_client")
    }

    @Test("ensure-signed-client-assertion-with-RS256-fails: also though the key could verify it")
    func rs256() async throws {
        let key = try AssertionKey(.rs256)
        let fixture = try await ProviderFixture(clients: [AssertionKey.client([key])])
        #expect(try await fixture.refusal(try await key.assertion(now: fixture.clock)) == "invalid_client")
    }

    @Test("A public key is no shared secret, and an assertion without a signature is refused")
    func confusion() async throws {
        let key = try AssertionKey()
        let fixture = try await ProviderFixture(clients: [AssertionKey.client([key])])
        let right = try await key.assertion(now: fixture.clock)
        let claims = try #require(right.split(separator: ".").dropFirst().first)
        for alg in ["HS256", "none", "None", ""] {
            let header = Base64URL.encode(JSONValue.object(["alg": .string(alg)]).serializedBytes())
            let input = "\(header).\(claims)"
            for secret in [key.key.publicKeyInfo, Array(key.jwk.json.serializedBytes()), []] {
                let code = HMAC<SHA256>.authenticationCode(
                    for: Array(input.utf8), using: SymmetricKey(data: secret + [UInt8](repeating: 0, count: 32)))
                for signature in [Base64URL.encode(Array(code)), ""] {
                    #expect(try await fixture.refusal("\(input).\(signature)") == "invalid_client", "\(alg)")
                }
            }
        }
        #expect(try await fixture.refusal(right) == nil)
    }

    @Test("A key that the assertion brings itself, or one of another client, proves nothing")
    func otherKeys() async throws {
        let (key, thief) = (try AssertionKey(), try AssertionKey())
        let fixture = try await ProviderFixture(clients: [
            AssertionKey.client([key]), AssertionKey.client([thief], id: "agency"),
        ])
        let forged = try await thief.assertion(now: fixture.clock) {
            $0["jwk"] = thief.jwk.json
            $0["jku"] = "https://thief.example/keys"
        }
        #expect(try await fixture.refusal(forged) == "invalid_client")
        #expect(try await fixture.refusal(try await thief.assertion(now: fixture.clock)) == "invalid_client")
        let own = try await thief.assertion(of: "agency", now: fixture.clock)
        #expect(try await fixture.refusal(own, ["client_id": "office"]) == "invalid_client")
        #expect(try await fixture.refusal(own, ["client_id": "agency"]) == nil)
    }

    @Test("A changed, shortened or longer assertion is refused; members that are there twice are")
    func tampering() async throws {
        let key = try AssertionKey()
        let fixture = try await ProviderFixture(clients: [AssertionKey.client([key])])
        let right = try await key.assertion(now: fixture.clock)
        let parts = right.split(separator: ".").map { Base64URL.decode($0) ?? [] }
        for part in parts.indices {
            for place in stride(from: 0, to: parts[part].count, by: 7) {
                var changed = parts
                changed[part][place] ^= 1
                let text = changed.map { Base64URL.encode($0) }.joined(separator: ".")
                #expect(try await fixture.refusal(text) == "invalid_client", "\(part) \(place)")
            }
        }
        for text in [
            String(right.dropLast()), String(right.dropFirst()), right + "A", right + ".", "." + right, right + "=",
            right.replacing(".", with: ".."), "x", "..", String(repeating: "a", count: OAuthParameters.valueLimit),
        ] {
            #expect(try await fixture.refusal(text) == "invalid_client")
        }
        let twice = try await key.signed(
            header: Array(#"{"alg":"ES256","alg":"ES256"}"#.utf8), claims: parts[1])
        #expect(try await fixture.refusal(twice) == "invalid_client")
        let claims = Array(#"{"sub":"bank-app","#.utf8) + parts[1].dropFirst()
        let subjects = try await key.signed(header: parts[0], claims: claims)
        #expect(try await fixture.refusal(subjects) == "invalid_client")
        #expect(try await fixture.refusal(right) == nil)
    }

    @Test("ensure-client-assertion-in-token-endpoint: a client with a key does not get by without an assertion")
    func withoutAssertion() async throws {
        let key = try AssertionKey()
        let fixture = try await ProviderFixture(clients: [AssertionKey.client([key]), ProviderFixture.backend])
        let assertion = try await key.assertion(now: fixture.clock)
        for changes: [String: String?] in [
            ["client_assertion": nil, "client_id": "office"],
            ["client_assertion": nil, "client_assertion_type": nil, "client_id": "office"],
            ["client_assertion": nil, "client_assertion_type": nil, "client_id": "office", "client_secret": "x"],
            ["client_assertion_type": nil], ["client_assertion_type": "urn:other"],
            ["client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:saml2-bearer"],
            ["client_id": "back end"],
        ] {
            #expect(try await fixture.refusal(assertion, changes) == "invalid_client", "\(changes.keys)")
        }
        // In more than one way at once.
        #expect(try await fixture.refusal(assertion, ["client_secret": "x"]) == "invalid_request")
        #expect(try await fixture.refusal(assertion, authorization: "Basic b2ZmaWNlOng=") == "invalid_request")
        #expect(try await fixture.refusal(assertion, ["client_id": "office"]) == nil)
    }
}
