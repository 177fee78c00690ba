import AssentCore
import StoreTesting
import Testing

@testable import AssentStore

@Suite("Copying a database")
struct DatabaseCopyTests {
    private let identity: [UInt8] = Array("the source".utf8)

    private func copy(_ source: any SQLDatabase, _ target: any SQLDatabase, identity: [UInt8]? = nil) throws
        -> DatabaseCopy
    {
        try DatabaseCopy(from: source, to: target, identity: identity ?? self.identity, random: SystemRandom())
    }

    /// Read once for all tests.
    private static let samples: Task<SampleRows, any Error> = Task {
        let place = try await CopyPlace.sqlite()
        let database = try await place.open()
        let samples = try await SampleRows(reading: database)
        try await database.close()
        withExtendedLifetime(place) {}
        return samples
    }

    /// A source with rows in each table, and an empty target.
    private func databases(
        _ direction: CopyDirection = .within, rows: Int = 40
    ) async throws -> (source: any SQLDatabase, target: any SQLDatabase, places: [CopyPlace]) {
        let places = try await direction.places()
        let source = try await places.source.open()
        try await source.fill(try await Self.samples.value.insertions(rows))
        return (source, try await places.target.open(), [places.source, places.target])
    }

    private func contents(_ database: any SQLDatabase) async throws -> [String: [SQLRow]] {
        var contents: [String: [SQLRow]] = [:]
        for table in try Schema.current.tables() {
            contents[table.name] = try await database.run(
                .read(
                    """
                    SELECT * FROM \(SQL(verbatim: table.name))
                    ORDER BY \(SQL(verbatim: table.key.map(\.name).joined(separator: ", ")))
                    """))
        }
        return contents
    }

    @Test(
        "Every value of every table arrives as it was: NULL, bytes, any script, the largest numbers",
        arguments: CopyDirection.allCases)
    func everything(direction: CopyDirection) async throws {
        let (source, target, places) = try await databases(direction)
        let report = try await copy(source, target).run()
        let (before, after) = (try await contents(source), try await contents(target))
        #expect(before.allSatisfy { $0.value.count == 40 } && before == after)
        #expect(Set(report.tables.map(\.table)) == Set(before.keys))
        #expect(report.tables.allSatisfy { $0.rows == 40 && $0.sha256.count == 32 } && !report.isResumed)
        #expect(try await !target.isMarked())
        // And the way back gives the same digests.
        let last = try await CopyPlace.sqlite()
        let third = try await last.open()
        #expect(try await copy(target, third).run().tables == report.tables)
        for database in [source, target, third] { try await database.close() }
        withExtendedLifetime(places + [last]) {}
    }

    @Test("An empty source is copied, too, and the target is a database")
    func empty() async throws {
        let (source, target, places) = try await databases(rows: 0)
        #expect(try await copy(source, target).run().tables.allSatisfy { $0.rows == 0 })
        #expect(try await !target.isMarked())
        withExtendedLifetime(places) {}
    }

    @Test(
        "Broken off at each transaction in turn, before it and when its answer was lost, the copy goes on and ends",
        arguments: CopyDirection.allCases)
    func resumed(direction: CopyDirection) async throws {
        let (source, target, places) = try await databases(direction)
        try await source.fill((1000..<1400).map(Self.audit))
        let loss: WatchedDatabase.Intervention = { number, _ in
            // The first takes the mark, the second is one part of a table.
            if number == 2 { throw StoreError(.unavailable, "planted") }
        }
        var attempts = 0
        while attempts < 600 {
            attempts += 1
            // What was not written is the next attempt's, and its answer is lost.
            let failing =
                attempts % 2 == 0 ? WatchedDatabase(target, before: loss) : WatchedDatabase(target, after: loss)
            do {
                let report = try await copy(source, failing).run()
                #expect(report.isResumed)
                break
            } catch let error as StoreError {
                #expect(error.detail == "planted")
                // The answer that was lost last is that to the removal of the mark.
                guard try await target.isMarked() else { break }
            }
        }
        #expect((100..<600).contains(attempts))
        #expect(try await contents(source) == contents(target))
        #expect(try await !target.isMarked())
        withExtendedLifetime(places) {}
    }

    private static func audit(_ index: Int) -> SQLStatement {
        SQLStatement(
            """
            INSERT INTO audit (id, at, event, outcome, detail, node, position)
            VALUES (\("row \(index)"), \(index), 'e', 'o', '{}', 'n', \(index))
            """)
    }

