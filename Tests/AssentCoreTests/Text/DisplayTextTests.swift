import AssentCore
import Testing

@Suite("DisplayText")
struct DisplayTextTests {
    @Test(
        "What is shown as it stands is accepted",
        arguments: [
            "", "200.00 EUR to Bob", "Ünïcödé", "e\u{301}", "山田太郎", "Владимир", "שלום", "مرحبا", "हिन्दी",
            "1\u{202F}234,50\u{A0}€", "😀",
            "a & b < c > \"d\" 'e' \\",
        ])
    func accepted(text: String) throws {
        #expect(try DisplayText(text).text.utf8.elementsEqual(text.utf8))
    }

    @Test(
        "What would be hidden, reordered or acted upon is refused",
        arguments: [
            0x00, 0x07, 0x08, 0x09, 0x0A, 0x0D, 0x1B, 0x7F, 0x80, 0x9B, 0x9F, 0xAD, 0x034F, 0x061C, 0x115F, 0x17B4,
            0x180E,
            0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2028, 0x2029, 0x202A, 0x202B, 0x202C, 0x202D, 0x202E, 0x2060,
            0x2061,
            0x2064, 0x2066, 0x2067, 0x2068, 0x2069, 0x206A, 0x206F, 0x2800, 0x3164, 0xFE00, 0xFE0F, 0xFEFF, 0xFFA0,
            0xFFF9,
            0xFFFB, 0xFFFE, 0xFFFF, 0x0378, 0xE000, 0xF8FF, 0x1D173, 0xE0001, 0xE0020, 0xE007F, 0xE0100, 0xF0000,
            0x10FFFF,
            // Nothing is to be seen of these, or next to nothing.
            0x1680, 0x2000, 0x2003, 0x200A, 0x205F, 0xFFFC, 0x1D159, 0x13441, 0x13442,
            // These strike out what is before them.
            0x0335, 0x0336, 0x0337, 0x0338, 0x20D2, 0x20D8, 0x20E5, 0x20EB, 0x0489, 0x20DD, 0x20E0,
        ] as [UInt32])
    func refused(code: UInt32) throws {
        let scalar = try #require(Unicode.Scalar(code))
        var text = "Bob"
        text.unicodeScalars.append(scalar)
        expectExactly(DisplayTextError.character(position: 3, code: code)) { try DisplayText(text) }
        let visible = "Bob\\u{\(String(code, radix: 16, uppercase: true))}"
        #expect(DisplayText.escapedForTerminal(text) == visible)
        #expect(DisplayText.escapedForHTML(text) == visible)
    }

    @Test("The length is bounded, however the text is composed")
    func length() throws {
        #expect(try DisplayText(String(repeating: "x", count: 256)).text.count == 256)
        expectExactly(DisplayTextError.tooLong(limit: 256)) { try DisplayText(String(repeating: "x", count: 257)) }
        expectExactly(DisplayTextError.tooLong(limit: 3)) { try DisplayText("e\u{301}e\u{301}", limit: 3) }
        #expect(try DisplayText("e\u{301}e\u{301}", limit: 4).text.count == 2)
        expectExactly(DisplayTextError.tooLong(limit: 0)) { try DisplayText("x", limit: 0) }
    }

    @Test("Marks may be put on a letter, but not piled up, and not on nothing")
    func marks() throws {
        #expect(throws: Never.self) { try DisplayText("a\u{301}\u{302}\u{303}b\u{301}") }
        expectExactly(DisplayTextError.character(position: 4, code: 0x304)) {
            try DisplayText("a\u{301}\u{302}\u{303}\u{304}")
        }
        expectExactly(DisplayTextError.character(position: 0, code: 0x301)) { try DisplayText("\u{301}a") }
    }

    @Test("A payee named with terminal codes is refused, and harmless when printed all the same")
    func terminal() {
        let payee = "Bob\u{1B}[2K\u{1B}[1AAlice"
        expectExactly(DisplayTextError.character(position: 3, code: 0x1B)) { try DisplayText(payee) }
        #expect(DisplayText.escapedForTerminal(payee) == "Bob\\u{1B}[2K\\u{1B}[1AAlice")
        #expect(DisplayText.escapedForTerminal("a\\u{1B}") == "a\\\\u{1B}")
        #expect(DisplayText.escapedForTerminal("a\r\nb") == "a\\u{D}\\u{A}b")
    }

    @Test("Lines for a terminal keep their breaks and what joins letters, and nothing else acts")
    func lines() {
        let text = "a\r\nb\tc\rd\u{85}e\u{2028}f\u{1F468}\u{200D}\u{1F467}\u{2066}\\"
        let visible = "a\r\nb\tc\\u{D}d\\u{85}e\\u{2028}f\u{1F468}\u{200D}\u{1F467}\\u{2066}\\"
        #expect(DisplayText.linesForTerminal(text).utf8.elementsEqual(visible.utf8))
        #expect(DisplayText.linesForTerminal("") == "")
    }

    @Test("One line for a terminal has no break either")
    func line() {
        let text = "a\r\nb\tc\u{1B}[2J\u{9B}K\u{202E}f\u{1F468}\u{200D}\u{1F467}\\"
        let visible = "a\\u{D}\\u{A}b\tc\\u{1B}[2J\\u{9B}K\\u{202E}f\u{1F468}\u{200D}\u{1F467}\\"
        #expect(DisplayText.lineForTerminal(text).utf8.elementsEqual(visible.utf8))
        #expect(DisplayText.lineForTerminal("") == "")
    }

    @Test("JSON has what may not be shown as escapes, and says the same")
    func json() throws {
        let value: JSONValue = ["\u{9B}2K": "é\u{1B}\u{7F}\u{202E}\u{200B}\u{E0041}\\\"\n€"]
        let escaped = DisplayText.escapedJSON(value.serialized())
        #expect(escaped == #"{"\u009B2K":"é\u001b\u007F\u202E\u200B\uDB40\uDC41\\\"\n€"}"#)
        #expect(try JSONValue.parse(Array(escaped.utf8)) == value)
    }

    @Test("HTML is escaped for elements and attributes")
    func html() throws {
        let text = try DisplayText("<script>alert('x' & \"y\")</script>")
        #expect(text.escapedForHTML == "&lt;script&gt;alert(&#39;x&#39; &amp; &quot;y&quot;)&lt;/script&gt;")
    }
}
