#if PostgreSQL && os(Linux)
import AssentCore
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentStore

@Suite("PostgreSQL: a standby that is promoted")
struct PostgreSQLStandbyTests {
    @Test("With a synchronous standby nothing that was acknowledged is lost, and nothing that was refused is there")
    func synchronous() async throws {
        let pair = try await PostgreSQLPair()
        try await pair.replicate()
        #expect(try await !pair.isSaidToForget())
        var configuration = pair.configuration
        configuration.outcomeLimit = Patience.seconds * 1_000
        // The standby is never silent, and a slow one is waited for.
        configuration.commitLimit = 60_000
        let database = try await Patience.retry("a node opens its database") { [configuration] in
            try await DatabaseLocation.postgresql(configuration).open(
                schema: SQLDatabaseContract.schema, clock: SystemClock())
        } unless: { error in
            guard let error = error as? StoreError else { return true }
            return ![.unavailable, .outcomeUnknown].contains(error.code)
        }
        let ledger = PostgreSQLLedger(database)
        try await ledger.write {
            await ledger.untilItGrows()
            try await pair.failOver()
            try await PostgreSQLTroubleTests.untilItAnswers(database)
            await ledger.untilItGrows()
        }
        try await ledger.check()
        #expect(ledger.done >= 2)
        try await database.close()
    }

    @Test("With an asynchronous standby the latest commits are lost, and what they have spent can be spent again")
    func asynchronous() async throws {
        let pair = try await PostgreSQLPair()
        try await pair.waitUntil("sync_state = 'async'")
        #expect(try await pair.isSaidToForget())
        var configuration = pair.configuration
        // No commit waits for the standby, and a slow disk is waited for.
        configuration.commitLimit = 60_000
        let database = try await DatabaseLocation.postgresql(configuration).open(
            schema: SQLDatabaseContract.schema, clock: SystemClock())
        let spend = SQLStatement("UPDATE notes SET count = 1 WHERE id = 'once' AND count = 0", expecting: .exactly(1))
        _ = try await database.run(insertNote("once"))
        try await pair.waitUntil("replay_lsn = pg_current_wal_lsn()")
        // The network between the two is slow, as far as the standby can tell.
        try await pair.standby.offPool { try $0.stop() }
        _ = try await database.run(spend)
        for number in 0..<10 { _ = try await database.run(insertNote("late-\(number)")) }
        try await pair.failOver(startingStandby: true)
        try await PostgreSQLTroubleTests.untilItAnswers(database)
        let found = try await database.count("notes")
        print("an asynchronous standby was promoted: \(11 - found) of 11 acknowledged rows and one spending are lost")
        #expect(found == 1)
        // Nothing could know that it was spent: why docs/scaling.md asks for a synchronous standby.
        _ = try await database.run(spend)
        await #expect(throws: StoreError(.unexpectedCount, "")) { try await database.run(spend) }
        try await database.close()
    }
}
#endif
