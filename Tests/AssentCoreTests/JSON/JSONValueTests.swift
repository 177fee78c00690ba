import AssentCore
import AssentTesting
import Testing

@Suite("JSONValue")
struct JSONValueTests {
    static let document =
        #"{"a":[1,-2.50e+3,"x\"\\\u00e9\ud83d\ude00",null,true,false,{}],"b":{"c":[[],[{"d":""}]]},"é":0} "#

    @Test("Members keep their order and numbers their text")
    func order() throws {
        let text = #"{"z":1.0,"a":1e2,"m":-0,"b":100000000000000000001}"#
        let value = try JSONValue.parse(text)
        #expect(value.object?.names == ["z", "a", "m", "b"])
        #expect(value.serialized() == text)
        #expect(value["z"]?.integer == nil)
        #expect(value["z"]?.number?.double == 1)
        #expect(value["b"]?.integer == nil)
        #expect(value["m"]?.integer == 0)
        #expect(try JSONValue.parse("9223372036854775807").integer == .max)
        #expect(try JSONValue.parse("-9223372036854775808").integer == .min)
        #expect(try JSONValue.parse("9223372036854775808").integer == nil)
        #expect(try JSONValue.parse("1e400").number?.double == .infinity)
        for text in ["0", "-0", "1", "-17", "9007199254740993", "9223372036854775807", "-9223372036854775808"] {
            let read = try #require(try JSONValue.parse(text).number?.double)
            #expect(read.bitPattern == Double(text)?.bitPattern, "\(text)")
        }
    }

    @Test("What is written escapes only what must be, and control characters always")
    func writing() {
        let value: JSONValue = [
            "s": "\"\\/\u{8}\u{C}\n\r\t\u{0}\u{1F}\u{7F}é\u{2028}", "n": .integer(-5), "l": [nil, true, false, []],
            "o": [:],
        ]
        #expect(
            value.serialized()
                == #"{"s":"\"\\/\u0008\u000c\n\r\t\u0000\u001f"# + "\u{7F}é\u{2028}"
                + #"","n":-5,"l":[null,true,false,[]],"o":{}}"#)
        #expect(Array(value.serialized().utf8) == value.serializedBytes())
    }

    @Test("Every character survives writing and reading")
    func characters() throws {
        for code in (UInt32(0)...0x3FF).map({ $0 }) + [
            0xD7FF, 0xE000, 0xFFFD, 0xFFFE, 0xFFFF, 0x10000, 0x1F600, 0x10FFFF,
        ] {
            let scalar = try #require(Unicode.Scalar(code))
            let value = JSONValue.string("a" + String(Character(scalar)) + "b")
            #expect(try JSONValue.parse(value.serializedBytes()) == value)
        }
    }

    @Test("Texts that only normalise alike are different values, members and names")
    func normalisation() throws {
        let composed = JSONValue.string("\u{E9}")
        let decomposed = JSONValue.string("e\u{301}")
        #expect(composed != decomposed)
        #expect(Set([composed, decomposed]).count == 2)
        let value = try JSONValue.parse("{\"\u{E9}\":1,\"e\u{301}\":2}")
        #expect(value["\u{E9}"] == 1)
        #expect(value["e\u{301}"] == 2)
        #expect(JSONObject([.init(name: "\u{E9}", value: 1)]) != JSONObject([.init(name: "e\u{301}", value: 1)]))
    }

    @Test("Equality looks at order and at the text of numbers")
    func equality() throws {
        #expect(try JSONValue.parse(#"{"a":1,"b":2}"#) != JSONValue.parse(#"{"b":2,"a":1}"#))
        #expect(try JSONValue.parse("1") != JSONValue.parse("1.0"))
        #expect(try JSONValue.parse(" [ 1 , {} ] ") == JSONValue.parse("[1,{}]"))
        #expect(JSONValue.null != JSONValue.bool(false))
    }

    @Test("Members are set, replaced and removed in place")
    func members() throws {
        var object = try #require(try JSONValue.parse(#"{"a":1,"b":2,"a":3}"#, duplicates: .keep).object)
        #expect(object["a"] == 3)
        object["b"] = "x"
        object["c"] = nil
        object["d"] = true
        #expect(JSONValue.object(object).serialized() == #"{"a":1,"b":"x","a":3,"d":true}"#)
        object["a"] = nil
        #expect(object.names == ["b", "d"])
        #expect(object.duplicateNames.isEmpty)
    }

    @Test("Each accessor gives its own kind only")
    func accessors() throws {
        let values: [JSONValue] = [nil, true, 1, "s", [], [:]]
        #expect(values.map { $0.bool != nil } == [false, true, false, false, false, false])
        #expect(values.map { $0.number != nil } == [false, false, true, false, false, false])
        #expect(values.map { $0.string != nil } == [false, false, false, true, false, false])
        #expect(values.map { $0.array != nil } == [false, false, false, false, true, false])
        #expect(values.map { $0.object != nil } == [false, false, false, false, false, true])
        #expect(values.map { $0["x"] == nil } == Array(repeating: true, count: 6))
        #expect(JSONValue.array(["a", "b"]).strings == ["a", "b"])
        #expect(JSONValue.array(["a", 1]).strings == nil)
    }

