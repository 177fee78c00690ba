import AssentCore
import AssentStore
import Testing

@testable import AssentEngine

@Suite("What a user would not see is refused before there is a transaction")
struct UnseenContentTests {
    static let json = "application/json"
    static let form = "application/x-www-form-urlencoded"

    /// What the policy of a test shows, and leaves out.
    struct Rules: Sendable {
        var display = [
            DisplayRule(label: "Amount", field: "amount", suffix: "currency"),
            DisplayRule(label: "To", field: "/recipient/name"), DisplayRule(label: "First", field: "/items/0/name"),
        ]
        var notShown = ["/reference", "/meta", "/items/*/id", "?page"]
    }

    private static func decide(
        _ fixture: TransactionFixture, _ rules: Rules, body: String, type: String? = json, query: String = ""
    ) async throws -> AccessDecision {
        let policy = try TransactionFixture.policy(display: rules.display, notShown: rules.notShown)
        return await (try fixture.settlement([policy])).settle(
            SentRequest(
                session: PresentedSession(fixture.ana), method: "POST",
                resource: try CanonicalResource("https://api.bank.example/transfers" + query), mediaType: type,
                body: Array(body.utf8)))
    }

    /// The refusal of a request, which has left nothing behind; `nil` when there is a transaction, which then goes.
    private static func refusal(
        at fixture: TransactionFixture, _ rules: Rules = Rules(), body: String = good(), type: String? = json,
        query: String = ""
    ) async throws -> EngineError? {
        let decision = try await decide(fixture, rules, body: body, type: type, query: query)
        let count = try await fixture.database.run(.read("SELECT id FROM transactions")).count
        switch decision {
        case .advised:
            #expect(count == 1)
            _ = try await fixture.database.run(SQLStatement("DELETE FROM transactions"))
            return nil
        case .denied(.refused(let error)):
            #expect(count == 0)
            return error
        default:
            Issue.record("\(decision)")
            return nil
        }
    }

    /// The ordinary body, with further members of the outermost object, the recipient, and the list.
    private static func good(_ more: String = "", recipient: String = "", items: String = "") -> String {
        """
        {"amount":"2.00","currency":"EUR","recipient":{"name":"Bob"\(recipient)},"items":[{"name":"x","id":7}\(items)]\(more)}
        """
    }

    private static let formRules = Rules(
        display: [DisplayRule(label: "Amount", field: "amount"), DisplayRule(label: "To", field: "/to")],
        notShown: ["/reference"])

    private static let queryRules = Rules(
        display: [DisplayRule(label: "To", field: "?to"), DisplayRule(label: "Amount", field: "?amount")],
        notShown: ["?page"])

    @Test("All that is shown or left out by name passes")
    func seen() async throws {
        let fixture = try await TransactionFixture()
        func refusal(
            _ rules: Rules = Rules(), body: String = Self.good(), query: String = ""
        ) async throws -> EngineError? {
            try await Self.refusal(at: fixture, rules, body: body, query: query)
        }
        #expect(try await refusal() == nil)
        #expect(try await refusal(body: Self.good(#","reference":"r""#), query: "?page=2&page=3") == nil)
        #expect(try await refusal(body: Self.good(#","meta":{"a":[1,{"b":null}],"c":{}}"#)) == nil)
        #expect(try await refusal(body: Self.good(#","reference":[]"#, items: #",{"id":8},{"id":{}}"#)) == nil)
        for rules in [["/"], ["/", "?"]] {
            let all = Rules(notShown: rules)
            #expect(try await refusal(all, body: Self.good(#","iban":"x""#)) == nil)
            #expect(try await (refusal(all, query: "?iban=x") == nil) == (rules.count == 2))
        }
    }

