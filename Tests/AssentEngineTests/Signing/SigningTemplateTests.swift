import AssentEngine
import AssentSigningProtocol
import Testing

@Suite("Templates of transactions to sign")
struct SigningTemplateTests {
    @Test(
        "A text that cannot be shown is refused with the whole rule, wherever it stands",
        arguments: ["", "a\u{202E}b", "a\nb", String(repeating: "x", count: 101)])
    func texts(text: String) {
        let wrong = LocalizedText(text)
        let field = SigningTemplate.Field(id: "to", label: wrong, type: .text, pointer: "/to")
        let status = SigningTemplate.Status(name: "accept", label: wrong, effect: .approve)
        let deny = SigningTemplate.Status(name: "deny", label: LocalizedText("Decline"), effect: .deny)
        let fine = LocalizedText("Confirm transfer")
        for (template, what) in [
            (SigningTemplate(title: wrong), "a title has 1 to 100 characters"),
            (SigningTemplate(title: fine, fields: [field]), "a field's label has 1 to 40 characters"),
            (SigningTemplate(title: fine, statuses: [status, deny]), "a status' label has 1 to 40 characters"),
        ] {
            let faults = template.faults(keys: SigningSettings.standardKeys)
            let isSaid = faults.contains { $0.hasPrefix(what) && $0.contains("changes the direction of text") }
            #expect(isSaid, "\(faults)")
        }
        #expect(SigningTemplate(title: fine).faults(keys: SigningSettings.standardKeys).isEmpty)
    }

    @Test("A text or a warning that no device would show is refused at the start, and not at each transaction")
    func longTexts() {
        func faults(_ text: String, inWarning: Bool) -> [String] {
            let field = SigningTemplate.Field(
                id: "amount", label: LocalizedText("Amount"), type: .amount, pointer: "/amount")
            var template = SigningTemplate(title: LocalizedText("Confirm transfer"), fields: [field])
            let texts = LocalizedText("Pay {amount}", byLanguage: ["de": text])
            if inWarning { template.warning = texts } else { template.text = texts }
            return template.faults(keys: SigningSettings.standardKeys)
        }
        for (isWarning, what, limit) in [(false, "a text", 1000), (true, "a warning", 200)] {
            let longest = String(repeating: "x", count: limit - 1) + "{amount}"
            for text in ["Pay", "{amount}", longest] { #expect(faults(text, inWarning: isWarning).isEmpty) }
            // A YAML block has line breaks.
            for text in ["", "Pay\n{amount}", "Pay {amount}\n", "a\u{202E}b", longest + "x"] {
                let found = faults(text, inWarning: isWarning)
                #expect(found.count == 1 && found.first?.hasPrefix("\(what) has 1 to \(limit) characters") == true)
            }
        }
    }
}
