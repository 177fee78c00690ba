import AssentConfiguration
import AssentCore
import Foundation
import Testing

@Suite("Settings are read strictly")
struct ConfigurationFileTests {
    /// Reads `text` as the file `a.yaml`, and says what is wrong.
    private func problem(_ text: String, _ body: (SettingsReader<Void>) throws -> Void) -> String? {
        do {
            try ConfigurationFile.read(text, file: "a.yaml", body)
            return nil
        } catch {
            return "\(error)"
        }
    }

    @Test("A key that nobody knows is refused with its line and what is known")
    func unknownKey() {
        let problem = problem("port: 1\n\nprot: 2\n") { #expect($0.integer("port", default: 0, in: 0...10) == 1) }
        #expect(problem == "a.yaml:3: prot: unknown key; known here: port")
    }

    @Test("A line that begins with a tab is named, and what to type instead")
    func tab() {
        #expect(
            problem("tls:\n\tcertificate: a\n") { _ in }
                == "a.yaml:2: this is not YAML: the line begins with a tab. Indent with spaces")
        #expect(problem("a: \"x\ty\"\n") { _ = $0.string("a") } == nil)
    }

    @Test("A file that cannot be read is said to be missing, a directory, or no text")
    func unreadable() throws {
        let directory = NSTemporaryDirectory()
        #expect(ConfigurationFile.whyUnreadable(directory + "/none/such.yaml") == "there is no such file")
        #expect(ConfigurationFile.whyUnreadable(directory) == "it is a directory")
    }

    @Test("A nested mistake names its path and its line")
    func nested() {
        let text = "tls:\n  certificate: [1]\nroutes:\n  - {name: a}\n  - {name: b, port: no}\n"
        #expect(
            problem(text) { _ = $0.mapping("tls").string("certificate") }
                == "a.yaml:2: tls.certificate: must be a text")
        #expect(problem(text) { _ = $0.mapping("tls").string("key") } == "a.yaml:1: tls.key: is missing")
        #expect(
            problem(text) { for route in $0.list("routes") { _ = route.optionalInteger("port", in: 1...9) } }
                == "a.yaml:5: routes[1].port: must be a whole number from 1 to 9")
    }

    @Test("A key may have dots and brackets itself, as hosts do, and keeps its line")
    func dots() {
        let text = "pins:\n  am:\n    x: 1\n  am.bank.example:\n    - a\n  \"[::1]\":\n    - b\n"
        for (key, line) in [("am", 2), ("am.bank.example", 4), ("[::1]", 6)] {
            #expect(
                problem(text) { throw $0.mapping("pins").issue(key, "is wrong") }
                    == "a.yaml:\(line): \(SettingsIssue.join("pins", key)): is wrong")
        }
    }

    @Test("What is noted first is named, also when the body gives up because of it")
    func first() {
        struct Stop: Error {}
        let problem = problem("a: []\nb: []\n") { settings in
            _ = settings.string("b")
            _ = settings.string("a")
            throw Stop()
        }
        #expect(problem == "a.yaml:2: b: must be a text")
    }

    @Test("Of a body that gives up because a key is missing, the key is named that is there in another spelling")
    func misspelled() {
        let text = "a: 1\nin-ner:\n  Names: [x]\n"
        let outer = problem(text) { settings in
            guard settings.has("inner") else { throw settings.issue("inner", "is needed") }
        }
        #expect(outer == "a.yaml:2: in-ner: unknown key; write inner")
        let inner = problem(text) { settings in
            let found = settings.mapping("in-ner")
            guard found.has("names") else { throw found.issue("names", "are needed") }
        }
        #expect(inner == "a.yaml:3: in-ner.Names: unknown key; write names")
        let missing = problem("a: 1\n") { throw $0.issue("inner", "is needed") }
        #expect(missing?.hasSuffix(" inner: is needed") == true)
    }

    @Test("An error of the body that is not about the settings is thrown as it is")
    func foreign() {
        struct Stop: Error {}
        #expect(throws: Stop.self) { try ConfigurationFile.read("a: 1\n", file: "a.yaml") { _ in throw Stop() } }
    }

    @Test(
        "What is no mapping, no YAML or nothing at all is refused",
        arguments: ["", "- a\n", "a: [", "a: 1\na: 2\n", "? [x]\n: 1\n"])
    func malformed(text: String) {
        #expect(throws: ConfigurationError.self) { try ConfigurationFile.read(text, file: "a.yaml") { _ in } }
    }

    @Test("A small file of aliases that would become huge is refused, and so is deep nesting")
    func bounds() {
        var text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
        for level in 1...8 {
            text +=
                "a\(level): &a\(level) [" + Array(repeating: "*a\(level - 1)", count: 10).joined(separator: ", ")
                + "]\n"
        }
        #expect(problem(text) { _ in }?.contains("too many values") == true)
        let deep = "a: " + String(repeating: "[", count: 80) + String(repeating: "]", count: 80) + "\n"
        #expect(problem(deep) { _ in }?.contains("nests them too deeply") == true)
    }

    @Test("Numbers outside their range and values of another type are refused")
    func types() {
        let text = "port: 70000\nflag: maybe\nlist: text\nname: {}\nempty:\n"
        #expect(problem(text) { _ = $0.optionalInteger("port", in: 0...65535) }?.hasPrefix("a.yaml:1: port") == true)
        #expect(problem(text) { _ = $0.optionalBool("flag") }?.hasPrefix("a.yaml:2: flag") == true)
        #expect(problem(text) { _ = $0.strings("list") }?.hasPrefix("a.yaml:3: list") == true)
        #expect(problem(text) { _ = $0.list("list") }?.hasPrefix("a.yaml:3: list") == true)
        #expect(problem(text) { _ = $0.string("name") }?.hasPrefix("a.yaml:4: name") == true)
        #expect(problem(text) { _ = $0.optionalString("empty") }?.hasPrefix("a.yaml:5: empty") == true)
    }

    @Test("A value of any shape becomes JSON with its types, and a number can also be read as a text")
    func json() throws {
        let text = "v: {a: 1, b: \"1\", c: true, d: null, e: [x, 2.5], f: 'yes'}\nlabel: 007\n"
        try ConfigurationFile.read(text, file: "a.yaml") {
            #expect($0.json("v")?.serialized() == #"{"a":1,"b":"1","c":true,"d":null,"e":["x",2.5],"f":"yes"}"#)
            #expect($0.string("label") == "007")
        }
    }
}
