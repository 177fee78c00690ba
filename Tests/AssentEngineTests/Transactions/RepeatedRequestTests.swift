import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("A request that is refused again within seconds gets the transaction of the first time")
struct RepeatedRequestTests {
    private func create(
        _ fixture: TransactionFixture, _ binding: TransactionBinding? = nil, key: String? = nil
    ) async throws -> TransactionRecord {
        try await fixture.transactions.create(
            binding: try binding ?? fixture.binding(), url: "https://api.bank.example:443/transfers?kind=sepa",
            display: [DisplayLine(label: "Amount", value: "200.00 EUR")], ttl: 180, idempotencyKey: key)
    }

    private func count(_ fixture: TransactionFixture) async throws -> Int64 {
        try #require(
            try await fixture.database.run(.read("SELECT count(*) AS n FROM transactions")).first
        ).integer("n")
    }

    @Test("It is the same record, made and counted once, for five seconds", arguments: [0, 5, 6])
    func again(seconds: Int) async throws {
        let fixture = try await TransactionFixture(limits: TransactionLimits(creations: 2, window: 3600))
        let first = try await create(fixture)
        fixture.clock.advance(by: Double(seconds))
        for _ in 0..<10 {
            let again = try await create(fixture)
            #expect((again.id == first.id) == (seconds <= 5))
            if seconds <= 5 { #expect(again == first) }
        }
        #expect(try await count(fixture) == (seconds <= 5 ? 1 : 2))
        let made = try await AuditLog(fixture.context).newest(100).filter { $0.event == .transactionCreate }
        #expect(made.count == (seconds <= 5 ? 1 : 2))
    }

    @Test("Whatever is known to differ makes another transaction")
    func others() async throws {
        let fixture = try await TransactionFixture()
        let first = try await create(fixture)
        var seen: Set = [first.id]
        let usual = TransactionFixture.content
        let content = RequestContent(
            method: usual.method, mediaType: usual.mediaType, body: Array(#"{"to":"Eve"}"#.utf8))
        let differing: [(TransactionBinding?, String?)] = [
            (try fixture.binding(content: content), nil), (nil, "key-1"), (nil, "key-2"), (nil, ""),
            (try fixture.binding(url: "https://api.bank.example/transfers?kind=swift"), nil),
            (try fixture.binding(grantID: "g"), nil),
            (try fixture.binding(condition: TransactionCondition(specifier: "Other")), nil),
        ]
        for (binding, key) in differing {
            #expect(seen.insert(try await create(fixture, binding, key: key).id).inserted)
        }
        #expect(seen.insert(try await create(fixture, try fixture.binding(maker: .caller("p"))).id).inserted)
        // Each of them is found again.
        #expect(try await create(fixture, key: "key-1").id != first.id)
        #expect(try await create(fixture).id == first.id)
        #expect(try await count(fixture) == Int64(seen.count))
    }

    @Test("A body that was not read may be another one")
    func unread() async throws {
        let fixture = try await TransactionFixture()
        let policy = try TransactionFixture.policy(bind: [.method], display: [])
        let usual = TransactionFixture.content
        let content = RequestContent(method: usual.method, mediaType: usual.mediaType, body: nil)
        let binding = try fixture.binding(policy: policy, content: content)
        let first = try await create(fixture, binding)
        #expect(try await create(fixture, binding).id != first.id)
    }

    @Test("Once somebody looks at it, has approved, declined or used it, the next request gets its own")
    func taken() async throws {
        let fixture = try await TransactionFixture()
        let first = try await create(fixture).id
        _ = try await fixture.transactions.start(id: first, session: fixture.ana)
        let second = try await create(fixture).id
        #expect(second != first)
        #expect(try await fixture.transactions.decline(id: second, session: fixture.ana))
        let third = try await create(fixture).id
        #expect(third != second)
        try await fixture.approve(third)
        #expect(try await fixture.transactions.take(id: third, binding: try fixture.binding()).isTaken)
        #expect(try await create(fixture).id != third)
    }

    @Test("Of parallel repetitions, over two nodes, all get one transaction")
    func parallel() async throws {
        let fixture = try await TransactionFixture()
        let ids = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<20 { group.addTask { try await create(fixture).id } }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(ids.count == 1)
        #expect(try await count(fixture) == 1)
    }

    @Test("When the session has ended, there is neither a new nor an old one")
    func ended() async throws {
        let fixture = try await TransactionFixture()
        _ = try await create(fixture)
        _ = try await Sessions(fixture.context).end(id: fixture.ana.id)
        await #expect(throws: EngineError.sessionRequired) { try await create(fixture) }
    }
}
