import AssentCore
import AssentStore
import AssentTesting
import Foundation
import StoreTesting
import Testing

@testable import AssentEngine

/// A database of which backups are made, and which is replaced by one while the engine goes on.
final class RestorableDatabase: SQLDatabase {
    private let current: Locked<any SQLDatabase>
    private let directory: URL

    init(_ database: any SQLDatabase) {
        current = Locked(database)
        directory = FileManager.default.temporaryDirectory.appending(path: "assent-backups-\(UUID().uuidString)")
    }

    deinit { try? FileManager.default.removeItem(at: directory) }

    /// All that the database holds now, in another one.
    func backup(clock: any WallClock) async throws -> any SQLDatabase {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let copy = try await TestDatabase.location(directory.appending(path: UUID().uuidString).path).open(clock: clock)
        let now = current.withLock { $0 }
        _ = try await DatabaseCopy(from: now, to: copy, identity: [1], random: SystemRandom()).run()
        return copy
    }

    /// Has the engine work on a backup from now on.
    func restore(_ backup: any SQLDatabase) { current.withLock { $0 = backup } }

    func run(_ statement: SQLStatement) async throws -> [SQLRow] {
        try await current.withLock { $0 }.run(statement)
    }

    func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
        try await current.withLock { $0 }.run(statements)
    }

    func checkHealth() async throws { try await current.withLock { $0 }.checkHealth() }

    func close() async throws { try await current.withLock { $0 }.close() }
}

/// Something that can be done once, or that has ended, and a try to do it a second time.
struct RestoreDrill: Sendable {
    let kind: FencedKind
    let name: String
    /// Does it, or ends it.
    let step: @Sendable () async throws -> Void
    /// Whether it can be done now, although it was done.
    let again: @Sendable () async throws -> Bool

    init(
        _ kind: FencedKind, _ name: String, step: @escaping @Sendable () async throws -> Void,
        again: @escaping @Sendable () async throws -> Bool
    ) {
        self.kind = kind
        self.name = name
        self.step = step
        self.again = again
    }

    /// Makes backups, takes each step, and tries it again: on the same database, on a backup as it is, and on fenced
    /// ones.
    static func run(_ drills: [RestoreDrill], on context: EngineContext, covering kinds: Set<FencedKind>) async throws {
        #expect(Set(drills.map(\.kind)) == kinds)
        let database = try #require((context.database as? CheckedDatabase)?.base as? RestorableDatabase)
        let plain = try await database.backup(clock: context.clock)
        let keeping = try await database.backup(clock: context.clock)
        let fenced = try await database.backup(clock: context.clock)
        for drill in drills {
            try await drill.step()
            #expect(try await !drill.again(), "\(drill.name): it was done")
        }
        database.restore(plain)
        for drill in drills { #expect(try await drill.again(), "\(drill.name): the backup does not know") }
        database.restore(keeping)
        let kept = try await RestoredDatabase(context).fence(keepingSessions: true)
        for drill in drills {
            let isKept = optional.contains(drill.kind)
            #expect(kept.counts[drill.kind] == nil || !isKept, "\(drill.name)")
            #expect(try await drill.again() == isKept, "\(drill.name): keeping sessions")
        }
        database.restore(fenced)
        let ended = try await RestoredDatabase(context).fence()
        for drill in drills {
            #expect(ended.counts[drill.kind, default: 0] > 0, "\(drill.name)")
            #expect(try await !drill.again(), "\(drill.name): fenced")
        }
        // Looking for a key makes those that are missing.
        let again = try await RestoredDatabase(context).fence()
        #expect(Set(again.counts.keys).isSubset(of: [.nonces, .tokenKeys]), "\(again.counts)")
    }

    private static let optional = Set(
        TableRegister.tables.flatMap(\.fence).filter(\.isOptional).compactMap(\.kind))
}
