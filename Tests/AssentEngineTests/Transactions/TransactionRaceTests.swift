import AssentCore
import AssentEngine
import AssentStore
import AssentTesting
import StoreTesting
import TestSupport
import Testing

@Suite("Parallel use of one transaction")
struct TransactionRaceTests {
    @Test("Of many parallel takes one is granted, and each other leaves one record", arguments: [50, 200])
    func oneDatabase(tasks: Int) async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.approved()
        let results = try await Self.race(tasks, id) { _ in
            fixture.transactions
        } binding: {
            try fixture.binding()
        }
        #expect(results.filter(\.isTaken).count == 1)
        let audited = try await fixture.audited(.transactionTake, id)
        #expect(audited.filter { $0 == "success -" }.count == 1)
        #expect(audited.filter { $0 == "refused taken" }.count == tasks - 1)
    }

    @Test("Two server processes on one file grant it once between them")
    func twoDatabases() async throws {
        let fixture = try await TransactionFixture()
        let second = try await TestDatabase.location(fixture.path).open(clock: fixture.clock)
        let other = Transactions(try TransactionFixture.context(second, clock: fixture.clock, seed: 2))
        for _ in 0..<5 {
            let id = try await fixture.approved()
            let results = try await Self.race(50, id) {
                $0.isMultiple(of: 2) ? fixture.transactions : other
            } binding: {
                try fixture.binding()
            }
            #expect(results.filter(\.isTaken).count == 1)
        }
        try await second.close()
    }

    /// Holds every task that looks before it leaps until all have looked: a take made of a look and a leap grants to
    /// all.
    @Test("The take decides and changes in one statement: nobody can come between")
    func noLookBeforeTheLeap() async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.approved()
        let rendezvous = RendezvousDatabase(fixture.database, parties: 20)
        let transactions = Transactions(try TransactionFixture.context(rendezvous, clock: fixture.clock))
        let results = try await Self.race(20, id) { _ in
            transactions
        } binding: {
            try fixture.binding()
        }
        #expect(results.filter(\.isTaken).count == 1)
    }

    @Test("A look before the leap is caught by the rendezvous: the check of the check")
    func rendezvousCatches() async throws {
        let fixture = try await TransactionFixture()
        let id = try await fixture.approved()
        let rendezvous = RendezvousDatabase(fixture.database, parties: 20)
        let grants = try await withThrowingTaskGroup(of: Bool.self) { group in
            for task in 0..<20 {
                group.addTask {
                    try await RendezvousDatabase.$party.withValue(task) {
                        let rows = try await rendezvous.run(
                            .read("SELECT state FROM transactions WHERE id = \(id)"))
                        guard try rows.first?.text("state") == "COMPLETED" else { return false }
                        _ = try await rendezvous.run(
                            SQLStatement("UPDATE transactions SET state = 'TAKEN' WHERE id = \(id)"))
                        return true
                    }
                }
            }
            return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(grants == 20)
    }

    private static func race(
        _ tasks: Int, _ id: String, transactions: @escaping @Sendable (Int) -> Transactions,
        binding: () throws -> TransactionBinding
    ) async throws -> [TakeResult] {
        let binding = try binding()
        return try await withThrowingTaskGroup(of: TakeResult.self) { group in
            for task in 0..<tasks {
                group.addTask {
                    try await RendezvousDatabase.$party.withValue(task) {
                        try await transactions(task).take(id: id, binding: binding)
                    }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }
}

/// A database in which each party whose first call only reads gets its rows when every party has made its first call.
private final class RendezvousDatabase: SQLDatabase {
    @TaskLocal static var party: Int?

    private let database: any SQLDatabase
    private let parties: Int
    private let arrived = Watched<Set<Int>>([])

    init(_ database: any SQLDatabase, parties: Int) {
        self.database = database
        self.parties = parties
    }

    func run(_ statement: SQLStatement) async throws -> [SQLRow] {
        guard statement.isRead else { return try await run([statement]).first ?? [] }
        let rows: [SQLRow]
        do {
            rows = try await database.run(statement)
        } catch {
            // The others go on.
            _ = arrive()
            throw error
        }
        if arrive() { await arrived.wait { [parties] in $0.count == parties } }
        return rows
    }

    func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
        _ = arrive()
        return try await database.run(statements)
    }

    func checkHealth() async throws { try await database.checkHealth() }

    func close() async throws { try await database.close() }

    /// Whether this is the party's first call.
    private func arrive() -> Bool {
        guard let party = Self.party else { return false }
        return arrived.update { $0.insert(party).inserted }
    }
}
