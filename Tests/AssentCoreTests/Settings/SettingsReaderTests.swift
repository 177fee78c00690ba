import AssentCore
import Testing

@Suite("SettingsReader: what is wrong is noted with its place, and reading goes on")
struct SettingsReaderTests {
    private func reader(_ json: JSONValue) -> SettingsReader<Void> { SettingsReader(SettingsValue(json)) }

    @Test("All mistakes are noted in their order, each with its path")
    func several() {
        let settings = reader(["a": 1, "b": ["c": "x"], "list": [["d": 1], 7]])
        #expect(settings.string("a") == "")
        #expect(settings.string("missing") == "" && settings.string("missing too", default: "x") == "x")
        let inner = settings.mapping("b")
        #expect(inner.integer("c", default: 3, in: 0...9) == 3)
        for element in settings.list("list") { #expect(!element.bool("d", default: false)) }
        #expect(
            settings.issues.map(\.description) == [
                "a: must be a text", "missing: is missing", "b.c: must be a whole number from 0 to 9",
                "list[1]: must be a mapping", "list[0].d: must be true or false",
            ])
    }

    @Test("Keys that were never asked for and keys that occur twice are noted; ignored keys are not")
    func finish() {
        let settings = reader(
            .object(
                JSONObject([
                    .init(name: "a", value: "x"), .init(name: "a", value: "y"), .init(name: "b", value: 1),
                    .init(name: "c", value: 1),
                ])))
        _ = settings.string("a")
        settings.ignore("c")
        settings.finish()
        #expect(settings.issues.map(\.description) == ["a: occurs twice", "b: unknown key; known here: a, c"])
    }

    @Test("A key that is missing and is there in another spelling is one issue, with the place of what is there")
    func misspelled() {
        let settings = reader(["publicUrl": "x", "access_tokens": ["a": "b"], "listen-on": "y"])
        #expect(settings.string("publicURL") == "" && settings.string("missing") == "")
        _ = settings.mapping("accessTokens")
        _ = settings.optionalString("listenOn")
        settings.finish()
        #expect(
            settings.issues.map(\.description) == [
                "publicUrl: unknown key; write publicURL", "missing: is missing",
                "access_tokens: unknown key; write accessTokens", "listen-on: unknown key; write listenOn",
            ])
    }

    @Test("A mapping that is missing, or something else, is one issue and not one for each key in it")
    func missingMapping() {
        let settings = reader(["text": "x"])
        for key in ["text", "missing"] {
            let inner = settings.mapping(key)
            #expect(inner.string("a") == "" && inner.list("b").isEmpty)
            inner.finish()
        }
        #expect(settings.issues.map(\.description) == ["text: must be a mapping", "missing: is missing"])
    }

    @Test("In JSON only a string is a text, and an empty one is none")
    func texts() {
        let settings = reader(["a": true, "b": "", "c": nil, "d": ["x", ""], "e": ["n": 1], "f": ["n": "x"]])
        for key in ["a", "b", "c"] { #expect(settings.optionalString(key) == nil) }
        #expect(settings.strings("d").isEmpty && settings.stringsByName("e").isEmpty)
        #expect(settings.issues.map(\.path) == ["a", "b", "c", "d", "e"])
        #expect(settings.optionalStrings("d", allowingEmpty: true) == ["x", ""])
        #expect(settings.stringsByName("f") == ["n": "x"])
        #expect(settings.optionalString("g") == nil && settings.optionalStrings("g") == nil)
        #expect(settings.issues.count == 5)
    }

    @Test("Integers keep to their range at both ends, and fractions are none")
    func integers() {
        let settings = reader([
            "low": 0, "high": 10, "below": -1, "above": 11, "half": .number(JSONNumber(0.5) ?? .init(0)),
        ])
        #expect(settings.optionalInteger("low", in: 0...10) == 0 && settings.optionalInteger("high", in: 0...10) == 10)
        for key in ["below", "above", "half"] { #expect(settings.optionalInteger(key, in: 0...10) == nil) }
        #expect(settings.issues.map(\.path) == ["below", "above", "half"])
    }
}
