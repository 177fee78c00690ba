import AssentCore
import AssentEngine
import Testing

@Suite("The media type of a bound body")
struct BoundMediaTypeTests {
    @Test(
        "What every program reads alike is taken, in one form",
        arguments: [
            ("application/json", "application/json"), ("Application/JSON ; ", "application/json"),
            ("application/json; charset=utf-8", "application/json;charset=utf-8"),
            ("application/json;Charset=\"UTF-8\"", "application/json;charset=\"utf-8\""),
            ("multipart/form-data; Boundary=AbC", "multipart/form-data;boundary=AbC"),
            ("text/plain;format=Flowed", "text/plain;format=Flowed"),
        ])
    func taken(text: String, normalised: String) throws {
        #expect(try #require(BoundMediaType(text)).normalised == normalised)
    }

    @Test(
        "What one of them could read otherwise is none",
        arguments: [
            "", "json", "/json", "application/", "application/json/x", "application json", "application/json x",
            "application/json, text/plain", "application/x-www-form-urlencoded,a+json",
            "application/x-www-form-urlencoded a+json", "application/json; charset=utf-7",
            "application/json;charset=UTF-16LE", "application/json;charset=IBM037", "application/json;charset",
            "application/json;charset=", "application/json;charset=utf8", "application/json; charset = utf-8",
            "application/json;charset=utf-8;charset=utf-8", "application/json;charset=utf-8;charset=utf-7",
            "application/json;charset*=''utf-7", "application/json;charsets=utf-8", "application/json;version=1",
            "application/json;=utf-7", "application/json;charset='utf-8'", "application/json;charset=\"utf\\-8\"",
            "application/json;\u{0}charset=utf-8", "application/json\u{c}", "application/j\u{17f}on", "a/b+json;x=1",
            "text/plain;charset=iso-8859-1", "text/plain;x=\";charset=utf-7\"",
            "application/json;x=" + String(repeating: "a", count: 300),
        ])
    func refused(text: String) {
        #expect(BoundMediaType(text) == nil)
    }

    @Test("Another type than the one that is wanted is refused")
    func required() throws {
        #expect(try BoundMediaType.required("application/json", "application/JSON").isJSON)
        let error = #expect(throws: EngineError.self) { try BoundMediaType.required("application/json", "a/b+json") }
        #expect(error?.code == .unsupportedMediaType)
    }
}
