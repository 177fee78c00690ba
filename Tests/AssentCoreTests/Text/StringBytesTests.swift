import AssentCore
import Testing

@Suite("Texts by their bytes")
struct StringBytesTests {
    @Test("Two texts are the same if all of their bytes are, also where other bytes are canonically equivalent")
    func same() {
        let texts = [
            "", "a", "b", "fifteen letters", "fifteen letterz", "sixteen letters!", "a text that is kept elsewhere",
            "a text that is kept elsewherf", "\u{e9}", "e\u{301}", "a\u{301}\u{323}", "a\u{323}\u{301}",
        ]
        for (place, one) in texts.enumerated() {
            for (otherPlace, other) in texts.enumerated() {
                #expect(one.hasSameBytes(as: other) == (place == otherPlace))
                let copy = String(decoding: Array(other.utf8), as: UTF8.self)
                #expect(one.hasSameBytes(as: copy) == (place == otherPlace))
            }
        }
    }
}
