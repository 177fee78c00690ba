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

    @Test("A server writes nothing on the terminal with the code of an invite")
    func invite() {
        let lines = DeviceCommand.Invite.lines(
            code: "ZFECE\u{1B}[1A", issuer: "https://am.example\u{9B}2K", qr: "text\u{202E}", resets: false)
        #expect(
            lines == [
                #"For other apps, the signing issuer:  https://am.example\u{9B}2K"#,
                #"On the device:  assent device enroll 'ZFECE\u{1B}[1A'"#, #"text\u{202E}"#,
            ])
        let command = DeviceCommand.Invite.lines(
            code: "A; rm -rf ~ 'x", issuer: "https://am.example", qr: nil, resets: false)
        #expect(command.last == #"On the device:  assent device enroll 'A; rm -rf ~ '"'"'x'"#)
        let reset = DeviceCommand.Invite.lines(code: "ZFECE-1", issuer: "https://am.example", qr: nil, resets: true)
        #expect(reset.last == "On the device:  assent device renew ZFECE-1" && reset.count == 2)
    }
}
