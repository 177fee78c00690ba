import Testing

@testable import AssentCLI

@Suite("What a device says of a transaction at the terminal")
struct TerminalDecisionTests {
    @Test("It says for how many whole seconds the transaction is still open")
    func open() {
        #expect(TerminalDecision.open(for: .seconds(172)) == "Open for 172 more seconds.")
        #expect(TerminalDecision.open(for: .milliseconds(1900)) == "Open for 1 more second.")
        #expect(TerminalDecision.open(for: .zero) == "Open for 0 more seconds.")
    }
}