    @Test("A target with any row is refused and stays as it is", arguments: CopyDirection.allCases)
    func notEmpty(direction: CopyDirection) async throws {
        let (source, target, places) = try await databases(direction, rows: 3)
        _ = try await target.run([Self.audit(1)])
        let before = try await contents(target)
        await #expect(throws: DatabaseCopyError(.targetNotEmpty, "")) { try await copy(source, target).run() }
        #expect(try await contents(target) == before)
        #expect(try await !target.isMarked())
        withExtendedLifetime(places) {}
    }

    @Test(
        "Where only the answer to the end was lost, the same copy finds that it has ended, and writes nothing",
        arguments: CopyDirection.allCases)
    func lostEnd(direction: CopyDirection) async throws {
        let (source, target, places) = try await databases(direction, rows: 3)
        let failing = WatchedDatabase(
            target,
            after: { _, statements in
                guard statements.first?.sql.text().hasPrefix("DELETE") == true else { return }
                throw StoreError(.outcomeUnknown, "planted")
            })
        await #expect(throws: StoreError(.outcomeUnknown, "")) { try await copy(source, failing).run() }
        #expect(try await !target.isMarked())
        let before = try await contents(target)
        let report = try await copy(source, target).run()
        #expect(report.isResumed && report.tables.allSatisfy { $0.rows == 3 })
        #expect(try await contents(target) == before)
        #expect(try await !target.isMarked())
        // A value that differs, or a row that a server has written since, is found.
        for change in [SQLStatement("UPDATE audit SET event = 'other' WHERE id = 'a0'"), Self.audit(1)] {
            _ = try await target.run([change])
            let changed = try await contents(target)
            await #expect(throws: DatabaseCopyError(.targetNotEmpty, "")) { try await copy(source, target).run() }
            #expect(try await contents(target) == changed)
        }
        withExtendedLifetime(places) {}
    }

