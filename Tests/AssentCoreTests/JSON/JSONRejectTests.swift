import AssentCore
import Testing

/// The cases of the public JSON test suite that every parser must reject, by description; and those of the cases left
/// to the implementation that ours rejects.
@Suite("JSON that must be rejected")
struct JSONRejectTests {
    @Test(
        "Arrays, numbers, objects, strings, structures",
        arguments: RejectedJSON.arrays + RejectedJSON.numbers + RejectedJSON.objects + RejectedJSON.strings
            + RejectedJSON.structures)
    func rejected(text: String) {
        #expect(throws: JSONError.self) { try JSONValue.parse(text) }
        #expect(throws: JSONError.self) { try JSONValue.parse(text, duplicates: .keep) }
    }

    @Test(
        "Escapes that are half of a pair are rejected: no two readers agree on them",
        arguments: [
            #"["\uDADA"]"#, #"["\uD888\u1234"]"#, #"["\uD800\n"]"#, #"["\uDd1ea"]"#, #"["\uD800\uD800\n"]"#,
            #"["\ud800"]"#, #"["\ud800abc"]"#,
            #"["\uDd1e\uD834"]"#, #"["\uDFAA"]"#, #"{"\uDFAA":0}"#, #"["\uD834"]"#, #"["\uDC00\uD800"]"#,
        ])
    func halfPairs(text: String) {
        #expect {
            try JSONValue.parse(text)
        } throws: { error in
            (error as? JSONError)?.code == .invalidText
        }
    }

    @Test("Bytes that are no UTF-8, marks and other encodings are rejected", arguments: RejectedJSON.bytes)
    func otherBytes(bytes: [UInt8]) {
        #expect(throws: JSONError.self) { try JSONValue.parse(bytes) }
    }

    @Test("A hundred thousand opening brackets, objects in arrays, commas: an error, no deep recursion")
    func openBrackets() {
        expectExactly(JSONError.tooDeep(limit: 64)) { try JSONValue.parse(String(repeating: "[", count: 100_000)) }
        expectExactly(JSONError.tooDeep(limit: 64)) {
            try JSONValue.parse(String(repeating: "[{\"\":", count: 50_000))
        }
        let greedy = JSONLimits(depth: .max)
        expectExactly(JSONError.tooDeep(limit: 512)) {
            try JSONValue.parse(String(repeating: "[", count: 100_000), limits: greedy)
        }
        expectExactly(JSONError.tooDeep(limit: 64)) {
            try JSONValue.parse(String(repeating: "[", count: 500) + String(repeating: "]", count: 500))
        }
    }
}
