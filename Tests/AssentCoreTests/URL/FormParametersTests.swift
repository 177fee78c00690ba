import AssentCore
import Testing

@Suite("Parameters as a form")
struct FormParametersTests {
    @Test(
        "13 Names are sorted by their bytes, lists repeat them, and everything but unreserved characters is escaped",
        arguments: [
            ([:], ""), (["b": "2", "a": "1", "B": "3"], "B=3&a=1&b=2"), (["a": ["x", 1, true]], "a=x&a=1&a=true"),
            (["a": ""], "a="), (["a b": "c d+e&f=g"], "a%20b=c%20d%2Be%26f%3Dg"),
            (["é": "日"], "%C3%A9=%E6%97%A5"), (["a": false], "a=false"),
        ] as [(JSONObject, String)])
    func written(parameters: JSONObject, text: String) throws {
        #expect(try FormEncoding.encode(FormItems(parameters: parameters)) == text)
    }

    @Test("13 Numbers are their text, whatever their size")
    func numbers() throws {
        let parameters = try #require(try JSONValue.parse(#"{"a":1.10,"b":1e400,"c":12345678901234567890}"#).object)
        #expect(
            try FormEncoding.encode(FormItems(parameters: parameters)) == "a=1.10&b=1e400&c=12345678901234567890")
        // JSON has no text for these, so there is nothing that could be sent.
        #expect(JSONNumber(Double.nan) == nil && JSONNumber(Double.infinity) == nil)
    }

    @Test(
        "13 What has no form is refused",
        arguments: [["a": nil], ["a": []], ["a": [nil]], ["a": [:]], ["a": ["b": 1]], ["a": [["b"]]]] as [JSONObject])
    func refused(parameters: JSONObject) {
        #expect(throws: WireError(.malformed, "")) { try FormItems(parameters: parameters) }
    }

    @Test("13 A name that is there twice is refused; names that only normalise alike are two names")
    func twice() throws {
        let twice = JSONObject([.init(name: "a", value: 1), .init(name: "a", value: 2)])
        #expect(throws: WireError(.duplicate, "")) { try FormItems(parameters: twice) }
        let alike = JSONObject([.init(name: "\u{E9}", value: 1), .init(name: "e\u{301}", value: 2)])
        #expect(try FormEncoding.encode(FormItems(parameters: alike)) == "e%CC%81=2&%C3%A9=1")
    }
}