    @Test("Nobody goes on with a copy of another source, nor copies what is not whole")
    func otherSource() async throws {
        let (source, target, places) = try await databases()
        let broken = WatchedDatabase(target) { number, _ in
            if number == 3 { throw StoreError(.unavailable, "planted") }
        }
        await #expect(throws: StoreError(.unavailable, "")) { try await copy(source, broken).run() }
        let before = try await contents(target)
        await #expect(throws: DatabaseCopyError(.targetOfAnotherSource, "")) {
            try await copy(source, target, identity: [1]).run()
        }
        #expect(try await contents(target) == before)
        let last = try await CopyPlace.sqlite()
        let third = try await last.open()
        await #expect(throws: DatabaseCopyError(.sourceUnfinished, "")) { try await copy(target, third).run() }
        #expect(try await copy(source, target).run().isResumed)
        withExtendedLifetime(places + [last]) {}
    }

    @Test(
        "A mark that is not one is no reason to go on", arguments: [[], [1, 2, 3], [UInt8](repeating: 7, count: 48)])
    func brokenMark(value: [UInt8]) async throws {
        let (source, target, places) = try await databases(rows: 1)
        _ = try await target.run([
            SQLStatement("INSERT INTO server_state (name, value) VALUES ('unfinished-copy', \(value))")
        ])
        await #expect(throws: DatabaseCopyError(.targetOfAnotherSource, "")) { try await copy(source, target).run() }
        withExtendedLifetime(places) {}
    }

    @Test("Any value that was changed on one side, any row that is missing or too many is found, and the mark stays")
    func changed() async throws {
        let (source, target, places) = try await databases(rows: 9)
        // All but the removal of the mark.
        let unfinished = WatchedDatabase(target) { _, statements in
            if statements.first?.sql.text().hasPrefix("DELETE") == true { throw StoreError(.unavailable, "planted") }
        }
        await #expect(throws: StoreError(.unavailable, "")) { try await copy(source, unfinished).run() }
        func isFound(_ table: StoredTable) async throws {
            let error = await #expect(throws: DatabaseCopyError(.contentDiffers, "")) {
                try await copy(source, target).run()
            }
            #expect(error?.detail.contains("The table \(table.name) ") == true)
            #expect(try await target.isMarked())
        }
        var count = 0
        let references = try await SampleRows(reading: target).references
        for table in try Schema.current.tables() {
            let (name, isData) = (SQL(verbatim: "\"\(table.name)\""), table.source)
            let others = table.columns.filter {
                $0.keyPlace == 0 && references[table.name]?.contains($0.name) != true
            }
            for column in others {
                let (quoted, key) = (SQL(verbatim: column.quoted), SQL(verbatim: table.key[0].quoted))
                let rows = try await target.run(.read("SELECT \(key) AS k, \(quoted) AS v FROM \(isData) LIMIT 1"))
                let (old, id) = (try #require(rows.first?.value("v")), try #require(rows.first?.value("k")))
                let new: SQLValue =
                    switch column.content {
                    case .integer: old == 17 ? 18 : 17
                    case .text: old == "x" ? "y" : "x"
                    case .blob: old == .blob([9]) ? .blob([8]) : .blob([9])
                    }
                _ = try await target.run([SQLStatement("UPDATE \(name) SET \(quoted) = \(new) WHERE \(key) = \(id)")])
                try await isFound(table)
                _ = try await target.run([SQLStatement("UPDATE \(name) SET \(quoted) = \(old) WHERE \(key) = \(id)")])
                count += 1
            }
        }
        #expect(count > 70)
        let tables = try Schema.current.tables()
        let audit = try #require(tables.first { $0.name == "audit" })
        _ = try await target.run([SQLStatement("DELETE FROM audit WHERE id = 'a0'")])
        try await isFound(audit)
        try await target.fill([SQLStatement("DELETE FROM audit"), Self.audit(5)])
        try await isFound(audit)
        withExtendedLifetime(places) {}
    }

    @Test("What a server writes into the source when that was compared already is found, and the mark stays")
    func lateServer() async throws {
        let (source, target, places) = try await databases(rows: 3)
        let last = try #require(try Schema.current.tables().last?.name)
        let written = LateServer(source, writing: Self.audit(1), afterReading: last)
        let error = await #expect(throws: DatabaseCopyError(.contentDiffers, "")) {
            try await copy(written, target).run()
        }
        #expect(error?.detail.contains("The table audit of the source had 3 rows") == true)
        #expect(try await source.run(.read("SELECT id FROM audit")).count == 4)
        #expect(try await target.isMarked())
        withExtendedLifetime(places) {}
    }

    @Test("Values that SQLite keeps and no column is for are refused, not translated")
    func wrongTypes() async throws {
        for change: SQL in [
            "UPDATE audit SET detail = x'00'", "UPDATE audit SET at = 1.5", "UPDATE audit SET at = 'soon'",
            "UPDATE server_keys SET sealed_key = 'text'", "INSERT INTO bootstrap_tokens (created_at) VALUES (1)",
        ] {
            let (source, target, places) = try await databases(rows: 2)
            _ = try await source.run([SQLStatement(change)])
            let error = await #expect(throws: StoreError(.corrupt, "")) { try await copy(source, target).run() }
            #expect(error?.detail.contains("is missing or of another type") == true)
            withExtendedLifetime(places) {}
        }
    }

    @Test("A large table and large rows travel in bounded parts")
    func bounded() async throws {
        let (source, target, places) = try await databases(rows: 0)
        try await source.fill((0..<20_000).map(Self.audit))
        let large = [UInt8](repeating: 7, count: 1 << 20)
        for index in 0..<40 {
            _ = try await source.run([
                SQLStatement("INSERT INTO server_state (name, value) VALUES (\("\(index)"), \(large))")
            ])
        }
        let (reading, writing) = (WatchedDatabase(source), WatchedDatabase(target))
        let most = Locked((large: 0, all: 0))
        let report = try await copy(reading, writing).run { progress in
            most.withLock { most in
                guard progress.step == .copying, progress.table == "server_state" else { return }
                most.large = max(most.large, Int(progress.rows) - most.all)
                most.all = Int(progress.rows)
            }
        }
        #expect(report.tables.first { $0.table == "audit" }?.rows == 20_000)
        #expect(reading.mostRows == TableScan.mostRows && writing.mostRows == TableScan.mostRows)
        #expect(writing.mostStatements == TableScan.mostRows + 1)
        #expect(most.withLock { $0.large } <= 16)
        withExtendedLifetime(places) {}
    }

    @Test(
        "Of two copies at once one goes on and the other stops, and nothing is there twice",
        arguments: CopyDirection.allCases)
    func twoAtOnce(direction: CopyDirection) async throws {
        let (source, target, places) = try await databases(direction)
        let second = try copy(source, target)
        let overtaken = WatchedDatabase(target) { number, _ in
            guard number == 5 else { return }
            let report = try await second.run()
            #expect(report.isResumed)
        }
        let error = await #expect(throws: DatabaseCopyError.self) { try await copy(source, overtaken).run() }
        #expect(error?.code == .takenOver)
        #expect(try await contents(source) == contents(target))
        #expect(try await !target.isMarked())
        withExtendedLifetime(places) {}
    }

    @Test("Four that begin at the same moment: at least one ends, each other one says why it did not")
    func fourAtOnce() async throws {
        let direction = CopyDirection.allCases.last ?? .within
        let (source, target, places) = try await databases(direction)
        let results = try await withThrowingTaskGroup(of: DatabaseCopyError.Code?.self) { group in
            for _ in 0..<4 {
                let copy = try copy(source, target)
                group.addTask {
                    do {
                        _ = try await copy.run()
                        return nil
                    } catch let error as DatabaseCopyError {
                        return error.code
                    }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        // One that comes when another has ended finds that, and ends as well.
        #expect(results.contains { $0 == nil }, "\(results)")
        #expect(results.compactMap(\.self).allSatisfy { [.takenOver, .targetNotEmpty].contains($0) }, "\(results)")
        #expect(try await contents(source) == contents(target))
        withExtendedLifetime(places) {}
    }

    @Test("How far it is goes up to the end, for each table, copying first and comparing then")
    func progress() async throws {
        let (source, target, places) = try await databases()
        let seen = Locked<[CopyProgress]>([])
        _ = try await copy(source, target).run { progress in seen.withLock { $0.append(progress) } }
        let stages = seen.withLock { $0 }
        let tables = try Schema.current.tables().map(\.name)
        for step in [CopyProgress.Step.copying, .comparing] {
            let done = stages.filter { $0.step == step && $0.isDone }
            #expect(done.map(\.table) == tables && done.allSatisfy { $0.rows == 40 && $0.total == 40 })
            for table in tables {
                let rows = stages.filter { $0.step == step && $0.table == table }.map(\.rows)
                #expect(rows == rows.sorted() && rows.last == 40)
            }
        }
        #expect(stages.firstIndex { $0.step == .comparing } == stages.lastIndex { $0.step == .copying }.map { $0 + 1 })
        withExtendedLifetime(places) {}
    }
}

/// A source on which a server writes something when a table was read to its end for the second time: it was copied, and
/// compared.
private final class LateServer: SQLDatabase {
    private let base: any SQLDatabase
    private let statement: SQLStatement
    private let table: String
    private let ends = Locked(0)

    init(_ base: any SQLDatabase, writing statement: SQLStatement, afterReading table: String) {
        self.base = base
        self.statement = statement
        self.table = table
    }

    func run(_ statement: SQLStatement) async throws -> [SQLRow] { try await run([statement]).first ?? [] }

    func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
        let rows = try await base.run(statements)
        guard rows == [[]], statements.first?.sql.text().contains("FROM \"\(table)\"") == true else { return rows }
        let count = ends.withLock { ends -> Int in
            ends += 1
            return ends
        }
        if count == 2 { _ = try await base.run(statement) }
        return rows
    }

    func checkHealth() async throws { try await base.checkHealth() }

    func close() async throws { try await base.close() }
}

@Suite("The digest of a table")
struct TableDigestTests {
    private let table = StoredTable(
        name: "t",
        columns: [.init(name: "id", content: .text, keyPlace: 1), .init(name: "v", content: .text, keyPlace: 0)],
        parents: [])

    private func digest(_ rows: [[SQLValue]], of table: StoredTable? = nil) -> [UInt8] {
        var digest = TableDigest(table ?? self.table)
        for row in rows { digest.add(row) }
        return digest.sha256
    }

    @Test("Types, borders between values and rows, order and names count")
    func differences() {
        var other = StoredTable(name: "u", columns: table.columns, parents: [])
        var all = [
            digest([]), digest([], of: other), digest([["a", "b"]]), digest([["ab", ""]]), digest([["", "ab"]]),
            digest([["a", nil]]), digest([["a", ""]]), digest([["a", .blob([])]]), digest([["a", 0]]),
            digest([["a", "0"]]), digest([["a", .blob([0x30])]]), digest([["a", "b"], ["c", "d"]]),
            digest([["c", "d"], ["a", "b"]]), digest([["a", "b", "c", "d"]]), digest([["a", 1]]), digest([["a", -1]]),
            digest([["a", .integer(.max)]]), digest([["a", .integer(.min)]]), digest([["a", "é"]]),
            digest([["a", "e\u{301}"]]),
        ]
        other = StoredTable(name: "t", columns: Array(table.columns.reversed()), parents: [])
        all.append(digest([], of: other))
        #expect(Set(all).count == all.count)
        #expect(digest([["a", "b"]]) == digest([["a", "b"]]))
    }
}
