import Testing

@testable import AssentCore

@Suite("Blanks, and text from right to left, in what is approved")
struct BlankTests {
    @Test(
        "Nothing but blanks, or more than three in a row, is not shown",
        arguments: [
            ("", true), (" ", true), ("\u{A0}\u{3000}", true), ("a    b", true), ("a \u{A0}\u{202F}\u{3000}b", true),
            ("a   b", false),
            ("a ", false), (" a b c ", false), ("a", false), ("\u{E9}", false),
        ])
    func blanks(text: String, isRefused: Bool) {
        #expect(DisplayText.isBlankOrSpread(text) == isRefused)
    }

    @Test(
        "A value with right-to-left characters is set off from what stands beside it",
        arguments: [
            "\u{5E9}\u{5DC}", "a \u{627} 1", "\u{FEFB}", "\u{1E900}", "\u{7C0}",
        ])
    func setOff(text: String) {
        #expect(DisplayText.setOff(text) == "\u{2068}\(text)\u{2069}")
    }

    @Test("Other values stay as they are", arguments: ["Bob", "\u{E9}", "\u{4E2D}", "", "\u{3A9} 1", "\u{1F600}"])
    func plain(text: String) {
        #expect(Array(DisplayText.setOff(text).utf8) == Array(text.utf8))
    }
}
