import AssentCore
import AssentStore
import Testing

@testable import AssentServer

@Suite("Accept-Language chooses the language of an approval over REST, once")
struct ApprovalLanguageTests {
    private static func run(_ body: (ServerFixture, String) async throws -> Void) async throws {
        try await ServerFixture.run(editing: {
            $0.replacing(
                "display: [{label: Amount, field: amount, suffix: currency}, {label: To, field: to}]",
                with: """
                    display: [{label: {en: Amount, de: Betrag}, field: amount, suffix: currency}, \
                    {label: {en: To, de: An}, field: to}]
                    """)
        }) { fixture in
            try await body(fixture, try await fixture.session())
        }
    }

    /// Asks for a transfer, which is to be approved. Returns the transaction.
    private static func transaction(_ fixture: ServerFixture, _ session: String) async throws -> String {
        let refused = try await fixture.send(
            "POST", fixture.gateway("/transfers"), ServerFixture.jsonFields + ServerFixture.session(session),
            text: FixtureBody.transfer)
        return try ServerFixture.transactionID(refused)
    }

    /// Begins a transaction's journey as a client with these fields does.
    private static func begin(
        _ fixture: ServerFixture, _ id: String, _ session: String, _ fields: [(String, String)]
    ) async throws -> Answer {
        let xml =
            #"<Advices><AttributeValuePair><Attribute name="TransactionConditionAdvice"/><Value>\#(id)</Value></AttributeValuePair></Advices>"#
        let query = ServerFixture.query([("authIndexType", "composite_advice"), ("authIndexValue", xml)])
        return try await fixture.send(
            "POST", fixture.json("authenticate") + "?" + query, ServerFixture.session(session) + fields)
    }

    /// The first step of a transaction's journey.
    private static func shown(
        _ fixture: ServerFixture, _ id: String, _ session: String, _ fields: [(String, String)]
    ) async throws -> String {
        let answer = try await begin(fixture, id, session, fields)
        #expect(answer.status == 200 && answer.json["authId"] != nil, "\(answer.text)")
        return answer.text
    }

    @Test("The dearest language that the policy has is taken, by weight; without one it is English")
    func languages() async throws {
        try await Self.run { fixture, session in
            for (accepted, isGerman) in [
                ("de", true), ("de-AT, en;q=0.5", true), ("en;q=0.2, de;q=0.9", true), ("fr, de;q=0.1", true),
                ("en, de;q=0.9", false), ("fr", false), ("de;q=0", false), (nil, false),
            ] {
                let id = try await Self.transaction(fixture, session)
                let text = try await Self.shown(fixture, id, session, accepted.map { [("Accept-Language", $0)] } ?? [])
                #expect(text.contains("Betrag") == isGerman, "\(accepted ?? "none"): \(text)")
                #expect(text.contains("Amount") == !isGerman, "\(accepted ?? "none"): \(text)")
                #expect(text.contains("200.00 EUR"), "\(text)")
            }
        }
    }

    @Test("What was shown is kept with the transaction, and who begins again in another language changes nothing")
    func once() async throws {
        try await Self.run { fixture, session in
            let id = try await Self.transaction(fixture, session)
            _ = try await Self.shown(fixture, id, session, [("Accept-Language", "de")])
            let again = try await Self.begin(fixture, id, session, [("Accept-Language", "en")])
            #expect(again.json["authId"] == nil, "\(again.text)")
            let kept = try await fixture.rows("SELECT shown FROM transactions WHERE id = \(id)").first?.text("shown")
            #expect(kept?.contains("Betrag") == true && kept?.contains("Amount") == false, "\(kept ?? "")")
        }
    }
}
