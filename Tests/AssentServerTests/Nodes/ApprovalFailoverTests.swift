#if PostgreSQL && os(Linux)
import AssentCore
import AssentStore
import Foundation
import InMemoryLogging
import StoreTesting
import TestSupport
import Testing

@testable import AssentServer

/// What `PostgreSQLFailoverTests` shows of rows, here of approvals on their way through two gateways to a service.
@Suite(
    "Approvals at two nodes, a synchronous standby, and what can become of it", .serialized,
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct ApprovalFailoverTests {
    /// How many are spent in each trouble.
    private static let share = 200

    private let pair: PostgreSQLPair

    init() async throws {
        pair = try await PostgreSQLPair.reused()
        try await pair.replicate()
    }

    /// Runs `trouble` while approvals are tried at two nodes, and looks whether each was spent once.
    private func run(
        requiresStandby: Bool = true, _ trouble: (ApprovalLedger, [ServerFixture]) async throws -> Void
    ) async throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var node = FixtureNode(database: pair.configuration, keyFile: directory + "/key")
        var nodes: [ServerFixture] = []
        // What is there before the trouble takes as long as it takes: short limits are for the trouble.
        let maker = try await ServerFixture(node: node)
        node.accounts = maker.accounts
        let session: String
        do {
            session = try await ApprovalLedger.stock(at: maker)
        } catch {
            await maker.stop()
            throw error
        }
        await maker.stop()
        do {
            for _ in 0..<2 {
                nodes.append(
                    try await Patience.retry("a node with short limits starts") {
                        try await ServerFixture(
                            node: node,
                            configuring: { configuration in
                                var database = pair.configuration
                                database.requiresStandby = requiresStandby
                                database.outcomeLimit = 4_000
                                configuration.postgreSQL = database
                            })
                    })
            }
            let ledger = ApprovalLedger(nodes, session: session)
            try await ledger.spend(least: Self.share) { try await trouble(ledger, nodes) }
            try await ledger.check()
        } catch {
            for node in nodes { await node.stop() }
            throw error
        }
        for node in nodes { await node.stop() }
    }

    /// The standby is silent until nobody knows of one approval whether it was spent, and its client was told so.
    private func silence(_ ledger: ApprovalLedger) async throws {
        await ledger.untilItGrows(by: 20)
        // Whatever comes next is a take whose commit waits.
        await ledger.rest { pair.link.stall() }
        try await pair.untilSomebodyWaits()
        await ledger.until { ledger.unknown > 0 }
    }

    @Test(
        "A standby that is silent for a while: what could not be confirmed is said to be unknown, and nothing is lost")
    func paused() async throws {
        try await run { ledger, _ in
            try await silence(ledger)
            pair.link.resume()
            await ledger.untilItGrows(by: 20)
            #expect(ledger.unknown > 0)
        }
        pair.giveBack()
    }

    @Test("A standby that is stopped and started again: the same")
    func stopped() async throws {
        try await run { ledger, _ in
            await ledger.untilItGrows(by: 20)
            try await pair.standby.offPool { try $0.stop("immediate") }
            let before = ledger.refused
            await ledger.until { ledger.refused > before }
            try await pair.standby.offPool { try $0.start() }
            await ledger.untilItGrows(by: 20)
        }
        pair.giveBack()
    }

    @Test("A standby that is slow, also slower than a commit may be")
    func slow() async throws {
        try await run { ledger, _ in
            await ledger.untilItGrows(by: 20)
            pair.link.delay(milliseconds: 30)
            await ledger.untilItGrows(by: 20)
            let before = ledger.granted + ledger.unknown + ledger.refused
            await ledger.rest { pair.link.delay(milliseconds: Int32(pair.configuration.commitLimit) + 500) }
            await ledger.until { ledger.granted + ledger.unknown + ledger.refused >= before + 20 }
            pair.link.resume()
            await ledger.untilItGrows(by: 20)
        }
        pair.giveBack()
    }

    @Test("A standby that was silent is promoted: what it never had was not granted, and can be spent once")
    func promoted() async throws {
        try await run(requiresStandby: false) { ledger, _ in
            try await silence(ledger)
            pair.link.cutAll(refusing: true)
            try await pair.failOver()
            try await pair.stopReplicating()
            await ledger.untilItGrows(by: 20)
        }
    }

    @Test("The old primary comes back as one, and no approval is spent at it")
    func oldPrimaryReturns() async throws {
        try await run(requiresStandby: false) { ledger, nodes in
            await ledger.untilItGrows(by: 20)
            try await pair.failOver()
            try await pair.stopReplicating()
            await ledger.untilItGrows(by: 20)
            try await pair.primary.offPool { try $0.start() }
            try await pair.name("")
            for node in nodes {
                await ledger.until {
                    node.log.entries.contains { "\($0.message)".contains("lacks what another one has") }
                }
            }
            await ledger.untilItGrows(by: 50)
        }
        let taken = try await pair.primary.offPool { [database = pair.configuration.database] in
            try $0.sql("SELECT count(*) FROM history", in: database)
        }
        #expect(taken == "1")
    }
}
#endif
