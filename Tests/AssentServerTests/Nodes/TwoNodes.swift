#if PostgreSQL && os(Linux)
import AssentCore
import AssentStore
import AssentTesting
import Foundation
import StoreTesting

@testable import AssentServer
import TestSupport

/// Two servers on one PostgreSQL database, with the same addresses as behind a load balancer, each with a clock of its
/// own. The first one's way to the database leads through a proxy.
struct TwoNodes: Sendable {
    let first: ServerFixture
    let second: ServerFixture
    let proxy: PostgreSQLProxy

    var both: [ServerFixture] { [first, second] }

    /// What has come to the services behind both gateways.
    var forwarded: [TestUpstream.Request] { both.flatMap(\.upstream.requests) }

    /// For tests that count round trips, or cut the next commit: the nodes' looks at the database's servers would be
    /// counted, too, and the mark that follows such a look is a commit.
    static func withoutLooks(_ configuration: inout ServerConfiguration) {
        configuration.postgreSQL?.watchInterval = 3_600_000
    }

    /// For tests that count round trips: a transaction that is ended because it stands still begins anew, which costs
    /// more. It is not for tests that cut a commit which the server does not see: they wait for that end.
    static func countingTrips(_ configuration: inout ServerConfiguration) {
        withoutLooks(&configuration)
        configuration.postgreSQL?.idleLimit = Patience.seconds * 1_000
    }

    /// Runs `body` beside two nodes and stops them; with a change to the second one's file, or to both files. Their
    /// clocks show `now`, or what they show by default.
    static func run(
        startingAt now: Date? = nil,
        editing: (String) -> String = { $0 }, editingBoth: (String) -> String = { $0 },
        configuring change: (inout ServerConfiguration) -> Void = { _ in },
        _ body: (TwoNodes) async throws -> Void
    ) async throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let server = try await PostgreSQLServer.shared()
        let database = try await offPool { try server.makeDatabase() }
        let proxy = try PostgreSQLProxy(database)
        var node = FixtureNode(database: proxy.configuration, keyFile: directory + "/key")
        func clock() -> ManualClock { now.map { ManualClock($0) } ?? ManualClock() }
        let first = try await ServerFixture(node: node, clock: clock(), editing: editingBoth, configuring: change)
        // A node reports that it is there before it sleeps. The second one says of the first what that has reported,
        // and tests that count round trips would count a late report.
        while first.clock.sleeperCount == 0, !Task.isCancelled { await Task.yield() }
        node.database = database
        node.accounts = first.accounts
        do {
            let second = try await ServerFixture(
                node: node, clock: clock(), editing: { editing(editingBoth($0)) }, configuring: change)
            do {
                try await body(TwoNodes(first: first, second: second, proxy: proxy))
            } catch {
                await second.stop()
                throw error
            }
            await second.stop()
        } catch {
            await first.stop()
            throw error
        }
        await first.stop()
    }

    /// Sends the same many times at once, to one node and the other in turn.
    func race(
        _ count: Int, _ body: @escaping @Sendable (ServerFixture, Int) async throws -> Answer
    ) async throws -> [Answer] {
        try await withThrowingTaskGroup(of: Answer.self) { group in
            for index in 0..<count {
                let node = both[index % 2]
                group.addTask { try await body(node, index) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }

    /// Runs `body`, and lets time pass at both nodes for those that wait there for the other node's reply, once that
    /// is there: however long it takes, it is not waited for too long.
    func passingTime<Result: Sendable>(
        once isThere: @escaping @Sendable () async throws -> Bool, _ body: () async throws -> Result
    ) async throws -> Result {
        // Each node's own watch sleeps there as well. If it came later it would look like a call that waits, and the
        // clock would run until the reply is too old.
        for node in both {
            while node.clock.sleeperCount == 0, !Task.isCancelled { await Task.yield() }
        }
        let clocks = both.map { (clock: $0.clock, others: $0.clock.sleeperCount) }
        let mover = Task {
            while !Task.isCancelled {
                guard (try? await isThere()) == true else { continue }
                for (clock, others) in clocks where clock.sleeperCount > others { clock.advance(by: 0.1) }
                await Task.yield()
            }
        }
        defer { mover.cancel() }
        return try await body()
    }
}
#endif