    /// Bodies, and the place that is named; `nil` for one that passes.
    private static let bodies: [(String, String?)] = [
        (good(#","iban":"DE1""#), "/iban"), (good(#","iban":null"#), "/iban"), (good(#","iban":{}"#), "/iban"),
        (good(#","iban":[]"#), "/iban"), (good(#","iban":false"#), "/iban"), (good(#","":1"#), "/"),
        (good(#","iban":{"a":{"b":1}}"#), "/iban"), (good(recipient: #","iban":"DE1""#), "/recipient/iban"),
        (good(recipient: #","names":["Eve"]"#), "/recipient/names"),
        (good(items: #",{"name":"Eve"}"#), "/items/1/name"),
        (good(items: #",{"id":1,"name":"Eve"}"#), "/items/1/name"),
        (good(items: ",7"), "/items/1"), (good(items: ",[]"), "/items/1"), (good(items: ",{}"), "/items/1"),
        (good(#","References":1"#), "/References"), (good(#","reference ":1"#), "/reference "),
        (good(#","\u0069ban":"DE1""#), "/iban"), (good(#","a/b":1"#), "/a~1b"), (good(#","a~b":1"#), "/a~0b"),
        (good(#","*":1"#), "/*"), (good(#","recipient/name":1"#), "/recipient~1name"),
        (good(#","аmount":"9""#), "/аmount"),
        (good(#","items\u002f0":1"#), "/items~10"),
        // An object is not the list that the policy means.
        (
            #"{"amount":"2.00","currency":"EUR","recipient":{"name":"Bob"},"items":{"0":{"name":"x"},"*":{"id":1}}}"#,
            nil
        ),
        (
            #"{"amount":"2.00","currency":"EUR","recipient":{"name":"Bob"},"items":{"0":{"name":"x"},"1":{"id":1}}}"#,
            "/items/1"
        ),
    ]

    @Test("A member that is neither shown nor left out is refused by its place, at any depth")
    func unseen() async throws {
        let fixture = try await TransactionFixture()
        for (body, place) in Self.bodies {
            let error = try await Self.refusal(at: fixture, body: body)
            guard let place else {
                #expect(error == nil, "\(body)")
                continue
            }
            #expect(error?.code == .invalidRequest, "\(body)")
            #expect(error?.detail.contains(" \(place) is neither shown") == true, "\(body): \(error?.detail ?? "-")")
        }
    }

    /// Queries, and why they are refused; `nil` for one that passes.
    private static let queries: [(String, String?)] = [
        ("?iban=DE1", "?iban"), ("?page=1&iban=DE1", "?iban"), ("?iban", "?iban"), ("?%69ban=DE1", "?iban"),
        ("?pages=1", "?pages"), ("?page[iban]=1", "?page[iban]"), ("?page.iban=1", "?page.iban"),
        ("?page=1;iban=DE1", "semicolon"), ("?page=1&PAGE=2", "for one"), ("?page=1&%20page=2", "for one"),
        ("?page=1&p%C3%A0ge%E2%80%8B=2", "?p"), ("?page=1&page%E2%80%8B=2", "for one"), ("?=1", "no name"),
        ("?pa%00ge=1", nil), ("?page=%FF", "all programs"), ("?page=%C0%AF", "all programs"),
        ("?pa%0Age=1", "control"), ("?page=1&page=2", nil), ("?&&page=1&", nil), ("?", nil),
    ]

    @Test("A parameter of the query is shown, left out by name, or refused, however it is written")
    func query() async throws {
        let fixture = try await TransactionFixture()
        for (text, why) in Self.queries {
            guard (try? CanonicalResource("https://api.bank.example/transfers" + text)) != nil else { continue }
            let error = try await Self.refusal(at: fixture, query: text)
            guard let why else {
                #expect(error == nil, "\(text): \(error?.detail ?? "")")
                continue
            }
            #expect(error?.code == .invalidRequest, "\(text)")
            #expect(error?.detail.contains(why) == true, "\(text): \(error?.detail ?? "-")")
        }
    }

    @Test("A query can be all that is shown, and a body beside it is refused")
    func queryAlone() async throws {
        let fixture = try await TransactionFixture()
        let decision = try await Self.decide(
            fixture, Self.queryRules, body: "", type: nil, query: "?to=B%C3%B6b+x&amount=2&page=1")
        guard case .advised(_, let record) = decision else {
            Issue.record("\(decision)")
            return
        }
        #expect(record?.display.map(\.value) == ["Böb x", "2"])
        _ = try await fixture.database.run(SQLStatement("DELETE FROM transactions"))
        func refusal(_ body: String, _ type: String?, _ query: String = "?to=Bob&amount=2") async throws -> EngineError?
        {
            try await Self.refusal(at: fixture, Self.queryRules, body: body, type: type, query: query)
        }
        #expect(try await refusal("{}", Self.json) == nil)
        #expect(try await refusal(#"{"to":"Eve"}"#, Self.json)?.detail.contains(" /to is") == true)
        #expect(try await refusal("to=Eve", Self.form)?.detail.contains(" /to is") == true)
        #expect(try await refusal("to=Eve", nil)?.code == .unsupportedMediaType)
        #expect(try await refusal("to=Eve", "text/plain")?.code == .unsupportedMediaType)
        #expect(try await refusal("", nil, "?to=Bob&to=Eve&amount=2")?.detail.contains("not a single value") == true)
        #expect(try await refusal("", nil, "?to=Bob")?.detail.contains("?amount is missing") == true)
    }

    @Test("The fields of a form are shown")
    func form() async throws {
        let fixture = try await TransactionFixture()
        let decision = try await Self.decide(
            fixture, Self.formRules, body: "amount=2.00&t%6F=B%C3%B6b+x&reference=a&reference=b",
            type: Self.form + "; charset=UTF-8")
        guard case .advised(_, let record) = decision else {
            Issue.record("\(decision)")
            return
        }
        #expect(record?.display.map(\.value) == ["2.00", "Böb x"])
    }

    /// Forms, and why they are refused.
    private static let forms: [(String, String)] = [
        ("amount=2&to=Bob&iban=DE1", " /iban is"), ("amount=2&to=Bob&to[iban]=DE1", " /to[iban] is"),
        ("amount=2&to=Bob&to%5B%5D=Eve", " /to[] is"), ("amount=2&to=Bob&iban", " /iban is"),
        ("amount=2&to=Bob&to=Eve", "not a single value"), ("amount=2&to=Bob&t%6f=Eve", "not a single value"),
        ("amount=2&to=Bob&TO=Eve", "for one"), ("amount=2&to=Bob&to%E2%80%8D=Eve", "for one"),
        ("amount=2&to=Bob;iban=DE1", "semicolon"), ("amount=2&to=Bob&=Eve", "no name"),
        ("amount=2&to=B%C3", "all programs"), ("amount=2&to=B%", "all programs"),
        ("amount=2&to=B b", "all programs"),
        ("amount=2&to=B\u{f6}b", "all programs"), ("amount=2&to=Bob%00", "all programs"),
        ("amount=2&to=Bob%0AEve", "forbidden"), ("amount=2", "to is missing"), ("", "missing"),
        (#"{"amount":"2","to":"Bob"}"#, "missing"),
        ("amount=2&to=Bob&" + (0..<300).map { "x\($0)=1" }.joined(separator: "&"), "all programs"),
    ]

    @Test("A form with more than is shown, or one that programs read differently, is refused")
    func refusedForms() async throws {
        let fixture = try await TransactionFixture()
        for (body, why) in Self.forms {
            let error = try await Self.refusal(at: fixture, Self.formRules, body: body, type: Self.form)
            #expect(error?.code == .invalidRequest, "\(body)")
            #expect(error?.detail.contains(why) == true, "\(body): \(error?.detail ?? "-")")
            #expect(error?.detail.contains("Eve") != true, "\(body)")
        }
    }

    @Test("Bodies that are neither JSON nor a form cannot be shown")
    func otherBodies() async throws {
        let fixture = try await TransactionFixture()
        for type in [
            "multipart/form-data; boundary=x", "text/plain", "application/x-www-form-urlencoded; charset=iso-8859-1",
            "application/xml",
        ] {
            let error = try await Self.refusal(at: fixture, Self.formRules, body: "amount=2&to=Bob", type: type)
            #expect(error?.code == .unsupportedMediaType, "\(type)")
        }
    }

    /// Bodies that no policy can show.
    private static let shapeless: [(String, EngineError.Code)] = [
        ("7", .invalidRequest), (#""x""#, .invalidRequest), ("null", .invalidRequest), ("[[]]", .invalidRequest),
        ("[]", .invalidRequest), ("{}", .invalidRequest),
        ("{" + (0..<9_000).map { "\"m\($0)\":1" }.joined(separator: ",") + "}", .invalidRequest),
        (good(#","x":["# + String(repeating: "0,", count: 20_000) + "0]"), .invalidRequest),
        (good(#","x":""# + String(repeating: "a", count: 300 << 10) + #"""#), .tooLarge),
        (good(#","x":"# + String(repeating: "[", count: 17) + String(repeating: "]", count: 17)), .invalidRequest),
    ]

    @Test("A body that is not an object, and one that is huge, is refused without much work")
    func shapes() async throws {
        let fixture = try await TransactionFixture()
        for (body, code) in Self.shapeless {
            let error = try await Self.refusal(at: fixture, body: body)
            #expect(error?.code == code, "\(body.prefix(100))")
        }
    }

    @Test("The refusal names a long or strange place in a few characters that can be printed")
    func names() async throws {
        let fixture = try await TransactionFixture()
        let long = try await Self.refusal(
            at: fixture, body: Self.good(#","\#(String(repeating: "iban", count: 10_000))":1"#))
        #expect(long?.detail.count ?? 0 < 300)
        let strange = try await Self.refusal(at: fixture, body: Self.good(#","\u202eiban":1"#))
        #expect(strange?.detail.contains(#"/\u{202E}iban"#) == true)
    }

    @Test("Over REST the same rule holds for the body and the query that an enforcement point sends")
    func rest() async throws {
        let fixture = try await TransactionFixture()
        let policy = try TransactionFixture.policy(display: Rules().display, notShown: Rules().notShown)
        let point = try fixture.settlement([policy])
        func ask(_ body: String, _ query: String = "") async throws -> String? {
            let request = EvaluateRequest(
                realm: "/alpha", policySet: "bank", resources: ["https://api.bank.example/transfers" + query],
                subject: .session(PresentedSession(fixture.ana)),
                environment: [
                    "method": ["POST"], "contentType": [Self.json], "body": [Base64URL.encode(Array(body.utf8))],
                ])
            return try await point.settle(request, caller: fixture.gateway).first?
                .advices["TransactionConditionAdvice"]?.first
        }
        for (body, query) in [(Self.good(#","iban":1"#), ""), (Self.good(), "?iban=1")] {
            await #expect(throws: EngineError(.invalidRequest)) { try await ask(body, query) }
        }
        #expect(try await fixture.database.run(.read("SELECT id FROM transactions")).isEmpty)
        #expect(try await ask(Self.good(), "?page=1") != nil)
    }

    @Test("A policy that shows nothing takes any body and query")
    func nothingShown() async throws {
        let error = try await Self.refusal(
            at: TransactionFixture(), Rules(display: [], notShown: []), body: "[7]", query: "?x=1")
        #expect(error == nil)
    }

    @Test("Two fields that stand beside each other cannot be read as one")
    func neighbours() async throws {
        let fixture = try await TransactionFixture()
        for currency in ["000.00 EUR", "000", "EUR 5", ".00", ",-", "E UR", "EUR\u{a0}", "٣", "²", "Ⅻ"] {
            let body = Self.good().replacing("2.00", with: "1").replacing("EUR", with: currency)
            let error = try await Self.refusal(at: fixture, body: body)
            #expect(
                error?.detail.contains("not a currency or a unit") == true, "\(currency): \(error?.detail ?? "-")")
        }
    }

    @Test("Currencies and units stand behind their values")
    func units() async throws {
        let fixture = try await TransactionFixture()
        for unit in ["EUR", "€", "km/h", "%", "°C", "円", "د.إ".filter { $0 != "." }] {
            let error = try await Self.refusal(at: fixture, body: Self.good().replacing("EUR", with: unit))
            #expect(error == nil, "\(unit): \(error?.detail ?? "")")
        }
    }
}
