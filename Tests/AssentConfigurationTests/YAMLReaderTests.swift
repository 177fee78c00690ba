import AssentCore
import Testing

import AssentConfiguration

@Suite("Settings are read strictly")
struct YAMLReaderTests {
    @Test("A key that nobody knows is refused with its line and what is known")
    func unknownKey() throws {
        let reader = try YAMLReader.document(file: "a.yaml", text: "port: 1\n\nprot: 2\n")
        #expect(try reader.integer("port", default: 0, in: 0...10) == 1)
        let error = #expect(throws: ConfigurationError.self) { try reader.finish() }
        #expect(error?.description == "a.yaml:3: unknown key prot; known here: port")
    }

    @Test("A nested mistake names its path and its line")
    func nested() throws {
        let reader = try YAMLReader.document(file: "a.yaml", text: "tls:\n  certificate: [1]\n")
        let tls = try reader.mapping("tls")
        let error = #expect(throws: ConfigurationError.self) { try tls.string("certificate") }
        #expect(error?.description == "a.yaml:2: tls.certificate must be a text")
        let missing = #expect(throws: ConfigurationError.self) { try tls.string("key") }
        #expect(missing?.message == "tls.key is missing")
    }

    @Test(
        "What is no mapping, no YAML or nothing at all is refused",
        arguments: ["", "- a\n", "a: [", "a: 1\na: 2\n", "? [x]\n: 1\n"])
    func malformed(text: String) {
        #expect(throws: ConfigurationError.self) { try YAMLReader.document(file: "a.yaml", text: text) }
    }

    @Test("Numbers outside their range and values of another type are refused")
    func types() throws {
        let reader = try YAMLReader.document(file: "a.yaml", text: "port: 70000\nflag: maybe\nlist: text\nname: {}\n")
        #expect(throws: ConfigurationError.self) { try reader.optionalInteger("port", in: 0...65535) }
        #expect(throws: ConfigurationError.self) { try reader.optionalBool("flag") }
        #expect(throws: ConfigurationError.self) { try reader.strings("list") }
        #expect(throws: ConfigurationError.self) { try reader.list("list") }
        #expect(throws: ConfigurationError.self) { try reader.string("name") }
    }

    @Test("A value of any shape becomes JSON with its types")
    func json() throws {
        let reader = try YAMLReader.document(
            file: "a.yaml", text: "v: {a: 1, b: \"1\", c: true, d: null, e: [x, 2.5], f: 'yes'}\n")
        #expect(
            try reader.json("v")?.serialized() == #"{"a":1,"b":"1","c":true,"d":null,"e":["x",2.5],"f":"yes"}"#)
    }
}
