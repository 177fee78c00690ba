import AssentCore
import AssentTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

/// The cases of ``DPoPNegativeTests`` where a proof goes with a session's token, and where a journey begins with one.
@Suite("dpop-negative-tests: proofs of sessions and of journeys", .server)
struct SessionNegativeTests {
    typealias Case = DPoPNegativeTests.Case

    private static let all = DPoPNegativeTests.suite + DPoPNegativeTests.further + DPoPNegativeTests.malformed

    /// All but the one that is sent twice, by an access token.
    static let ofSessions = all.filter { $0.testDescription != "jti twice" }

    /// What a proof says of a token is not looked at where there is none yet; any key will do, and no proof is needed.
    private static let tolerated: Set = [
        "without ath", "wrong ath", "an empty ath", "an ath with padding", "another key's proof",
    ]
    static let ofJourneys = ofSessions.filter { $0.testDescription != "no field" }

    /// The proofs of a case for a request to an address.
    private static func proofs(
        _ wrong: Case, _ fixture: ServerFixture, _ key: ProofKey, _ method: String, _ url: String, session: String
    ) async throws -> [(String, String)] {
        let attempt = DPoPNegativeTests.Attempt(
            fixture: fixture, key: key, subject: fixture.subject(method, url, token: session), url: url)
        return try await wrong.fields(attempt).filter { $0.0 != "Authorization" }
    }

    @Test(
        "Each case with a session is answered as it must be, and a right proof is accepted after it",
        arguments: ofSessions)
    func sessions(_ wrong: Case) async throws {
        let fixture = try #require(ServerFixture.shared)
        for door in [SessionDoor.consents, .constrained] {
            let key = try ProofKey()
            let session = try await fixture.boundSession(to: key)
            let url = door.url(fixture)
            let proofs = try await Self.proofs(wrong, fixture, key, "GET", url, session: session)
            let answer = try await fixture.send("GET", url + wrong.query, ServerFixture.session(session) + proofs)
            if let error = wrong.error {
                // A session says no more about a key that is not its own.
                let expected = error == "invalid_token" ? "invalid_dpop_proof" : error
                #expect(answer.status == 401, "\(door): \(answer.text)")
                #expect(try answer.tokenChallenge?["error"] == expected, "\(door): \(answer.text)")
                #expect((answer["DPoP-Nonce"] != nil) == (expected == "use_dpop_nonce"), "\(door)")
            } else {
                #expect(answer.status == 200, "\(door): \(answer.text)")
            }
            let right = try await door.send(
                fixture, session, [try await fixture.proof("GET", url, session: session, by: key)])
            #expect(right.status == 200, "\(door): \(right.text)")
        }
    }

    @Test("Each case at a journey's first request: no journey begins where it is refused", arguments: ofJourneys)
    func journeys(_ wrong: Case) async throws {
        let fixture = try #require(ServerFixture.shared)
        let key = try ProofKey()
        let url = fixture.json("authenticate")
        let query = "?" + ServerFixture.query(ServerFixture.service("Quick"))
        let proofs = try await Self.proofs(wrong, fixture, key, "POST", url, session: "")
        let answer = try await fixture.send("POST", url + query + wrong.query.replacing("?", with: "&"), proofs)
        if let error = Self.tolerated.contains(wrong.testDescription) ? nil : wrong.error {
            #expect(answer.status == 401 && answer.json["authId"] == nil, "\(answer.text)")
            #expect(try answer.tokenChallenge?["error"] == error, "\(answer.text)")
        } else {
            #expect(answer.status == 200 && answer.json["authId"] != nil, "\(answer.text)")
        }
        let right = try await fixture.send("POST", url + query, [try await fixture.proof("POST", url, by: key)])
        #expect(right.status == 200 && right.json["authId"] != nil, "\(right.text)")
    }
}
