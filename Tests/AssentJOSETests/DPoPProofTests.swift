import AssentCore
import AssentJOSE
import Foundation
import Testing

@Suite("DPoP proofs")
struct DPoPProofTests {
    static let clock = FixedClock(1_800_000_000)
    static let uri = "https://rs.example/a/b"
    static let token = Secret("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU")

    @Test("RFC 9449 §4.1: the example for the token endpoint")
    func example() throws {
        let text =
            "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0Rs"
            + "cEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2"
            + "In19.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2Vu"
            + "IiwiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg"
        let proof = try DPoPProof.verify(
            text, method: "POST", uri: "https://server.example.com/token", clock: FixedClock(1_562_262_616))
        #expect(proof.jti == "-BwC3ESc6acc2lTc" && proof.nonce == nil)
        #expect(proof.thumbprint == "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I")
    }

    @Test("A proof made here is good here", arguments: [.es256, .es384, .ps256, .edDSA] as [SignatureAlgorithm])
    func roundTrip(algorithm: SignatureAlgorithm) async throws {
        let key = try TestKeys.key(algorithm)
        let text = try await DPoPProof.make(
            method: "GET", uri: Self.uri + "?q=1#f", accessToken: Self.token, nonce: "n1", key: key, clock: Self.clock)
        let proof = try DPoPProof.verify(
            text, method: "GET", uri: Self.uri + "?other", accessToken: Self.token, nonces: ["n0", "n1"],
            clock: Self.clock)
        #expect(try proof.thumbprint == JWK(publicKeyInfo: key.publicKeyInfo).thumbprint)
        #expect(proof.nonce == "n1" && proof.issuedAt == Self.clock.now && proof.jti.utf8.count == 43)
        let claims = try JWTClaims(payload: UnverifiedJWS.parse(text).payload)
        #expect(claims["htu"] == .string(Self.uri))
        let again = try await DPoPProof.make(method: "GET", uri: Self.uri, key: key, clock: Self.clock)
        #expect(try JWTClaims(payload: UnverifiedJWS.parse(again).payload).jti != proof.jti)
    }