    @Test(
        "Numbers are made only where JSON has a text for them",
        arguments: [0.0, -1.5, 1e300, 1e-300, 1e21, 123456789.125])
    func numbers(value: Double) throws {
        let number = try #require(JSONNumber(value))
        #expect(try JSONValue.parse("[\(number)]").array?.first?.number?.double == value)
        #expect(JSONNumber(Double.nan) == nil)
        #expect(JSONNumber(Double.infinity) == nil)
        #expect(JSONNumber(UInt64.max).description == "18446744073709551615")
    }

    @Test("A description tells the kind and nothing of the content")
    func description() throws {
        let value = try JSONValue.parse(#"{"password":"hunter2","pins":[1234]}"#)
        for text in [
            "\(value)", String(reflecting: value), "\([value])", "\(Optional(value) as Any)",
            "\(JSONValue.string("hunter2"))", "\(value["pins"] ?? nil)",
        ] {
            #expect(!text.contains("hunter2") && !text.contains("1234"))
        }
        expectExactly(JSONError.unexpectedByte(offset: 1)) { try JSONValue.parse("[hunter2]") }
    }

    @Test("Bytes, depth and number of values are bounded, exactly")
    func limits() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(throws: Never.self) { try JSONValue.parse(nested(64)) }
        expectExactly(JSONError.tooDeep(limit: 64)) { try JSONValue.parse(nested(65)) }
        #expect(throws: Never.self) { try JSONValue.parse(nested(512), limits: JSONLimits(depth: 10_000)) }
        expectExactly(JSONError.tooDeep(limit: 0)) { try JSONValue.parse("[]", limits: JSONLimits(depth: 0)) }
        #expect(throws: Never.self) { try JSONValue.parse("1", limits: JSONLimits(depth: 0)) }
        #expect(throws: Never.self) { try JSONValue.parse("[1,2]", limits: JSONLimits(bytes: 5, values: 3)) }
        expectExactly(JSONError.tooLarge(limit: 4)) { try JSONValue.parse("[1,2]", limits: JSONLimits(bytes: 4)) }
        expectExactly(JSONError.tooManyValues(limit: 2)) {
            try JSONValue.parse("[1,2]", limits: JSONLimits(values: 2))
        }
        expectExactly(JSONError.tooManyValues(limit: 2)) {
            try JSONValue.parse(#"{"a":{"b":1}}"#, limits: JSONLimits(values: 2))
        }
    }

    @Test("A document that is cut anywhere is refused, and never traps")
    func truncation() throws {
        let bytes = Array(Self.document.utf8)
        #expect(throws: Never.self) { try JSONValue.parse(bytes) }
        for end in 0..<(bytes.count - 1) {
            #expect(throws: JSONError.self) { try JSONValue.parse(Array(bytes[..<end])) }
        }
    }

    @Test("Every change of a single byte is refused or survives writing and reading")
    func singleBytes() throws {
        let bytes = Array(Self.document.utf8)
        for index in bytes.indices {
            for byte in UInt8.min...UInt8.max where byte != bytes[index] {
                var changed = bytes
                changed[index] = byte
                guard let value = try? JSONValue.parse(changed, duplicates: .keep) else { continue }
                if try JSONValue.parse(value.serializedBytes(), duplicates: .keep) != value {
                    Issue.record("byte \(index) as \(byte) does not survive")
                }
            }
        }
    }

    @Test("Random damage is refused or survives writing and reading")
    func mutations() throws {
        let seeds = [Array(Self.document.utf8), Array(#"[{"a":1.5e-3},"\ud83d\ude00\n",[[]],null]"#.utf8)]
        try Mutations.ofBytes(seeds, count: 20_000) { bytes throws in
            guard let value = try? JSONValue.parse(bytes) else { return }
            if try JSONValue.parse(value.serializedBytes()) != value { Issue.record("\(bytes) does not survive") }
        }
    }

    @Test("Random values survive writing and reading")
    func roundTrip() throws {
        let random = SeededRandom(seed: 5)
        func value(_ depth: Int) -> JSONValue {
            let bytes = random.bytes(6)
            let text = String(decoding: random.bytes(Int(bytes[1] % 12)), as: UTF8.self)
            switch bytes[0] % (depth > 5 ? 4 : 6) {
            case 0: return .bool(bytes[2] & 1 == 0)
            case 1: return .integer(Int64(bytes[2]) - Int64(bytes[3]) << 40)
            case 2: return .string(text)
            case 3: return .null
            case 4: return .array((0..<(bytes[2] % 5)).map { _ in value(depth + 1) })
            default:
                return .object(
                    JSONObject((0..<(bytes[2] % 5)).map { .init(name: "\($0)" + text, value: value(depth + 1)) }))
            }
        }
        for _ in 0..<500 {
            let value = value(0)
            if try JSONValue.parse(value.serializedBytes()) != value { Issue.record("a value does not survive") }
        }
    }

    @Test("A member without a value is left out, and null is a value")
    func omittingNil() {
        let object = JSONObject(omittingNil: ["a": 1, "b": nil, "c": .null, "d": String?.none.map(JSONValue.string)])
        #expect(object == ["a": 1, "c": .null])
        #expect(JSONValue(omittingNil: ["a": 1, "b": nil]) == ["a": 1])
    }
}
