import AssentCore
import AssentEngine
import AssentStore
import StoreTesting
import Testing

@Suite("What a transaction is bound to")
struct TransactionBindingTests {
    /// One thing altered at a time, and the reason that must be given.
    struct Alteration: Sendable, CustomTestStringConvertible {
        let reason: TransactionRefusal
        let binding: @Sendable (TransactionFixture) throws -> TransactionBinding

        init(
            _ reason: TransactionRefusal,
            _ binding: @escaping @Sendable (TransactionFixture) throws -> TransactionBinding
        ) {
            self.reason = reason
            self.binding = binding
        }

        var testDescription: String { reason.rawValue }
    }

    static func content(method: String = "POST", type: String? = "application/json", body: String? = nil)
        -> RequestContent
    {
        RequestContent(method: method, mediaType: type, body: body.map { Array($0.utf8) } ?? TransactionFixture.body)
    }

    static let alterations: [Alteration] = [
        Alteration(.subject) { try $0.binding(session: $0.ben) },
        Alteration(.session) { try $0.binding(session: $0.anaElsewhere) },
        Alteration(.grant) { try $0.binding(grantID: "another") },
        Alteration(.key) { try $0.binding(sender: .key(thumbprint: "another")) },
        Alteration(.maker) { try $0.binding(maker: .caller($0.ana.user.id)) },
        Alteration(.realm) { try $0.binding(set: try TransactionFixture.policySet(realm: "/beta")) },
        Alteration(.policy) { try $0.binding(set: try TransactionFixture.policySet(name: "other")) },
        Alteration(.policy) { try $0.binding(policy: try TransactionFixture.policy("others")) },
        Alteration(.policyRevision) {
            try $0.binding(policy: try TransactionFixture.policy(actions: ["POST": true, "GET": true]))
        },
        Alteration(.journey) { try $0.binding(condition: TransactionCondition(specifier: "Weaker")) },
        Alteration(.journey) {
            try $0.binding(condition: TransactionCondition(strategy: .service, specifier: "Confirm"))
        },
        Alteration(.method) { try $0.binding(content: Self.content(method: "PUT")) },
        Alteration(.resource) { try $0.binding(url: "https://api.bank.example/payments?kind=sepa") },
        Alteration(.resource) { try $0.binding(url: "https://api.bank.example/Transfers?kind=sepa") },
        Alteration(.resource) { try $0.binding(url: "https://api.bank.example:8443/transfers?kind=sepa") },
        Alteration(.resource) { try $0.binding(url: "http://api.bank.example:443/transfers?kind=sepa") },
        Alteration(.query) { try $0.binding(url: "https://api.bank.example/transfers?kind=instant") },
        Alteration(.query) { try $0.binding(url: "https://api.bank.example/transfers?kind=sepa&kind=instant") },
        Alteration(.query) { try $0.binding(url: "https://api.bank.example/transfers") },
        Alteration(.query) { try $0.binding(url: "https://api.bank.example/transfers?") },
        Alteration(.mediaType) { try $0.binding(content: Self.content(type: "application/xml")) },
        Alteration(.mediaType) { try $0.binding(content: Self.content(type: nil)) },
        Alteration(.body) {
            try $0.binding(content: Self.content(body: #"{"to":"Bob","amount":"900.00","currency":"EUR"}"#))
        },
        Alteration(.body) {
            try $0.binding(content: Self.content(body: #"{"to":"Bob","amount":"200.00","currency":"EUR"} "#))
        },
        Alteration(.body) { try $0.binding(content: Self.content(body: "")) },
    ]

    @Test("One field altered alone is refused by its name, with exactly one audit record", arguments: alterations)
    func altered(_ alteration: Alteration) async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.approved()
        let result = try await fixture.transactions.take(id: id, binding: try alteration.binding(fixture))
        #expect(result.refusal == alteration.reason)
        #expect(try await fixture.audited(.transactionTake, id) == ["refused \(alteration.reason.rawValue)"])

        let right = try await fixture.transactions.take(id: id, binding: try fixture.binding())
        #expect(right.isTaken, "a refusal must not spend what its owner has approved")
    }

    @Test(
        "After it was taken, an altered binding is refused by the field and learns nothing of the outcome",
        arguments: alterations)
    func alteredAfterwards(_ alteration: Alteration) async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.approved()
        _ = try await fixture.transactions.take(id: id, binding: try fixture.binding())
        let result = try await fixture.transactions.take(id: id, binding: try alteration.binding(fixture))
        #expect(result.refusal == alteration.reason)
    }

    @Test("A grant and its key are bound where the advice was asked for with them")
    func grant() async throws {
        let fixture = try await TransactionFixture()
        try await fixture.giveGrant("g1")
        let id = try await fixture.approved(try fixture.binding(grantID: "g1", sender: .key(thumbprint: "k1")))
        let take = { try await fixture.transactions.take(id: $0, binding: $1) }
        #expect(try await take(id, try fixture.binding(grantID: "g1")).refusal == .key)
        #expect(try await take(id, try fixture.binding(sender: .key(thumbprint: "k1"))).refusal == .grant)
        #expect(try await take(id, try fixture.binding(grantID: "g1", sender: .key(thumbprint: "k1"))).isTaken)
    }

    @Test("A session that has come to belong to another user grants neither of them anything")
    func sameSessionOtherUser() async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.approved()
        let waiting = try await fixture.create()
        _ = try await fixture.database.run(
            SQLStatement(
                "UPDATE sessions SET user_id = \(fixture.ben.user.id) WHERE id = \(fixture.ana.id)",
                expecting: .exactly(1)))
        let other = try #require(try await Sessions(fixture.context).live(id: fixture.ana.id))
        let take = { try await fixture.transactions.take(id: $0, binding: $1) }
        #expect(try await take(id, try fixture.binding(session: other)).refusal == .subject)
        #expect(try await take(id, try fixture.binding()).refusal == .sessionEnded)
        await #expect(throws: EngineError.self) { try await fixture.transactions.start(id: waiting.id, session: other) }
        #expect(try await fixture.audited(.transactionStart, waiting.id) == ["refused subject"])
        #expect(try await !fixture.transactions.decline(id: waiting.id, session: other))
    }

    @Test("Another session of the same user neither begins nor declines a transaction")
    func otherSession() async throws {
        let fixture = try await TransactionFixture()
        let waiting = try await fixture.create()
        let other = try await TransactionFixture.signIn("ana", fixture.context)
        try #require(other.user.id == fixture.ana.user.id && other.id != fixture.ana.id)
        await #expect(throws: EngineError.self) { try await fixture.transactions.start(id: waiting.id, session: other) }
        #expect(try await !fixture.transactions.decline(id: waiting.id, session: other))
        #expect(try await fixture.transactions.decline(id: waiting.id, session: fixture.ana))
    }

    @Test("The same request written in another way is the same request")
    func sameRequest() async throws {
        let fixture = try await TransactionFixture()
        let made = try fixture.binding(url: "https://api.bank.example/transfers?b=2&a=1&a=0")
        for url in [
            "https://api.bank.example:443/transfers?a=1&a=0&b=2", "HTTPS://API.bank.EXAMPLE/%74ransfers?b=2&a=1&a=0",
            "https://api.bank.example//transfers?a=1&b=2&a=0",
        ] {
            let id = try await fixture.approved(made)
            let content = RequestContent(
                method: "POST", mediaType: "Application/JSON ; ", body: TransactionFixture.body)
            let result = try await fixture.transactions.take(
                id: id, binding: try fixture.binding(url: url, content: content))
            #expect(result.isTaken, "\(url)")
        }
        let id = try await fixture.approved(made)
        let swapped = try fixture.binding(url: "https://api.bank.example/transfers?a=0&a=1&b=2")
        #expect(try await fixture.transactions.take(id: id, binding: swapped).refusal == .query)
    }

    @Test(
        "Parameters whose names some program takes for one keep their order, since it would read another value",
        arguments: [
            ("to=Bob&To=Eve", "To=Eve&to=Bob"), ("to=Bob&to%20=Eve", "to%20=Eve&to=Bob"),
            ("to=Bob&%54O=Eve", "%54O=Eve&to=Bob"), ("a.b=1&a_b=2", "a_b=2&a.b=1"), ("a[]=1&a[0]=2", "a[0]=2&a[]=1"),
            ("to=Bob&a=1;to=Eve", "a=1;to=Eve&to=Bob"),
        ])
    func namesThatAreReadAsOne(approved: String, sent: String) async throws {
        let fixture = try await TransactionFixture()
        let url = "https://api.bank.example/transfers?"
        let id = try await fixture.approved(try fixture.binding(url: url + approved))
        let swapped = try fixture.binding(url: url + sent)
        #expect(try await fixture.transactions.take(id: id, binding: swapped).refusal == .query)
        // The control: the same order.
        let same = try fixture.binding(url: url + approved)
        #expect(try await fixture.transactions.take(id: id, binding: same).isTaken)
    }

    @Test("What the policy does not bind may differ")
    func unbound() async throws {
        let fixture = try await TransactionFixture()
        let policy = try TransactionFixture.policy(bind: [], display: [])
        let id = try await fixture.approved(try fixture.binding(policy: policy))
        let other = try fixture.binding(
            policy: policy, url: "https://api.bank.example/transfers?other=1",
            content: Self.content(method: "PUT", body: "x"))
        #expect(try await fixture.transactions.take(id: id, binding: other).isTaken)
    }

    @Test(
        "What is known of the request is on record even where it is not bound, and the client is told what is bound alone"
    )
    func onRecord() async throws {
        let fixture = try await TransactionFixture()
        let digest = Base64URL.encode(SHA2.sha256(TransactionFixture.body))
        for bind: Set<BoundField> in [[], [.method], [.query], [.body], [.method, .query, .body]] {
            let policy = try TransactionFixture.policy(bind: bind, display: [])
            let point = try fixture.settlement([policy])
            var request = SentRequest(
                session: PresentedSession(fixture.ana), method: "POST",
                resource: try CanonicalResource("https://api.bank.example/transfers?kind=sepa&a=1"),
                mediaType: "application/json", body: TransactionFixture.body)
            guard case .advised(_, let record?) = await point.settle(request) else {
                Issue.record("a transaction was expected")
                return
            }
            let rows = try await fixture.database.run(
                .read("SELECT * FROM transactions WHERE id = \(record.id)"))
            let row = try #require(rows.first)
            #expect(try row.text("url") == "https://api.bank.example:443/transfers?kind=sepa&a=1")
            #expect(try row.text("query") == "a=1&kind=sepa")
            #expect(try row.text("method") == "POST")
            #expect(try row.text("media_type") == "application/json")
            #expect(try row.text("body_sha256") == digest)
            let approval = try await fixture.transactions.start(id: record.id, session: fixture.ana)
            #expect(approval == record.approval)
            #expect(approval.method == (bind.contains(.method) ? "POST" : nil))
            #expect(approval.bodySHA256 == (bind.contains(.body) ? digest : nil))
            #expect(approval.contentType == (bind.contains(.body) ? "application/json" : nil))
            #expect(approval.resource.contains("kind=sepa") == bind.contains(.query))
            _ = try await fixture.database.run(
                fixture.transactions.completion(of: approval, session: fixture.ana))
            request.transactionID = record.id
            if !bind.contains(.query) {
                request.resource = try CanonicalResource("https://api.bank.example/transfers?other=1")
            }
            if !bind.contains(.body) {
                request.mediaType = "text/plain"
                request.body = nil
            }
            guard case .granted = await point.settle(request) else {
                Issue.record("what is not bound may differ: \(bind)")
                return
            }
        }
    }

    @Test(
        "A transaction that an earlier version made is used as it was made",
        .enabled(if: !TestDatabase.isPostgreSQL, "it looks into a SQLite file"))
    func earlierVersion() async throws {
        let fixture = try await TransactionFixture()
        let all = try await fixture.approved()
        let unbound = try TransactionFixture.policy(bind: [], display: [])
        let none = try await fixture.approved(try fixture.binding(policy: unbound))
        // What the migration gives to rows that are there already.
        let column = try await fixture.database.run(
            .read("SELECT dflt_value FROM pragma_table_info('transactions') WHERE name = 'bound'"))
        let given = try #require(column.first).text("dflt_value")
        let begun = try await fixture.create()
        _ = try await fixture.database.run(
            SQLStatement("UPDATE transactions SET bound = \(SQL(verbatim: given))", expecting: .exactly(3)))
        #expect(try await fixture.transactions.start(id: begun.id, session: fixture.ana) == begun.approval)
        _ = try await fixture.database.run(
            SQLStatement(
                """
                UPDATE transactions SET method = NULL, query = NULL, media_type = NULL, body_sha256 = NULL
                WHERE id = \(none)
                """, expecting: .exactly(1)))
        let take = { try await fixture.transactions.take(id: $0, binding: $1) }
        #expect(try await take(all, try fixture.binding(content: Self.content(method: "PUT"))).refusal == .method)
        #expect(try await take(all, try fixture.binding(content: Self.content(body: "{}"))).refusal == .body)
        #expect(try await take(all, try fixture.binding()).isTaken)
        #expect(try await take(none, try fixture.binding(policy: unbound)).isTaken)
    }

    @Test("A part that is bound and not known makes no binding")
    func incomplete() async throws {
        let fixture = try await TransactionFixture()
        let set = try TransactionFixture.policySet()
        let resource = try CanonicalResource("https://api.bank.example/transfers")
        for (bind, content) in [
            (Set([BoundField.method]), RequestContent?.none), (Set([BoundField.body]), nil),
            (Set([BoundField.body]), RequestContent(method: "POST", mediaType: nil, body: nil)),
        ] {
            let policy = try TransactionFixture.policy(bind: bind, display: [])
            #expect(
                TransactionBinding(
                    set, policy, TransactionCondition(specifier: "Confirm"), resource: resource, content: content,
                    presented: PresentedSession(fixture.ana), maker: .gateway) == nil)
        }
    }

