import AssentCore
import AssentEngine
import AssentStore
import Testing

@Suite("What the user is shown of a request")
struct TransactionDisplayTests {
    static let escape = "\\u001b"

    static func decide(
        _ body: String, type: String? = "application/json", display: [DisplayRule]? = nil,
        in fixture: TransactionFixture
    ) async throws -> AccessDecision {
        let policy =
            if let display { try TransactionFixture.policy(display: display) } else { try TransactionFixture.policy() }
        let request = SentRequest(
            session: PresentedSession(fixture.ana), method: "POST",
            resource: try CanonicalResource("https://api.bank.example/transfers"), mediaType: type,
            body: Array(body.utf8))
        return await (try fixture.settlement([policy])).settle(request)
    }

    @Test("Fields of the body become labelled lines, numbers by their text")
    func lines() async throws {
        let fixture = try await TransactionFixture()
        let body = #"{"to":"Zoë 李 ؟","amount":200.00,"currency":"EUR","items":[{"~/":1e40}, true]}"#
        let rules = [
            DisplayRule(label: "Amount", field: "amount", suffix: "currency"), DisplayRule(label: "To", field: "/to"),
            DisplayRule(label: "Pointer", field: "/items/0/~0~1"), DisplayRule(label: "Flag", field: "/items/1"),
        ]
        guard case .advised(_, let record) = try await Self.decide(body, display: rules, in: fixture) else {
            Issue.record("a transaction was expected")
            return
        }
        #expect(record?.display.map(\.label) == ["Amount", "To", "Pointer", "Flag"])
        #expect(record?.display.map(\.value) == ["200.00 EUR", "Zoë 李 ؟", "1e40", "true"])
    }

    @Test(
        "What would mislead or cannot be shown is refused before a transaction exists",
        arguments: [
            (#"{"to":"Bob\u001b[2K\rEve","amount":"1","currency":"EUR"}"#, .invalidRequest),
            (#"{"to":"Bob\u009b2K","amount":"1","currency":"EUR"}"#, .invalidRequest),
            (#"{"to":"Bob\nTo: Eve","amount":"1","currency":"EUR"}"#, .invalidRequest),
            (#"{"to":"Bob\u202eevE","amount":"1","currency":"EUR"}"#, .invalidRequest),
            (#"{"to":"Bob\u2066x\u2069","amount":"1","currency":"EUR"}"#, .invalidRequest),
            (#"{"to":"B\u200bob","amount":"1","currency":"EUR"}"#, .invalidRequest),
            (#"{"to":"Bob\u0000","amount":"1","currency":"EUR"}"#, .invalidRequest),
            (#"{"to":"","amount":"1","currency":"EUR"}"#, .invalidRequest),
            (#"{"to":" \u3000 ","amount":"1","currency":"EUR"}"#, .invalidRequest),
            (#"{"to":"Bob","amount":"1"}"#, .invalidRequest),
            (#"{"to":"Bob","amount":null,"currency":"EUR"}"#, .invalidRequest),
            (#"{"to":{"name":"Bob"},"amount":"1","currency":"EUR"}"#, .invalidRequest),
            (#"{"to":["Bob"],"amount":"1","currency":"EUR"}"#, .invalidRequest),
            (#"{"to":"Bob","to":"Eve","amount":"1","currency":"EUR"}"#, .invalidRequest),
            (#"{"to":"Bob","amount":"1","\u0061mount":"900","currency":"EUR"}"#, .invalidRequest),
            (#"{"to":"Bob","amount":"1","currency":"EUR","x":{"y":1,"y":2}}"#, .invalidRequest),
            (#"{"to":"Bob","TO":"Eve","amount":"1","currency":"EUR"}"#, .invalidRequest),
            (#"{"to":"Bob","amount":"1","currency":"EUR","x":{"y":1,"Y":2}}"#, .invalidRequest),
            (#"{"to":"Bob","amount":"1","currency":"EUR","s":1,"\u017f":2}"#, .invalidRequest),
            (#"{"to":"Bob","amount":"1","currency":"EUR""#, .invalidRequest),
            (#"{"to":"Bob","amount":"1","currency":"EUR"} {}"#, .invalidRequest),
            (#"{"to":"\ud800","amount":"1","currency":"EUR"}"#, .invalidRequest),
            ("", .invalidRequest),
            ("[]", .invalidRequest),
            (#"{"to":"\#(String(repeating: "B", count: 201))","amount":"1","currency":"EUR"}"#, .invalidRequest),
            (
                #"{"to":"B","amount":"\#(String(repeating: "1", count: 200))","currency":"\#(String(repeating: "E", count: 60))"}"#,
                .invalidRequest
            ),
            // A device signs lines of at most 200 characters.
            (#"{"to":"B","amount":"\#(String(repeating: "1", count: 197))","currency":"EUR"}"#, .invalidRequest),
        ] as [(String, EngineError.Code)])
    func refused(body: String, code: EngineError.Code) async throws {
        try await refuse(body, code)
    }

    // Not among the arguments above, each of which is described in full.
    @Test("What is too long or too deep is refused as well")
    func refusedAtOnce() async throws {
        try await refuse(
            #"{"to":"\#(String(repeating: "B", count: 10 << 20))","amount":"1","currency":"EUR"}"#, .tooLarge)
        try await refuse(String(repeating: "[", count: 100_000), .invalidRequest)
    }

    private func refuse(_ body: String, _ code: EngineError.Code) async throws {
        let fixture = try await TransactionFixture()
        guard case .denied(.refused(let error)) = try await Self.decide(body, in: fixture) else {
            Issue.record("this must be refused: \(body.prefix(80))")
            return
        }
        #expect(error.code == code)
        #expect(!error.detail.contains("Eve"))
        #expect(error.detail.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value < 0x7F })
        #expect(try await fixture.database.run(.read("SELECT id FROM transactions")).isEmpty)
    }

    @Test(
        "A body that is not JSON by its media type is refused",
        arguments: [nil, "text/plain", "application/xml", "application/jsonx"])
    func mediaType(type: String?) async throws {
        let fixture = try await TransactionFixture()
        let decision = try await Self.decide(#"{"to":"Bob","amount":"1","currency":"EUR"}"#, type: type, in: fixture)
        guard case .denied(.refused(let error)) = decision else {
            Issue.record("this must be refused")
            return
        }
        #expect(error.code == .unsupportedMediaType)
    }

    @Test(
        "A pointer finds only what RFC 6901 says",
        arguments: ["/a/01", "/a/-", "/a/2", "/a/+1", "/a/0/b", "/b~2", "//a", "/"])
    func pointers(field: String) async throws {
        let fixture = try await TransactionFixture()
        let decision = try await Self.decide(
            #"{"a":["x","y"],"b":"z"}"#, display: [DisplayRule(label: "Field", field: field)], in: fixture)
        guard case .denied(.refused(let error)) = decision else {
            Issue.record("nothing stands at \(field)")
            return
        }
        #expect(error.code == .invalidRequest)
    }
}
