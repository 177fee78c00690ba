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

    @Test("Bytes are the text that they are in UTF-8, and nil if they are not UTF-8")
    func utf8() {
        let texts = [
            "", "a", "a text that is kept elsewhere", "\u{7F}\u{0}", "\u{e9}", "a\u{301}", "\u{FFFD}", "\u{1F600}",
        ]
        let broken: [[UInt8]] = [
            [0x80], [0xC3], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xFF],
        ]
        for text in texts {
            let bytes = Array(("x" + text + "y").utf8)
            #expect(String(utf8: bytes.dropFirst().dropLast())?.hasSameBytes(as: text) == true)
            for broken in broken {
                #expect(String(utf8: (bytes + broken)[...]) == nil)
                #expect(String(utf8: (broken + bytes)[...]) == nil)
            }
        }
    }
}
