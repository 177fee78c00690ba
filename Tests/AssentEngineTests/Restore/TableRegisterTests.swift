import AssentCore
import AssentStore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("The register of tables")
struct TableRegisterTests {
    @Test("Each table of the database is in it, once, and no other; a copy takes those that are data")
    func complete() async throws {
        let fixture = try await TransactionFixture()
        let names: SQL =
            TestDatabase.isPostgreSQL
            ? """
            SELECT relname::text AS name FROM pg_class
            WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
            """
            : "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        let stored = Set(try await fixture.database.run(.read(names)).map { try $0.text("name") })
        let registered = TableRegister.tables.map(\.name)
        #expect(Set(registered).count == registered.count)
        let elsewhere: Set =
            TestDatabase.isPostgreSQL
            ? [] : ["history", "history_marks", "latest_commits", "payload_sessions", "spent_proofs"]
        #expect(stored.union(elsewhere) == Set(registered))
        let copied = Set(try Schema.current.tables().map(\.name))
        #expect(copied == Set(TableRegister.tables.filter(\.isCopied).map(\.name)))
    }

    @Test("A table whose rows may come back says why, and one that follows another is deleted with it")
    func reasons() throws {
        let stored = Dictionary(uniqueKeysWithValues: try Schema.current.tables().map { ($0.name, $0) })
        for table in TableRegister.tables {
            #expect(!table.fence.isEmpty || !table.remark.isEmpty, "\(table.name)")
            if case .follows(let parent) = table.cleaning {
                #expect(stored[table.name]?.parents.contains(parent) == true, "\(table.name)")
            }
        }
    }

    @Test("Each column was judged: one that tells that something was used has a step in the register, or a remark")
    func columns() throws {
        let stored = try Schema.current.tables()
        #expect(Set(stored.map(\.name)) == Set(JudgedColumns.all.keys))
        for table in stored {
            let columns = try #require(JudgedColumns.all[table.name], "\(table.name)")
            #expect(Set(table.columns.map(\.name)) == columns.used.union(columns.others), "\(table.name)")
            #expect(columns.used.isDisjoint(with: columns.others), "\(table.name)")
        }
        for table in TableRegister.tables where JudgedColumns.all[table.name]?.used.isEmpty == false {
            #expect(!table.fence.isEmpty || !table.remark.isEmpty, "\(table.name)")
        }
    }

    @Test("All of it is one transaction: when its record cannot be written, nothing has ended")
    func atomic() async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.approved()
        let database = NodeDatabase(fixture.database, [.undone])
        let context = try TransactionFixture.context(database, clock: fixture.clock)
        await #expect(throws: StoreError(.unavailable, "")) { try await RestoredDatabase(context).fence() }
        #expect(database.writeCount == 1)
        #expect(try await fixture.state(id) == "COMPLETED")
        let outcome = try await RestoredDatabase(fixture.context).fence()
        #expect(try await fixture.state(id) == "EXPIRED")
        #expect(outcome.counts == [.transactions: 1, .sessions: 4, .nonces: 1])
        let records = try await AuditLog(fixture.context).newest(1)
        #expect(records.map(\.event) == [.databaseRestore])
    }
}
