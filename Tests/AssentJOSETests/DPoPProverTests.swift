import AssentCore
import AssentJOSE
import Foundation
import Testing

@Suite("Proofs that one key makes for several tokens")
struct DPoPProverTests {
    @Test("Each goes with its own token, whichever came before: the same one, one as long, or one of the same bytes")
    func tokens() async throws {
        let (uri, clock) = (DPoPProofTests.uri, DPoPProofTests.clock)
        let prover = try DPoPProver(TestKeys.key(.es256))
        let first = Secret("token-a")
        for token in [first, first, Secret("token-b"), first, Secret("token-a"), Secret("token-ab")] {
            let text = try await prover.proof(method: "GET", uri: uri, accessToken: token, clock: clock)
            _ = try DPoPProof.verify(text, method: "GET", uri: uri, accessToken: token, clock: clock)
        }
    }

    @Test("The value of Authorization is its own token's, whichever was proved or shown before")
    func authorization() async throws {
        let prover = try DPoPProver(TestKeys.key(.es256))
        let first = Secret("token-a")
        for token in [first, first, Secret("token-b"), first, Secret("token-a"), Secret("token-ab")] {
            for _ in 0..<2 { #expect(prover.authorization(token) == Secret("DPoP \(token.reveal())")) }
            for proved in [Secret("token-c"), first] {
                let (uri, clock) = (DPoPProofTests.uri, DPoPProofTests.clock)
                let text = try await prover.proof(method: "GET", uri: uri, accessToken: proved, clock: clock)
                _ = try DPoPProof.verify(text, method: "GET", uri: uri, accessToken: proved, clock: clock)
                #expect(prover.authorization(token) == Secret("DPoP \(token.reveal())"))
            }
        }
    }

    /// Bytes that can be told beforehand.
    private struct Fixed: RandomSource {
        func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: 251 &+ 7 &* $0) } }
    }

    private static func payload(_ proof: String) throws -> String {
        String(decoding: try UnverifiedJWS.parse(proof).payload, as: UTF8.self)
    }

    @Test(
        "Its claims are written as JSON with these members is, whatever is in them",
        arguments: ["https://rs.example/a/b", #"https://rs.example/"a\b"?q"#, "https://rs.example:8443/%C3%A4"],
        ["n", "", "\"\\\u{1}\n\u{E4}\u{1F511}"])
    func written(uri: String, nonce: String) async throws {
        let prover = try DPoPProver(TestKeys.key(.es256))
        let target = String(uri.prefix { $0 != "?" })
        for (method, time) in [("GET", 1_800_000_000), (#"P"\T"#, 0), ("", 253_402_300_799)] as [(String, Int64)] {
            let clock = FixedClock(TimeInterval(time))
            var expected: JSONObject = [
                "jti": .string(Fixed().token()), "htm": .string(method), "htu": .string(target), "iat": .integer(time),
            ]
            let bare = try await prover.proof(method: method, uri: uri, clock: clock, random: Fixed())
            #expect(try Self.payload(bare) == JSONValue.object(expected).serialized())
            let token = Secret("token-a")
            let whole = try await prover.proof(
                method: method, uri: uri, accessToken: token, nonce: nonce, clock: clock, random: Fixed())
            expected["ath"] = .string(Base64URL.encode(SHA2.sha256(token.revealBytes())))
            expected["nonce"] = .string(nonce)
            #expect(try Self.payload(whole) == JSONValue.object(expected).serialized())
            let more: JSONObject = ["\"pe\n": ["a": [1, nil, true]], "nonce": .string(nonce)]
            let further = try await prover.proof(
                method: method, uri: uri, more: more, clock: clock, random: Fixed())
            expected["ath"] = nil
            expected["nonce"] = nil
            let members = JSONObject(expected.members + more.members)
            #expect(try Self.payload(further) == JSONValue.object(members).serialized())
        }
    }
}