    @Test("An unknown id is refused once, and one that is no id never reaches the log's columns")
    func unknown() async throws {
        let fixture = try await TransactionFixture()
        for id in [
            "7b8bfd4c-60fe-4271-928d-d09b94496f84", "", "'; DROP TABLE transactions; --",
            String(repeating: "x", count: 5000),
        ] {
            #expect(try await fixture.transactions.take(id: id, binding: try fixture.binding()).refusal == .unknown)
        }
        let records = try await AuditLog(fixture.context).newest(100)
        #expect(records.filter { $0.reason == "unknown" }.count == 4)
        #expect(records.allSatisfy { $0.transactionID == nil })
    }

    @Test("Neither the database nor its log holds the session's token")
    func noToken() async throws {
        let fixture = try await TransactionFixture()
        let begun = try await Sessions(fixture.context).begin(
            userID: fixture.ana.user.id, realm: "/alpha", limits: SessionLimits())
        let session = try #require(try await Sessions(fixture.context).live(token: begun.token))
        _ = try await fixture.approved(try fixture.binding(session: session), session: session)
        let rows = try await fixture.database.run(.read("SELECT * FROM transactions"))
        let audit = try await fixture.database.run(.read("SELECT * FROM audit"))
        #expect(!"\(rows) \(audit)".contains(begun.token.reveal()))
        #expect("\(rows)".contains(session.id))
    }
}
