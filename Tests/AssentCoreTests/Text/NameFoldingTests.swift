import Testing

@testable import AssentCore

@Suite("Names that some program takes for the same")
struct NameFoldingTests {
    @Test("Upper, lower and title case of every character fold to the same")
    func everyCharacter() {
        var broken: [UInt32] = []
        for scalar in (0...0x10FFFF as ClosedRange<UInt32>).lazy.compactMap(Unicode.Scalar.init) {
            let properties = scalar.properties
            guard properties.changesWhenCaseMapped else { continue }
            let folded = NameFolding.fold(String(scalar))
            for other in [properties.lowercaseMapping, properties.uppercaseMapping, properties.titlecaseMapping]
            where NameFolding.fold(other) != folded { broken.append(scalar.value) }
        }
        #expect(broken.isEmpty, "\(broken.map { String($0, radix: 16) })")
    }

    @Test(
        "Members of one folding set are refused beside each other",
        arguments: [
            ("k", "\u{212A}"), ("K", "\u{212A}"), ("s", "\u{17F}"), ("S", "\u{17F}"), ("\u{3C3}", "\u{3C2}"),
            ("\u{E5}", "\u{212B}"), ("\u{3C9}", "\u{2126}"), ("\u{B5}", "\u{3BC}"), ("\u{3B8}", "\u{3F4}"),
            ("\u{3B8}", "\u{3D1}"), ("\u{DF}", "\u{1E9E}"), ("\u{13A0}", "\u{AB70}"), ("\u{10D0}", "\u{1C90}"),
            ("\u{432}", "\u{1C80}"), ("\u{1E61}", "\u{1E9B}"), ("\u{3B9}", "\u{1FBE}"), ("\u{10428}", "\u{10400}"),
            ("\u{E9}", "e\u{301}"), ("\u{1C6}", "\u{1C5}"), ("to", "TO"), ("", ""),
            ("i", "\u{130}"), ("I", "\u{131}"), ("id", "i\u{307}d"), ("to", "t\u{200B}o"), ("to", "to\u{FEFF}"),
            ("to", "\u{2060}to"), ("to", "t\u{AD}o"), ("to", "to\u{FE0F}"), ("to", "t\u{34F}o"),
            ("to", "to\u{E0020}"), ("to", "\u{202A}to"), ("to", " to"), ("to", "to "), ("a b", "a\u{A0}b"),
            ("a b", "a  b"), ("to", "\u{FF54}\u{FF4F}"), ("fi", "\u{FB01}"), ("\u{E9}", "e\u{200B}\u{301}"),
            ("k", "\u{3164}k"),
        ])
    func sets(one: String, other: String) {
        let text = #"{"\#(one)":1,"\#(other)":2}"#
        expectExactly(JSONError.duplicateMember(offset: one.utf8.count + 6)) {
            try JSONValue.parse(text, duplicates: .rejectAlike)
        }
    }

    @Test(
        "Marks between which nobody sees anything make no row that is slow to compare",
        arguments: ["\u{200D}", "\u{200B}", "\u{AD}", "\u{3164}", "\u{FF9E}"])
    func rowsOfMarks(_ between: String) {
        let marks = String(repeating: "\u{316}\u{301}", count: MarksInARow.limit / 2)
        let name = "e" + String(repeating: marks + between, count: 20)
        #expect(!MarksInARow.areTooMany(in: NameFolding.fold(name)))
        // What is left out keeps no name apart from another.
        #expect(NameFolding.fold(name) == NameFolding.fold(name + marks))
    }

    @Test("Names that nobody takes for the same stay apart, on one level and on two")
    func different() throws {
        for text in [
            #"{"to":1,"t0":2}"#, #"{"to":1,"from":{"TO":2}}"#, #"[{"a":1},{"A":1}]"#, #"{"\u00e9":1,"e":2}"#,
            #"{"ab":1,"a b":2}"#, #"{"1":1,"l":2}"#, #"{"a":1,"а":2}"#, #"{"i":1,"ì":2}"#,
        ] {
            #expect(throws: Never.self) { try JSONValue.parse(text, duplicates: .rejectAlike) }
        }
        #expect(throws: Never.self) { try JSONValue.parse(#"{"to":1,"TO":2}"#) }
    }
}
