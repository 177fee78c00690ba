import Testing

@testable import AssentCLI

@Suite("How long the program waits at least")
struct LeastLimitTests {
    @Test("is what its environment says, if that is a number of seconds up to a day, and else nothing")
    func environment() {
        #expect(LeastLimit.ofCalls(["ASSENT_LEAST_SECONDS": "3600"]) == .seconds(3600))
        for text in ["", "long", "-1", "86401", "99999999999999999999"] {
            #expect(LeastLimit.ofCalls(["ASSENT_LEAST_SECONDS": text]) == nil, "\(text)")
        }
        #expect(LeastLimit.ofCalls([:]) == nil)
    }

    @Test("is an hour or more for what a gateway calls, and as usual where the environment says less")
    func serving() {
        #expect(LeastLimit.ofServing(["ASSENT_LEAST_SECONDS": "3600"]) == 3600)
        for text in ["", "0", "3599", "86401"] {
            #expect(LeastLimit.ofServing(["ASSENT_LEAST_SECONDS": text]) == nil, "\(text)")
        }
        #expect(LeastLimit.ofServing([:]) == nil)
    }
}
