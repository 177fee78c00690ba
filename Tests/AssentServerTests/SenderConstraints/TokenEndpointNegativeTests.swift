import AssentCore
import AssentJOSE
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

/// The cases of ``DPoPNegativeTests`` at the token endpoint, where a client asks for a token of its own: so nothing but
/// the proof can be used twice.
@Suite("dpop-negative-tests: proofs at the token endpoint", .server)
struct TokenEndpointNegativeTests {
    typealias Case = DPoPNegativeTests.Case

    /// What a proof says of an access token is not looked at, since none comes with the request; and any key will do.
    private static let tolerated: Set = [
        "without ath", "wrong ath", "an empty ath", "an ath with padding", "another key's proof",
    ]

    /// All but those that are about another request: one without a proof, and one that is sent twice.
    static let cases = (DPoPNegativeTests.suite + DPoPNegativeTests.further + DPoPNegativeTests.malformed)
        .filter { !["no field", "jti twice"].contains($0.testDescription) }

    @Test("Each case is answered as it must be, and a right proof is accepted after it", arguments: cases)
    func answered(_ wrong: Case) async throws {
        let fixture = try #require(ServerFixture.shared)
        let key = try ProofKey()
        let url = fixture.oauth("access_token") + wrong.query
        let attempt = DPoPNegativeTests.Attempt(
            fixture: fixture, key: key, subject: fixture.subject("POST", url, token: ""), url: url)
        let proofs = try await wrong.fields(attempt).filter { $0.0 != "Authorization" }
        let answer = try await fixture.shopToken(proofs, query: wrong.query)
        if let error = Self.tolerated.contains(wrong.testDescription) ? nil : wrong.error {
            #expect(answer.status == 400 && answer.error == error, "\(answer.text)")
            #expect(answer.json["access_token"] == nil && answer["WWW-Authenticate"] == nil)
            #expect(answer.all("DPoP-Nonce").count == (error == "use_dpop_nonce" ? 1 : 0))
        } else {
            #expect(answer.status == 200 && answer.json["token_type"]?.string == "DPoP", "\(answer.text)")
        }
        let right = try await fixture.shopToken(try await fixture.provedTokenRequest(by: key))
        #expect(right.status == 200 && right.json["token_type"]?.string == "DPoP", "\(right.text)")
    }

    @Test("Without a nonce iat is accepted 60 seconds back and 30 ahead, and not a second more")
    func windowOfTime() async throws {
        try await ServerFixture.run { fixture in
            fixture.clock.advance(by: 200)
            let key = try ProofKey()
            for (seconds, isAccepted) in [(-60, true), (-61, false), (30, true), (31, false)] as [(Int64, Bool)] {
                let fields = try await fixture.provedTokenRequest(by: key) {
                    $0["nonce"] = nil
                    $0["iat"] = .integer(($0["iat"]?.integer ?? 0) + seconds)
                }
                let answer = try await fixture.shopToken(fields)
                #expect(answer.status == (isAccepted ? 200 : 400), "\(seconds): \(answer.text)")
                #expect(answer.error == (isAccepted ? nil : "use_dpop_nonce"), "\(seconds): \(answer.text)")
            }
        }
    }

    @Test("A nonce of a server with another master key is refused")
    func foreignNonce() async throws {
        let fixture = try #require(ServerFixture.shared)
        try await ServerFixture.run { other in
            let (key, nonce) = (try ProofKey(), other.nonce(of: .authorizationServer))
            let answer = try await fixture.shopToken(
                try await fixture.provedTokenRequest(by: key) { $0["nonce"] = .string(nonce) })
            #expect(answer.status == 400 && answer.error == "use_dpop_nonce", "\(answer.text)")
            let given = try #require(answer["DPoP-Nonce"])
            let right = try await fixture.shopToken(
                try await fixture.provedTokenRequest(by: key) { $0["nonce"] = .string(given) })
            #expect(right.status == 200, "\(right.text)")
        }
    }

    @Test("Of fifty token requests with one proof, each on a connection of its own, one gets a token")
    func race() async throws {
        let fixture = try #require(ServerFixture.shared)
        let fields = try await fixture.provedTokenRequest(by: try ProofKey())
        let answers = try await withThrowingTaskGroup(of: Answer.self) { group in
            for _ in 0..<50 { group.addTask { try await fixture.shopToken(fields) } }
            return try await group.reduce(into: [Answer]()) { $0.append($1) }
        }
        #expect(answers.count { $0.status == 200 && $0.json["token_type"]?.string == "DPoP" } == 1)
        #expect(answers.count { $0.status == 400 && $0.error == "invalid_dpop_proof" } == 49)
        #expect(try await fixture.shopToken(fields).error == "invalid_dpop_proof")
    }
}

extension ServerFixture {
    /// The field of a right proof for the token endpoint, after a change to its claims.
    func provedTokenRequest(
        by key: ProofKey, claims change: (inout JSONObject) -> Void = { _ in }
    ) async throws -> [(String, String)] {
        let subject = subject("POST", oauth("access_token"), token: "")
        let proof = try await key.proof(
            subject,
            claims: { claims in
                claims["ath"] = nil
                change(&claims)
            })
        return [("DPoP", proof)]
    }

    /// Asks for a token of the client `shop` itself, with these fields.
    func shopToken(_ fields: [(String, String)], query: String = "") async throws -> Answer {
        let basic = Data("shop:\(FixtureConfiguration.clientSecret)".utf8).base64EncodedString()
        return try await send(
            "POST", oauth("access_token") + query,
            [("Authorization", "Basic \(basic)"), ("Content-Type", "application/x-www-form-urlencoded")] + fields,
            text: Self.query([("grant_type", "client_credentials"), ("scope", "signing")]))
    }
}