    @Test("A query of any length does not matter, and a path may have 8 KiB with its origin")
    func longAddress() async throws {
        let key = try TestKeys.key(.es256)
        let long = String(repeating: "q", count: 8100)
        for query in ["?" + long, "#" + long, "?\u{308}ä"] {
            let uri = Self.uri + query
            let text = try await DPoPProof.make(method: "GET", uri: uri, key: key, clock: Self.clock)
            #expect(try JWTClaims(payload: UnverifiedJWS.parse(text).payload)["htu"] == .string(Self.uri))
            _ = try DPoPProof.verify(text, method: "GET", uri: uri, clock: Self.clock)
            expectWrongPath(text, uri.replacing("/b", with: "/c", maxReplacements: 1))
        }
        // Longer than such a path, no proof is read.
        let longest = "https://rs.example/" + String(repeating: "p", count: (8 << 10) - 19)
        _ = try await DPoPProof.make(method: "GET", uri: longest, key: key, clock: Self.clock)
        for uri in [longest + "p", Self.uri + "ä", Self.uri + "\u{308}?q"] {
            await #expect(throws: JOSEError(.malformed)) {
                try await DPoPProof.make(method: "GET", uri: uri, key: key, clock: Self.clock)
            }
        }
    }

    private func expectWrongPath(_ text: String, _ uri: String) {
        #expect(throws: JOSEError(.wrongURI)) {
            try DPoPProof.verify(text, method: "GET", uri: uri, clock: Self.clock)
        }
    }

    @Test("ath is the digest that RFC 9449 §7.1 gives for its token")
    func ath() async throws {
        let text = try await DPoPProof.make(
            method: "GET", uri: Self.uri, accessToken: Self.token, key: TestKeys.key(.es256), clock: Self.clock)
        let claims = try JWTClaims(payload: UnverifiedJWS.parse(text).payload)
        #expect(claims["ath"] == "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo")
    }

    struct Request: Sendable {
        var method = "GET"
        var uri = DPoPProofTests.uri
        var token: Secret? = DPoPProofTests.token
        var nonces: Set<String>? = ["n"]
        var algorithms: Set<SignatureAlgorithm> = DPoPProof.algorithms
        var later: TimeInterval = 0

        func verify(_ text: String) throws -> DPoPProof {
            try DPoPProof.verify(
                text, method: method, uri: uri, accessToken: token, nonces: nonces, algorithms: algorithms,
                clock: FixedClock(DPoPProofTests.clock.now.timeIntervalSince1970 + later))
        }
    }

    @Test("A proof is good for its own request only")
    func otherRequests() async throws {
        let text = try await DPoPProof.make(
            method: "GET", uri: Self.uri, accessToken: Self.token, nonce: "n", key: TestKeys.key(.es256),
            clock: Self.clock)
        let cases: [(Request, JOSEError.Code?)] = [
            (Request(), nil), (Request(method: "POST"), .wrongMethod), (Request(method: "get"), .wrongMethod),
            (Request(uri: "https://rs.example/a/c"), .wrongURI), (Request(uri: "http://rs.example/a/b"), .wrongURI),
            (Request(uri: "https://rs.example:8443/a/b"), .wrongURI), (Request(uri: "/a/b"), .wrongURI),
            // Scheme and host have no case, a path has.
            (Request(uri: "HTTPS://RS.example/a/b"), nil), (Request(uri: "https://rs.example/a/B"), .wrongURI),
            (Request(uri: "https://rs.example/A/b"), .wrongURI), (Request(uri: "HTTPS://RS.EXAMPLE/A/B"), .wrongURI),
            (Request(token: Secret("other")), .wrongAccessToken), (Request(token: nil), nil),
            (Request(nonces: []), .wrongNonce), (Request(nonces: ["m"]), .wrongNonce), (Request(nonces: nil), nil),
            (Request(algorithms: [.edDSA]), .algorithmNotAllowed), (Request(later: 60), nil),
            (Request(later: 61), .tooOld), (Request(later: -30), nil), (Request(later: -31), .issuedInFuture),
        ]
        for (request, code) in cases {
            if let code {
                #expect(throws: JOSEError(code)) { try request.verify(text) }
            } else {
                #expect(throws: Never.self) { try request.verify(text) }
            }
        }
    }

    private static func signed(
        _ key: any SigningKey, header: (inout JSONObject) -> Void = { _ in },
        claims: (inout JWTClaims) -> Void = { _ in }
    ) async throws -> String {
        let info = key.publicKeyInfo.isEmpty ? try TestKeys.key(.es256).publicKeyInfo : key.publicKeyInfo
        var object = JSONObject(header: ("typ", "dpop+jwt"), ("jwk", try JWK(publicKeyInfo: info).json))
        header(&object)
        var content = JWTClaims()
        content.jti = "1"
        content.iat = Self.clock.now
        content["htm"] = "GET"
        content["htu"] = .string(Self.uri)
        claims(&content)
        return try await JWS.sign(content.payload, header: object, with: key)
    }

    @Test("A proof with anything absent or of the wrong form is refused")
    func forged() async throws {
        let key = try TestKeys.key(.es256)
        let other = try JWK(publicKeyInfo: TestKeys.key(.es256).publicKeyInfo)
        let request = Request(token: nil, nonces: nil)
        func expect(_ code: JOSEError.Code, _ text: String, _ request: Request) {
            #expect(throws: JOSEError(code)) { try request.verify(text) }
        }
        let text = try await Self.signed(key)
        #expect(throws: Never.self) { try request.verify(text) }
        expect(.malformed, try await Self.signed(key, header: { $0["jwk"] = nil }), request)
        expect(.malformed, try await Self.signed(key, header: { $0["jwk"] = "x" }), request)
        expect(.wrongType, try await Self.signed(key, header: { $0["typ"] = "JWT" }), request)
        expect(.wrongType, try await Self.signed(key, header: { $0["typ"] = nil }), request)
        expect(.invalidSignature, try await Self.signed(key, header: { $0["jwk"] = other.json }), request)
        expect(
            .privateKeyRefused,
            try await Self.signed(
                key,
                header: { header in
                    var jwk = header["jwk"]?.object ?? JSONObject()
                    jwk["d"] = "AAAA"
                    header["jwk"] = .object(jwk)
                }), request)
        for name in ["jti", "htm", "htu", "iat"] {
            expect(.missingClaim(name), try await Self.signed(key, claims: { $0[name] = nil }), request)
            expect(.malformedClaim(name), try await Self.signed(key, claims: { $0[name] = [] }), request)
            // A name is compared byte by byte: as long, longer, and with a letter of another script.
            for alike in [name.uppercased(), name + "\u{200D}", String(name.prefix(2)) + "\u{430}"] {
                let renamed = try await Self.signed(
                    key,
                    claims: { claims in
                        claims[alike] = claims[name]
                        claims[name] = nil
                    })
                expect(.missingClaim(name), renamed, request)
            }
        }
        expect(.malformedClaim("nonce"), try await Self.signed(key, claims: { $0["nonce"] = .null }), request)
        expect(.malformedClaim("jti"), try await Self.signed(key, claims: { $0["jti"] = "" }), request)
        expect(
            .malformedClaim("jti"),
            try await Self.signed(key, claims: { $0["jti"] = .string(String(repeating: "a", count: 513)) }), request)
        expect(.malformedClaim("nonce"), try await Self.signed(key, claims: { $0["nonce"] = 1 }), request)
        expect(.malformedClaim("htu"), try await Self.signed(key, claims: { $0["htu"] = "/a/b" }), request)
        expect(.missingClaim("ath"), text, Request(nonces: nil))
        expect(.malformedClaim("ath"), try await Self.signed(key, claims: { $0["ath"] = 1 }), Request(nonces: nil))
        expect(.wrongNonce, text, Request(token: nil))
        expect(.tooLarge, text + String(repeating: "A", count: 9000), request)
        let hmac = try HMACSigningKey(Secret(bytes: [UInt8](repeating: 1, count: 32)))
        expect(.algorithmNotAllowed, try await Self.signed(hmac), request)
    }

    @Test(
        "dpop-negative-tests: RS256 signs no proof, nor does ES512",
        arguments: [.rs256, .es512] as [SignatureAlgorithm])
    func refusedAlgorithms(algorithm: SignatureAlgorithm) async throws {
        let text = try await Self.signed(TestKeys.key(algorithm))
        #expect(throws: JOSEError(.algorithmNotAllowed)) { try Request(token: nil, nonces: nil).verify(text) }
    }

    @Test(
        "check-dpop-proof-nbf-exp: exp and nbf do not disturb, whatever they say",
        arguments: [(.integer(1), .integer(2_000_000_000)), ("soon", []), (nil, .integer(1))]
            as [(
                JSONValue?, JSONValue?
            )])
    func foreignTimes(exp: JSONValue?, nbf: JSONValue?) async throws {
        let text = try await Self.signed(
            TestKeys.key(.es256),
            claims: { claims in
                claims["exp"] = exp
                claims["nbf"] = nbf
            })
        #expect(throws: Never.self) { try Request(token: nil, nonces: nil).verify(text) }
    }

    @Test(
        "A jwk that is not a public key on its curve is refused",
        arguments: [
            ("x", .string(String(repeating: "A", count: 43)), .invalidKey), ("kty", "oct", .unsupportedKey),
            ("k", "AAAA", .privateKeyRefused), ("crv", "P-192", .unsupportedKey),
        ] as [(String, JSONValue, JOSEError.Code)])
    func forgedKeys(name: String, value: JSONValue, code: JOSEError.Code) async throws {
        let text = try await Self.signed(
            TestKeys.key(.es256),
            header: { header in
                var jwk = header["jwk"]?.object ?? JSONObject()
                jwk[name] = value
                header["jwk"] = .object(jwk)
            })
        #expect(throws: JOSEError(code)) { try Request(token: nil, nonces: nil).verify(text) }
    }

    @Test("A jwk of 64 KiB is refused")
    func largeKey() async throws {
        let text = try await Self.signed(
            TestKeys.key(.es256),
            header: { header in
                var jwk = header["jwk"]?.object ?? JSONObject()
                jwk["x"] = .string(String(repeating: "A", count: 64 << 10))
                header["jwk"] = .object(jwk)
            })
        #expect(throws: JOSEError(.tooLarge)) { try Request(token: nil, nonces: nil).verify(text) }
    }

    @Test("A symmetric key, or a target that is not an HTTP URI, makes no proof")
    func notMade() async throws {
        let hmac = try HMACSigningKey(Secret(bytes: [UInt8](repeating: 1, count: 32)))
        await #expect(throws: JOSEError(.invalidKey)) {
            try await DPoPProof.make(method: "GET", uri: Self.uri, key: hmac, clock: Self.clock)
        }
        for uri in [
            "", "rs.example", "ftp://rs.example/", "https://", "https:///a", "https://u:p@rs.example/",
            "https://rs.example/a b",
        ] {
            await #expect(throws: JOSEError(.malformed)) {
                try await DPoPProof.make(method: "GET", uri: uri, key: TestKeys.key(.es256), clock: Self.clock)
            }
        }
    }

    @Test(
        "Two writings of one target are one target, two targets are not",
        arguments: [
            ("https://rs.example", true), ("https://rs.example/", true), ("HTTPS://RS.Example:443/", true),
            ("https://rs.example:/", true), ("https://rs.example/?a=b#c", true), ("https://rs.example?x", true),
            ("https://rs.example:444/", false), ("https://rs.example//", false), ("https://rs.example/%2F", false),
            ("https://rs.example/a/..", false), ("https://rs.example/%2e", false), ("https://rs.example./", false),
            ("https://rs.example\\@x/", false), ("https://rs.example:99999999/", false), ("https://[::1]/", false),
            ("https://u@rs.example/", false), ("https://u:p@rs.example/", false), ("https://rs.example/./", false),
            ("https://rs.example/%2e%2e/", false), ("https://rs.example/%2f", false), ("http://rs.example/", false),
        ])
    func targets(uri: String, same: Bool) async throws {
        let text = try await Self.signed(TestKeys.key(.es256), claims: { $0["htu"] = "https://rs.example/" })
        let request = Request(uri: uri, token: nil, nonces: nil)
        if same {
            #expect(throws: Never.self) { try request.verify(text) }
        } else {
            #expect(throws: JOSEError(.wrongURI)) { try request.verify(text) }
        }
    }

    @Test(
        "A target names its port unless that is its scheme's usual one",
        arguments: [
            ("https://rs.example:8443/a", "https://rs.example:8443/a"), ("http://localhost:1/", "http://localhost:1/"),
            ("https://rs.example:443/a?q", "https://rs.example/a"), ("http://rs.example:80/a", "http://rs.example/a"),
            ("https://rs.example:80/a", "https://rs.example:80/a"), ("http://rs.example:443", "http://rs.example:443/"),
            ("https://rs.example:0443/a", "https://rs.example:0443/a"),
            ("https://rs.example:/a", "https://rs.example/a"),
            ("https://RS.example:08080?q", "https://rs.example:08080/"), ("https://rs.example:123456/", nil),
            ("https://rs.example:84:43/", nil), ("https://rs.example:84a/", nil), ("https://:8443/a", nil),
            ("https://rs.example:-1/", nil),
        ] as [(String, String?)])
    func ports(uri: String, target: String?) async throws {
        let key = try TestKeys.key(.es256)
        guard let target else {
            await #expect(throws: JOSEError(.malformed)) {
                try await DPoPProof.make(method: "GET", uri: uri, key: key, clock: Self.clock)
            }
            return
        }
        let text = try await DPoPProof.make(method: "GET", uri: uri, key: key, clock: Self.clock)
        #expect(try JWTClaims(payload: UnverifiedJWS.parse(text).payload)["htu"] == .string(target))
        for uri in [uri, target, target + "?q"] {
            #expect(throws: Never.self) { try DPoPProof.verify(text, method: "GET", uri: uri, clock: Self.clock) }
        }
    }

    @Test(
        "Escapes are compared by what they stand for",
        arguments: [("%7Euser", "~user"), ("%c3%a4", "%C3%A4"), ("a%2fb", "a%2Fb")])
    func escapes(one: String, other: String) async throws {
        let text = try await Self.signed(
            TestKeys.key(.es256), claims: { $0["htu"] = .string("https://[::1]:8443/\(one)") })
        #expect(throws: Never.self) {
            try Request(uri: "https://[::1]:8443/\(other)", token: nil, nonces: nil).verify(text)
        }
    }
}
