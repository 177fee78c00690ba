import AssentCore
import Testing

@testable import AssentEngine

@Suite("JSON that is approved")
struct BoundJSONTests {
    @Test(
        "A body in which two parsers could see two things is refused",
        arguments: [
            // A parser in C may cut at U+0000.
            #"{"to\u0000":"Eve","to":"Bob"}"#, #"{"a":{"to\u0000x":1}}"#, #"{"a":[{"\u0000":1}]}"#,
            #"{"to":"Bob\u0000Eve"}"#, #"["\u0000"]"#, "\"\\u0000\"",
            // Some drop or show differently.
            #"{"to\u0008":"Eve"}"#, #"{"\u001b[2Kto":"Eve"}"#, #"{"to\u007f":"Eve"}"#, #"{"to\u0085":"Eve"}"#,
            #"{"to\n":"Eve"}"#, #"{"to\t":"Eve"}"#,
            // One name to many.
            #"{"to":"Bob","to":"Eve"}"#, #"{"to":"Bob","\u0074o":"Eve"}"#, #"{"to":"Bob","TO":"Eve"}"#,
            #"{"caf\u00e9":1,"cafe\u0301":2}"#, #"{"\u212b":1,"\u00c5":2}"#, #"{"\u1100\u1161":1,"\uac00":2}"#,
            // Half a character.
            #"{"to":"\ud800"}"#, #"{"to":"\udc00"}"#, #"{"\ud800":"a"}"#, #"{"to":"\ud800\ud800"}"#,
            #"{"to":"\ud83d","x":"\ude00"}"#,
            // Numbers that are something else as a double.
            #"{"amount":9007199254740993}"#, #"{"amount":-9007199254740993}"#,
            #"{"amount":100000000000000000001}"#, #"{"amount":0.1000000000000000055511151231257827}"#,
            #"{"amount":1.00000000000000000001}"#, #"{"amount":1e309}"#, #"{"amount":-1e309}"#,
            #"{"amount":1e-400}"#, #"{"amount":1e999999999999999999999}"#, #"{"amount":1e-999999999}"#,
            #"{"amount":1e1000000}"#,
            // The exponents at the ends of 64 bits, of which the least has no positive counterpart.
            #"{"amount":1e9223372036854775807}"#, #"{"amount":1e-9223372036854775807}"#,
            #"{"amount":1e-9223372036854775808}"#, #"{"amount":-0.0e-9223372036854775808}"#,
            #"{"amount":9007199254740992}"#, #"{"amount":0.30000000000000004}"#, #"{"amount":1234567890.123456}"#,
            #"{"amount":1.23456789012345e-310}"#,
            // What only some take.
            #"{"amount":01}"#, #"{"amount":+1}"#, #"{"amount":.5}"#, #"{"amount":1.}"#, #"{"amount":NaN}"#,
            #"{"amount":0x10}"#, #"{"to":"Bob",}"#, #"{"to":"Bob"} {"to":"Eve"}"#, #"{/**/"to":"Bob"}"#,
            #"{'to':'Bob'}"#, "{\"to\":\"B\tob\"}", "\u{FEFF}{}", #"{"to":"Bob"}x"#,
        ])
    func refused(_ text: String) {
        #expect(throws: EngineError(.invalidRequest)) { try BoundJSON.parse(Array(text.utf8)) }
    }

    @Test("The reason says what to do about a number")
    func reason() {
        let error = #expect(throws: EngineError.self) { try BoundJSON.parse(Array("9007199254740993".utf8)) }
        #expect(error?.detail.contains("send it as a string") == true)
    }

    @Test(
        "Numbers that a double holds are taken, however they are written",
        arguments: [
            "0", "-0", "-0.0", "0e5", "200.00", "0.1", "-0.10", "1e2", "1E+2", "100e-2", "123456789012345",
            "1234567890123.45", "123456789.01", "1e22", "1e308", "5e-324", "1000000000000000000000", "0.000001",
            "100000000000000000000.000",
        ])
    func numbers(_ text: String) throws {
        _ = try BoundJSON.parse(Array(#"{"amount":\#(text)}"#.utf8))
    }

    @Test("Ordinary bodies are taken", arguments: BoundJSONCorpus.agreed)
    func taken(_ text: String) throws {
        _ = try BoundJSON.parse(Array(text.utf8))
    }

    @Test("A body that is too large says so")
    func size() {
        #expect(throws: EngineError(.tooLarge)) { try BoundJSON.parse(Array("[1]".utf8), limits: JSONLimits(bytes: 2)) }
    }
}

/// Bodies of ordinary requests.
enum BoundJSONCorpus {
    static let agreed = [
        #"{"to":"Bob","amount":"200.00","currency":"EUR"}"#,
        #"{"to":"José Ñandú","note":"l1\nl2\t\"q\" \\ \/ \u20ac"}"#,
        #"{"emoji":"\ud83d\ude00","straight":"😀"}"#, "{}", "[]", #"{"a":{"b":[{"c":null},true,false]}}"#,
        #"{"":"empty name"}"#, #"{"a b":1,"a-b":2,"a_b":3}"#,
    ]
}
