import AssentCore
import AssentJOSE
import Foundation
import Testing

@Suite("JWT validation")
struct JWTTests {
    static let now: Int64 = 1_800_000_000
    static let secret = Secret(bytes: [UInt8](repeating: 9, count: 32))

    static func good() -> JSONObject {
        JSONObject(
            header: ("iss", "https://as.example"), ("aud", "client"), ("sub", "u"), ("exp", .integer(now + 60)),
            ("nbf", .integer(now - 60)), ("iat", .integer(now - 60)), ("jti", "1"))
    }

    static func message(_ claims: JSONObject, typ: String? = nil) async throws -> VerifiedJWS {
        let header = typ.map { JSONObject(header: ("typ", .string($0))) } ?? JSONObject()
        let payload = JSONValue.object(claims).serializedBytes()
        return try UnverifiedJWS.parse(try await JWS.sign(payload, header: header, with: HMACSigningKey(secret)))
            .verified(hmacKey: secret)
    }

    static func rules(_ edit: (inout JWTValidation) -> Void = { _ in }) -> JWTValidation {
        var rules = JWTValidation(
            issuer: "https://as.example", audience: "client", clock: FixedClock(TimeInterval(now)), leeway: 5)
        edit(&rules)
        return rules
    }

    @Test("A good token gives its claims")
    func good() async throws {
        let claims = try Self.rules().validate(try await Self.message(Self.good()))
        #expect(
            claims.iss == "https://as.example" && claims.sub == "u" && claims.aud == ["client"] && claims.jti == "1")
        #expect(claims.exp == Date(timeIntervalSince1970: TimeInterval(Self.now + 60)))
        #expect(claims.nbf == claims.iat)
    }

    struct Change: Sendable, CustomTestStringConvertible {
        let claim: String
        let value: JSONValue?
        let code: JOSEError.Code?
        init(_ claim: String, _ value: JSONValue?, _ code: JOSEError.Code?) {
            self.claim = claim
            self.value = value
            self.code = code
        }
        var testDescription: String {
            "\(claim) = \(value?.serialized() ?? "absent"): \(code.map { "\($0)" } ?? "good")"
        }
    }

    static let changes: [Change] = [
        Change("iss", nil, .missingClaim("iss")), Change("iss", "https://as.example/", .wrongIssuer),
        Change("iss", 1, .malformedClaim("iss")), Change("iss", ["https://as.example"], .malformedClaim("iss")),
        Change("aud", nil, .missingClaim("aud")), Change("aud", "other", .wrongAudience),
        Change("aud", [], .wrongAudience), Change("aud", ["other", "client"], nil),
        Change("aud", ["client", 1], .malformedClaim("aud")), Change("aud", 1, .malformedClaim("aud")),
        Change("exp", nil, .missingClaim("exp")), Change("exp", .integer(now - 5), .expired),
        Change("exp", .integer(now - 4), nil), Change("exp", .string("\(now + 60)"), .malformedClaim("exp")),
        Change("exp", .null, .malformedClaim("exp")), Change("exp", -1, .malformedClaim("exp")),
        Change("exp", .integer(Int64.max), .malformedClaim("exp")), Change("exp", true, .malformedClaim("exp")),
        Change("nbf", .integer(now + 5), nil), Change("nbf", .integer(now + 6), .notYetValid),
        Change("nbf", "soon", .malformedClaim("nbf")), Change("nbf", nil, nil),
        Change("iat", .integer(now + 5), nil), Change("iat", .integer(now + 6), .issuedInFuture),
        Change("iat", [], .malformedClaim("iat")), Change("iat", nil, nil),
        Change("sub", 1, .malformedClaim("sub")), Change("jti", [:], .malformedClaim("jti")),
    ]

    @Test("Each claim is checked, and its failure has its own code", arguments: changes)
    func claims(change: Change) async throws {
        var claims = Self.good()
        claims[change.claim] = change.value
        let message = try await Self.message(claims)
        if let code = change.code {
            #expect(throws: JOSEError(code)) { try Self.rules().validate(message) }
        } else {
            #expect(throws: Never.self) { try Self.rules().validate(message) }
        }
    }

    @Test(
        "Fractions and exponents are numbers, numbers beyond any date are not",
        arguments: [("1799999995.5", true), ("1.8e9", true), ("1799999994.9", false), ("1e400", nil), ("1e12", nil)]
            as [(String, Bool?)])
    func numericDates(text: String, good: Bool?) async throws {
        var claims = Self.good()
        claims["exp"] = try JSONValue.parse(text)
        let message = try await Self.message(claims)
        switch good {
        case true: #expect(throws: Never.self) { try Self.rules().validate(message) }
        case false: #expect(throws: JOSEError(.expired)) { try Self.rules().validate(message) }
        case nil: #expect(throws: JOSEError(.malformedClaim("exp"))) { try Self.rules().validate(message) }
        }
    }

    @Test(
        "The type is compared as a media type",
        arguments: [
            ("at+jwt", true), ("application/at+jwt", true), ("AT+JWT", true), ("Application/AT+jwt", true),
            ("JWT", false), ("at+jwt ", false), ("x/at+jwt", false), ("application/x/at+jwt", false), (nil, false),
        ] as [(String?, Bool)])
    func types(typ: String?, good: Bool) async throws {
        let message = try await Self.message(Self.good(), typ: typ)
        for required in ["at+jwt", "application/at+jwt"] {
            let rules = Self.rules { $0.requiredType = required }
            if good {
                #expect(throws: Never.self) { try rules.validate(message) }
            } else {
                #expect(throws: JOSEError(.wrongType)) { try rules.validate(message) }
            }
        }
    }

    @Test("Required claims, age and several audiences")
    func otherRules() async throws {
        let message = try await Self.message(Self.good())
        #expect(throws: JOSEError(.missingClaim("nonce"))) {
            try Self.rules { $0.requiredClaims = ["nonce"] }.validate(message)
        }
        #expect(throws: Never.self) { try Self.rules { $0.maximumAge = 55 }.validate(message) }
        #expect(throws: JOSEError(.tooOld)) { try Self.rules { $0.maximumAge = 54 }.validate(message) }
        #expect(throws: Never.self) { try Self.rules { $0.audiences = ["x", "client"] }.validate(message) }
        #expect(throws: JOSEError(.wrongAudience)) { try Self.rules { $0.audiences = [] }.validate(message) }
        var claims = Self.good()
        claims["iat"] = nil
        let undated = try await Self.message(claims)
        #expect(throws: JOSEError(.missingClaim("iat"))) { try Self.rules { $0.maximumAge = 54 }.validate(undated) }
        let negative = Self.rules { $0.leeway = -1000 }
        #expect(throws: Never.self) { try negative.validate(message) }
    }

    @Test(
        "A payload that is not an object of claims, or names one twice, is refused",
        arguments: ["", "[]", "1", "null", #"{"iss":"a","iss":"b"}"#, "{"])
    func payloads(text: String) {
        #expect(throws: JOSEError(.malformed)) { try JWTClaims(payload: Array(text.utf8)) }
    }

    @Test("Claims that are set are written as they should be")
    func setters() {
        var claims = JWTClaims()
        claims.iss = "i"
        claims.aud = ["a"]
        claims.exp = Date(timeIntervalSince1970: 1.9)
        claims["x"] = 1
        #expect(String(decoding: claims.payload, as: UTF8.self) == #"{"iss":"i","aud":"a","exp":1,"x":1}"#)
        claims.aud = ["a", "b"]
        claims.exp = nil
        #expect(claims["aud"] == ["a", "b"] && claims["exp"] == nil && claims.aud == ["a", "b"])
        claims.exp = Date(timeIntervalSince1970: 1e300)
        #expect(claims["exp"] == nil)
        claims.aud = []
        #expect(claims["aud"] == nil && claims.aud == [])
    }
}
