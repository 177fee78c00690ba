import AssentCore
import Testing

@Suite("Marks on one letter, which are slow to compare when there are many")
struct MarksInARowTests {
    private static let most = String(repeating: "\u{301}", count: MarksInARow.limit)

    @Test("As many as there may be are taken, wherever a text comes in, and one more is not")
    func limit() throws {
        for (marks, isTaken) in [(Self.most, true), (Self.most + "\u{316}", false)] {
            let escaped = String(repeating: #"\u0301"#, count: marks.unicodeScalars.count)
            for json in [#"["e\#(marks)"]"#, #"{"e\#(marks)":1}"#, #"["\#(marks)"]"#, #"["e\#(escaped)"]"#] {
                #expect(((try? JSONValue.parse(json)) != nil) == isTaken)
                #expect(((try? JSONValue.parse(json, duplicates: .rejectAlike)) != nil) == isTaken)
            }
            let encoded = PercentEncoding.encode("e" + marks)
            #expect((PercentEncoding.decode(encoded) != nil) == isTaken)
            #expect(((try? FormEncoding.parse("a=\(encoded)")) != nil) == isTaken)
            #expect(((try? QueryString("a=\(encoded)").single("a")) != nil) == isTaken)
        }
    }

    @Test("They are counted in a row: every letter may have its own, and what is between them ends the row")
    func inARow() {
        #expect(!MarksInARow.areTooMany(in: String(repeating: "e\u{301}\u{316}", count: 10_000)))
        #expect(!MarksInARow.areTooMany(in: Self.most + "e" + Self.most))
        #expect(!MarksInARow.areTooMany(in: String(repeating: "e", count: 10_000)))
        #expect(MarksInARow.areTooMany(in: "e" + Self.most + Self.most + "e"))
    }

    @Test(
        "All kinds of marks are counted, also those of which Unicode says no order",
        arguments: ["\u{300}", "\u{20DD}", "\u{302E}", "\u{F73}", "\u{FE0F}", "\u{1D165}", "\u{FF9E}"])
    func kinds(_ mark: String) {
        #expect(MarksInARow.areTooMany(in: "e" + String(repeating: mark, count: MarksInARow.limit + 1)))
    }
}
