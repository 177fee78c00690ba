import AssentCore
import Testing

/// The cases of the public JSON test suite that every parser must accept, by description.
@Suite("JSON that must be accepted")
struct JSONAcceptTests {
    @Test(
        "Arrays, numbers, objects, lonely values",
        arguments: AcceptedJSON.arrays + AcceptedJSON.numbers + AcceptedJSON.objects + AcceptedJSON.structures)
    func accepted(text: String) throws {
        let value = try JSONValue.parse(text)
        #expect(try JSONValue.parse(value.serialized()) == value)
    }

    @Test("Strings, with what they stand for", arguments: AcceptedJSON.strings)
    func strings(text: String, expected: String) throws {
        let value = try JSONValue.parse(text)
        let string = try #require(value.string ?? value.array?.first?.string)
        #expect(Array(string.utf8) == Array(expected.utf8))
        #expect(try JSONValue.parse(value.serialized()) == value)
    }

    @Test(
        "A repeated member is kept for who asks for it, and refused otherwise",
        arguments: [#"{"a":"b","a":"c"}"#, #"{"a":"b","a":"b"}"#, #"{"a":1,"\u0061":2}"#])
    func duplicates(text: String) throws {
        expectExactly(JSONError.duplicateMember(offset: text.hasPrefix(#"{"a":1"#) ? 7 : 9)) {
            try JSONValue.parse(text)
        }
        let kept = try #require(try JSONValue.parse(text, duplicates: .keep).object)
        #expect(kept.members.count == 2)
        #expect(kept.duplicateNames == ["a"])
        #expect(kept["a"] == kept.members[1].value)
    }

    @Test(
        "A repeated member is found wherever it stands, among few and among many", arguments: [2, 14, 15, 16, 17, 40])
    func duplicatesAmongMany(count: Int) throws {
        let names = (0..<count).map { "name\($0)" }
        // What normalises to the same is another name.
        let members = (names + ["\u{E9}", "e\u{301}"]).map { "\"\($0)\":0" }
        #expect(try JSONValue.parse("{\(members.joined(separator: ","))}").object?.members.count == count + 2)
        for name in names {
            let text = "{\(members.joined(separator: ",")),\"\(name)\":1}"
            #expect(throws: JSONError.self, "\(name)") { try JSONValue.parse(text) }
            #expect(try JSONValue.parse(text, duplicates: .keep).object?.duplicateNames == [name])
        }
    }

    /// Cases that RFC 8259 leaves to the implementation, and what ours does: whatever size of number, no text that is
    /// not UTF-8.
    @Test(
        "Numbers of any size are kept as their text",
        arguments: [
            "123.456e-789",
            "0.4e006699999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999969999999006",
            "-1e+9999", "1.5e+9999", "-123123e100000", "123123e100000", "123e-10000000",
            "-123123123123123123123123123123", "100000000000000000000",
            "-237462374673276894279832749832423479823246327846", "1e400", "1.10", "-0.0",
        ])
    func hugeNumbers(text: String) throws {
        let value = try JSONValue.parse("[\(text)]")
        #expect(value.array?.first?.number?.description == text)
        #expect(value.serialized() == "[\(text)]")
    }
}
