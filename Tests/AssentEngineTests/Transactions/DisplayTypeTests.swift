import AssentCore
import AssentSigningProtocol
import AssentStore
import Testing

@testable import AssentEngine

@Suite("Typed lines and lists of a request")
struct DisplayTypeTests {
    /// What a request is shown as, one line each, or why it is refused.
    private static func shown(
        _ display: [DisplayRule], body: String, type: String = "application/json", query: String = "",
        notShown: [String] = []
    ) throws(EngineError) -> [String] {
        let policy: Policy
        let resource: CanonicalResource
        do {
            policy = try TransactionFixture.policy(display: display, notShown: notShown)
            resource = try CanonicalResource("https://api.bank.example/transfers" + query)
        } catch {
            throw .invalidRequest("\(error)")
        }
        let content = RequestContent(method: "POST", mediaType: type, body: Array(body.utf8))
        return try TransactionDisplay.render(policy, of: ShownBody(content), query: resource.query)
            .map { "\($0.label.fallback): \($0.value)" }
    }

    @Test(
        "A value of each type that signing templates have is shown as it was sent",
        arguments: [
            (.text, #""Rent 2.2026""#, "Rent 2.2026"), (.party, #""Zoë""#, "Zoë"),
            (.amount, #"{"amount":"1200.50","currency":"EUR"}"#, "1200.50 EUR"),
            (.maxAmount, #"{"amount":"0.5","currency":"USD"}"#, "0.5 USD"),
            (.account, #"{"iban":"DE89370400440532013000"}"#, "DE89370400440532013000"),
            (.account, #"{"other":"12-34567"}"#, "12-34567"), (.date, #""2026-02-28""#, "2026-02-28"),
            (.list, #"["a","b"]"#, "a, b"),
        ] as [(FieldType, String, String)])
    func types(type: FieldType, json: String, text: String) throws {
        let rule = DisplayRule(label: "It", field: "it", type: type)
        #expect(try Self.shown([rule], body: #"{"it":\#(json)}"#) == ["It: \(text)"])
    }

    @Test("A body is read once, however many resources it is about, and what is wrong with it is said for each")
    func readOnce() throws {
        let policy = try TransactionFixture.policy()
        let bodies: [(text: String, lines: Int?)] = [(#"{"to":"Bob","amount":"1","currency":"EUR"}"#, 2), ("{", nil)]
        for (text, lines) in bodies {
            let count = Locked(0)
            let content = RequestContent(method: "POST", mediaType: "application/json", body: Array(text.utf8))
            let body = ShownBody(content) { content throws(EngineError) in
                count.withLock { $0 += 1 }
                return try ShownBody.reading(content)
            }
            for query in [nil, "kind=sepa", "kind=instant"] {
                let shown = try? TransactionDisplay.render(policy, of: body, query: query)
                #expect(shown?.count == lines)
            }
            #expect(count.withLock { $0 } == 1)
        }
    }

    @Test("Every type of a signing template is a type of a line")
    func oneList() throws {
        for type in FieldType.allCases {
            let text = """
                {"name":"s","policies":[{"name":"p","resources":["https://a.example/x"],"actionValues":{"POST":true},
                "subject":{"type":"AuthenticatedUsers"},"bind":["query","body"],
                "condition":{"type":"Transaction","strategySpecifier":"Confirm"},
                "display":[{"label":"It","field":"it","type":"\(type.rawValue)"}]}]}
                """
            let set = try PolicySet(JSONValue.parse(text), journeys: ["Confirm"])
            #expect(set.policies.first?.display.first?.type == type)
        }
    }

    @Test(
        "A value that is not of its type is refused, and so is a member that the type does not have",
        arguments: [
            (.text, "7"), (.party, "null"), (.amount, #""1""#), (.amount, #"{"amount":"1","currency":"eur"}"#),
            (.amount, #"{"amount":"1,00","currency":"EUR"}"#), (.amount, #"{"amount":"-1","currency":"EUR"}"#),
            (.amount, #"{"amount":"1","currency":"EUR","to":"Eve"}"#),
            (.account, #"{"iban":"DE89370400440532013001"}"#),
            (.account, #"{"iban":"DE89370400440532013000","name":"Eve"}"#), (.date, #""2026-02-30""#),
            (.list, #"["a, b"]"#), (.list, "[]"), (.list, #""a""#), (.text, #""a\u202eb""#),
        ] as [(FieldType, String)])
    func wrongTypes(type: FieldType, json: String) {
        let rule = DisplayRule(label: "It", field: "it", type: type)
        let error = #expect(throws: EngineError.self) { try Self.shown([rule], body: #"{"it":\#(json)}"#) }
        #expect(error?.code == .invalidRequest)
        #expect(error?.detail.contains("Eve") == false)
        #expect(error?.detail.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value < 0x7F } == true)
    }

    @Test("An amount may have its currency beside it, and keeps its digits")
    func flatAmount() throws {
        let rule = DisplayRule(label: "Amount", field: "amount", suffix: "currency", type: .amount)
        for digits in ["200.00", "200.0", "200"] {
            let body = #"{"amount":\#(digits),"currency":"EUR"}"#
            #expect(try Self.shown([rule], body: body) == ["Amount: \(digits) EUR"])
        }
        for wrong in [#"{"amount":2e2,"currency":"EUR"}"#, #"{"amount":200,"currency":"€"}"#] {
            #expect(throws: EngineError.self) { try Self.shown([rule], body: wrong) }
        }
    }

    private static let payments = [
        DisplayRule(label: "From", field: "from"),
        DisplayRule(label: "Amount", field: "amount", suffix: "currency", each: "/payments"),
        DisplayRule(label: "To", field: "/to/name", each: "/payments"),
    ]

    private static func payment(_ number: Int, _ more: String = "") -> String {
        #"{"amount":"\#(number).00","currency":"EUR","to":{"name":"P\#(number)"}\#(more)}"#
    }

    private static func order(_ payments: [String]) -> String {
        #"{"from":"Main","payments":[\#(payments.joined(separator: ","))]}"#
    }

    @Test("Each element of a list has its lines, which stand together")
    func each() throws {
        let lines = try Self.shown(Self.payments, body: Self.order([Self.payment(1), Self.payment(2)]))
        #expect(lines == ["From: Main", "Amount: 1.00 EUR", "To: P1", "Amount: 2.00 EUR", "To: P2"])
        let texts = [DisplayRule(label: "To", field: "", each: "/")]
        #expect(try Self.shown(texts, body: #"["Bob","Eve"]"#) == ["To: Bob", "To: Eve"])
    }

    @Test("Sixteen lines are shown, and more are refused and never cut")
    func limit() throws {
        let seven = (1...7).map { Self.payment($0) }
        #expect(try Self.shown(Self.payments, body: Self.order(seven)).count == 15)
        let error = #expect(throws: EngineError.self) {
            try Self.shown(Self.payments, body: Self.order(seven + [Self.payment(8)]))
        }
        #expect(error?.detail.contains("more than 16 lines") == true)
        let texts = [DisplayRule(label: "To", field: "", each: "/")]
        for (count, isShown) in [(16, true), (17, false), (9000, false)] {
            let body = "[" + Array(repeating: #""B""#, count: count).joined(separator: ",") + "]"
            #expect(((try? Self.shown(texts, body: body))?.count == 16) == isShown)
        }
    }

    @Test(
        "A member of an element that is not shown, an element of another shape, and no list are refused",
        arguments: [
            (order([payment(1), payment(2, #","iban":"DE1""#)]), "/payments/1/iban is neither shown"),
            (order([payment(1), "7"]), "/payments/1/amount is missing"), (order([]), "not a list"),
            (#"{"from":"Main"}"#, "not a list"), (#"{"from":"Main","payments":{"0":{}}}"#, "not a list"),
            (#"{"from":"Main","payments":null}"#, "not a list"),
            (order([#"{"amount":"1","currency":"1","to":{"name":"P"}}"#]), "/payments/0/currency is not a currency"),
        ])
    func unseen(body: String, why: String) {
        let error = #expect(throws: EngineError.self) { try Self.shown(Self.payments, body: body) }
        #expect(error?.code == .invalidRequest && error?.detail.contains(why) == true, "\(error?.detail ?? "-")")
    }

    @Test("What is left out by name in each element is not asked for")
    func leftOut() throws {
        let body = Self.order([Self.payment(1, #","id":1"#), Self.payment(2, #","id":2"#)])
        #expect(try Self.shown(Self.payments, body: body, notShown: ["/payments/*/id"]).count == 5)
    }

    @Test("A field of a form and a parameter of a query that come several times are lists, also of one")
    func repeated() throws {
        let form = "application/x-www-form-urlencoded"
        let rules = [DisplayRule(label: "To", field: "", each: "/to")]
        #expect(try Self.shown(rules, body: "to=Bob&to=Eve", type: form) == ["To: Bob", "To: Eve"])
        #expect(try Self.shown(rules, body: "to=Bob", type: form) == ["To: Bob"])
        #expect(throws: EngineError.self) { try Self.shown(rules, body: #"{"to":"Bob"}"#) }
        let query = [DisplayRule(label: "To", field: "", each: "?to")]
        #expect(try Self.shown(query, body: "{}", query: "?to=Bob&to=Eve") == ["To: Bob", "To: Eve"])
    }
}
