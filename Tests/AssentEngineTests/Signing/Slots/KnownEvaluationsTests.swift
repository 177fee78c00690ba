import Testing

@testable import AssentEngine

@Suite("Evaluations that a node knows to be its issuer's")
struct KnownEvaluationsTests {
    @Test("What was remembered is known again, and no other text, also one that only looks like it")
    func known() {
        let evaluations = KnownEvaluations()
        let compact = "eyJh.K\u{E9}.c2ln"
        #expect(!evaluations.contains(compact))
        evaluations.remember(compact)
        #expect(evaluations.contains(compact))
        let others = ["", "eyJh.K\u{E9}.c2lm", "eyJh.K\u{E9}.c2ln ", "eyJh.Ke\u{301}.c2ln", "eyJh.\u{212A}\u{E9}.c2ln"]
        for other in others { #expect(!evaluations.contains(other), "\(other)") }
    }
}
