import AssentCore
import AssentPayload
import HTTPTypes
import Testing

@Suite("Payload encryption: what a sealed request may not say")
struct ContentRulesTests {
    private func refusal(
        _ authority: String? = "api.bank.example", _ path: String? = "/transfers", _ fields: HTTPFields = [:]
    ) throws -> ContentRefusal? {
        let request = HTTPRequest(
            method: .post, scheme: "https", authority: authority, path: path, headerFields: fields)
        return ContentRules.refusal(of: request, at: try Origin("https://api.bank.example"))
    }

    @Test("A request is for the listener that opened it, however its authority is written, or it is misdirected")
    func authorities() throws {
        for authority in ["api.bank.example", "API.bank.example", "api.bank.example:443"] {
            #expect(try refusal(authority) == nil)
        }
        for authority in [
            "api.bank.example:8443", "gateway.bank.example", "bank.example", "127.0.0.1", "[::1]",
            "api.bank.example.evil",
        ] {
            #expect(try refusal(authority) == .misdirected, "\(authority)")
        }
        // Of another scheme it is another origin, also when the text is the same.
        let plain = HTTPRequest(method: .get, scheme: "http", authority: "api.bank.example", path: "/")
        #expect(ContentRules.refusal(of: plain, at: try Origin("https://api.bank.example")) == .misdirected)
        for authority in ["", "user@api.bank.example", "api.bank.example:", "api.bank.example:0", "a b", "a\\b"] {
            #expect(try refusal(authority) == .badRequest, "\(authority)")
        }
        #expect(try refusal(nil) == .badRequest)
        let host = try #require(HTTPField.Name("Host"))
        #expect(try refusal("api.bank.example", "/", [host: "api.bank.example"]) == nil)
        #expect(try refusal("api.bank.example", "/", [host: "other.bank.example"]) == .misdirected)
        var twice = HTTPFields()
        for _ in 0..<2 { twice.append(HTTPField(name: host, value: "api.bank.example")) }
        #expect(try refusal("api.bank.example", "/", twice) == .badRequest)
    }

    @Test(
        "Fields of a connection are refused, in any case",
        arguments: [
            "Transfer-Encoding", "connection", "UPGRADE", "Expect", "te", "Trailer", "keep-alive", "Proxy-Connection",
        ])
    func fields(name: String) throws {
        let name = try #require(HTTPField.Name(name))
        #expect(try refusal("api.bank.example", "/", [name: "x"]) == .badRequest)
        #expect(try refusal("api.bank.example", "/", [name: ""]) == .badRequest)
    }

    @Test("No sealed request goes to payload encryption itself, however its path is written")
    func paths() throws {
        for path in [
            "/assent-pe", "/assent-pe/", "/assent-pe/1/message", "/assent-pe?x=1", "//assent-pe/1/handshake",
            "/./assent-pe/1", "/x/../assent-pe/1", "/%61ssent-pe/1", "/assent%2Dpe", "/assent-pe%2F1",
            "/..%2Fassent-pe/1",
            "/Assent-PE/1", "/\\assent-pe", "///ASSENT-pe",
        ] {
            #expect(try refusal("api.bank.example", path) == .badRequest, "\(path)")
        }
        for path in ["/", "//", "/assent-pex", "/x/assent-pe", "/x?/assent-pe", "/%zz", "/assent", "/assent_pe"] {
            #expect(try refusal("api.bank.example", path) == nil, "\(path)")
        }
        #expect(try refusal("api.bank.example", nil) == .badRequest)
    }
}
