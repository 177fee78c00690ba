import AssentCore
import AssentStore
import Testing

@testable import AssentEngine

@Suite("The language of an approval is chosen once, and what was shown is kept")
struct ShownLinesTests {
    private static let lines = [
        DisplayLine(
            label: LocalizedText("Amount", byLanguage: ["en": "Amount", "de": "Betrag"]), value: "200.00 EUR"),
        DisplayLine(label: LocalizedText("To", byLanguage: ["en": "To", "de": "An", "pt-BR": "Para"]), value: "Bob"),
    ]

    private static func create(_ fixture: TransactionFixture, _ display: [DisplayLine] = lines) async throws -> String {
        try await fixture.transactions.create(
            binding: try fixture.binding(), url: "https://api.bank.example:443/transfers", display: display, ttl: 180,
            idempotencyKey: fixture.context.random.uuid()
        ).id
    }

    @Test(
        "The first wished language that the policy has is taken, else English",
        arguments: [
            (["de"], "de", ["Betrag", "An"]), (["de-at", "en"], "de", ["Betrag", "An"]),
            (["fr", "*", "de"], "de", ["Betrag", "An"]), (["en", "de"], "en", ["Amount", "To"]),
            (["pt-br"], "pt-BR", ["Amount", "Para"]), (["pt"], "en", ["Amount", "To"]), ([], "en", ["Amount", "To"]),
        ] as [([String], String, [String])])
    func languages(wished: [String], language: String, labels: [String]) async throws {
        let fixture = try await TransactionFixture()
        let id = try await Self.create(fixture)
        let approval = try await fixture.transactions.start(id: id, session: fixture.ana, languages: wished)
        #expect(approval.language == language && approval.display.map(\.label) == labels)
        #expect(approval.display.map(\.value) == ["200.00 EUR", "Bob"])
        #expect(try await fixture.transactions.check(id: id, session: fixture.ana) == approval)
        let record = try await fixture.transactions.outcome(id: id, session: fixture.ana)
        #expect(record?.approval == approval && record?.display == Self.lines)
        let rows = try await fixture.database.run(.read("SELECT shown FROM transactions WHERE id = \(id)"))
        #expect(try rows.first?.text("shown").contains(labels[1]) == true)
    }

    @Test("A record that an earlier version has begun is shown as it was")
    func earlier() async throws {
        let fixture = try await TransactionFixture()
        let id = try await Self.create(fixture)
        _ = try await fixture.transactions.start(id: id, session: fixture.ana, languages: ["de"])
        let display = #"[{"label":"Amount","value":"1 EUR"}]"#
        _ = try await fixture.database.run(
            SQLStatement("UPDATE transactions SET shown = NULL, display = \(display) WHERE id = \(id)"))
        let approval = try await fixture.transactions.check(id: id, session: fixture.ana)
        #expect(approval.display == [DisplayField(label: "Amount", value: "1 EUR")] && approval.language == "en")
    }

    @Test("Nobody else chooses the language, and a failed beginning stores nothing")
    func foreign() async throws {
        let fixture = try await TransactionFixture()
        let id = try await Self.create(fixture)
        await #expect(throws: EngineError.self) {
            try await fixture.transactions.start(id: id, session: fixture.ben, languages: ["de"])
        }
        let approval = try await fixture.transactions.start(id: id, session: fixture.ana, languages: ["en"])
        #expect(approval.display.map(\.label) == ["Amount", "To"])
    }

    @Test("An approval that shows nothing of a body says so, in the language of its user, and shows the request")
    func nothing() async throws {
        let fixture = try await TransactionFixture()
        for (wished, line) in [
            ("fr", "Content: not shown here"), ("de", "Inhalt: wird hier nicht angezeigt"),
        ] {
            let id = try await Self.create(fixture, [])
            let approval = try await fixture.transactions.start(id: id, session: fixture.ana, languages: [wished])
            #expect(approval.display.isEmpty)
            #expect(
                approval.prompts.last == .textOutput("\(line)\nPOST https://api.bank.example:443/transfers"))
        }
    }

    @Test("Where no body is bound, or it is empty, there is nothing to say")
    func noBody() throws {
        for digest in [nil, Base64URL.encode(SHA2.sha256([]))] {
            let approval = PendingApproval(
                id: "t", journey: "Confirm", method: "POST", resource: "https://a.example/x", contentType: nil,
                bodySHA256: digest, display: [], expiresAt: 0)
            #expect(approval.lines.isEmpty && approval.prompts.last == .textOutput("POST https://a.example/x"))
        }
    }
}
