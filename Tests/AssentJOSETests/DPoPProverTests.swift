import AssentCore
import AssentJOSE
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
}
