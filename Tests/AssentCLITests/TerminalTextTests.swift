import AssentCore
import Testing

@testable import AssentCLI

@Suite("What is written from right to left, at the terminal")
struct TerminalTextTests {
    private let name = "\u{5D3}\u{5E0}\u{5D4} 12"

    @Test("A device sets a value off from its label, and in a sentence from the words beside it")
    func decision() {
        let lines = TerminalDecision.lines([("To", name), ("Amount", "200.00 EUR")])
        #expect(lines == ["  To      \u{2068}\(name)\u{2069}", "  Amount  200.00 EUR"])
        let values = [name, "200.00 EUR", name, ""]
        #expect(
            TerminalDecision.sentence("Pay 200.00 EUR to \(name) now", values)
                == "Pay 200.00 EUR to \u{2068}\(name)\u{2069} now")
        #expect(TerminalDecision.sentence("Pay\u{1B}[1m Bob", ["Bob"]).unicodeScalars.allSatisfy { $0 != "\u{1B}" })
    }

    @Test("So does the request that asks for an approval")
    func approval() {
        let console = Console(silent: true)
        let line = TerminalApproval.line(DisplayField(label: "To", value: name), console)
        #expect(line.contains("To: ") && line.contains("\u{2068}\(name)\u{2069}"))
    }
}
