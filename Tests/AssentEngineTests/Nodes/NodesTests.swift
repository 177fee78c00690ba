import AssentStore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine

@Suite("The servers of one database")
struct NodesTests {
    /// Another server on the fixture's database, with a clock that is so many seconds ahead.
    private func node(_ name: String, beside fixture: TransactionFixture) throws -> EngineContext {
        EngineContext(
            database: fixture.database, clock: fixture.clock, random: fixture.context.random,
            masterKey: fixture.context.masterKey, node: name, logger: fixture.context.logger)
    }

    @Test("A lease has one holder, who may prolong it; when it has expired, another one takes it")
    func lease() async throws {
        let fixture = try await TransactionFixture()
        let (a, b) = (try node("a", beside: fixture), try node("b", beside: fixture))
        #expect(try await Lease("work", a).take(seconds: 60))
        #expect(try await !Lease("work", b).take(seconds: 60))
        #expect(try await Lease("other", b).take(seconds: 60))
        fixture.clock.advance(by: 59)
        #expect(try await Lease("work", a).take(seconds: 60))
        fixture.clock.advance(by: 59)
        #expect(try await !Lease("work", b).take(seconds: 60))
        fixture.clock.advance(by: 1)
        #expect(try await Lease("work", b).take(seconds: 60))
        #expect(try await !Lease("work", a).take(seconds: 60))
    }

    @Test("A lease that was taken by a clock that was ahead lasts no longer for that, and one of a minute ahead stays")
    func ahead() async throws {
        let fixture = try await TransactionFixture()
        let (a, b) = (try node("a", beside: fixture), try node("b", beside: fixture))
        #expect(try await Lease("work", a).take(seconds: 60))
        fixture.clock.advance(by: -60)
        #expect(try await !Lease("work", b).take(seconds: 60))
        fixture.clock.advance(by: -1)
        #expect(try await Lease("work", b).take(seconds: 60))
        #expect(try await !Lease("work", a).take(seconds: 60))
    }

    @Test("Of many nodes that want a free lease at once one gets it")
    func race() async throws {
        let fixture = try await TransactionFixture()
        let nodes = try (0..<30).map { try node("\($0)", beside: fixture) }
        let taken = try await withThrowingTaskGroup(of: Bool.self) { group in
            for node in nodes { group.addTask { try await Lease("work", node).take(seconds: 60) } }
            return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(taken == 1)
    }

    @Test("A node learns which others are there and decide by other policies; who is gone for long is forgotten")
    func report() async throws {
        let fixture = try await TransactionFixture()
        let (a, b) = (Nodes(try node("a", beside: fixture)), Nodes(try node("b", beside: fixture)))
        #expect(try await a.report(policies: "1").isEmpty)
        #expect(try await b.report(policies: "1").isEmpty)
        #expect(try await b.report(policies: "2") == ["a"])
        #expect(try await a.report(policies: "1") == ["b"])
        fixture.clock.advance(by: TimeInterval(Nodes.presence))
        #expect(try await a.report(policies: "1").isEmpty)
        fixture.clock.advance(by: 86_400)
        #expect(try await a.report(policies: "1").isEmpty)
        let rows = try await fixture.database.run(Nodes.reading)
        #expect(try rows.map { try Nodes.node($0).id } == ["a"])
    }

    @Test("The digest of policies changes with each policy, its set and its realm, and not with their order")
    func digest() throws {
        let (pay, see) = (try TransactionFixture.policy(), try TransactionFixture.policy("see", actions: ["GET": true]))
        let both = Nodes.digest(of: [try TransactionFixture.policySet([pay, see])])
        #expect(both == Nodes.digest(of: [try TransactionFixture.policySet([see, pay])]))
        let others = [
            try TransactionFixture.policySet([pay]), try TransactionFixture.policySet([pay, see], name: "shop"),
            try TransactionFixture.policySet([pay, see], realm: "/beta"),
            try TransactionFixture.policySet([pay, TransactionFixture.policy("see", actions: ["PUT": true])]),
        ].map { Nodes.digest(of: [$0]) }
        #expect(Set(others + [both]).count == 5)
    }
}
