import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

/// A database that is backed up and restored by the commands of the documentation while the engine goes on.
final class RestorableDatabase: SQLDatabase {
    private let current: Locked<any SQLDatabase>
    private let operated: OperatedDatabase

    init(_ operated: OperatedDatabase) async throws {
        self.operated = operated
        current = Locked(try await operated.location.open(clock: operated.clock))
    }

    func backUp() async throws { try await operated.backUp() }

    /// Has the engine work on the backup from now on.
    func restore() async throws { try await closed { try await operated.restore() } }

    /// Fences the database, and says how much has ended.
    func fence(_ options: [String] = []) async throws -> [FencedKind: Int64] {
        try await closed { try await operated.fence(options) }
    }

    private func closed<Result>(_ body: () async throws -> Result) async throws -> Result {
        try await close()
        try await operated.waitUntilUnused()
        let result = try await body()
        let opened = try await operated.location.open(clock: operated.clock)
        current.withLock { $0 = opened }
        return result
    }

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

    /// Makes a backup, takes each step, and tries it again: on the same database, on the backup as it is, and on fenced
    /// ones.
    static func run(_ drills: [RestoreDrill], on context: EngineContext, covering kinds: Set<FencedKind>) async throws {
        #expect(Set(drills.map(\.kind)) == kinds)
        let database = try #require((context.database as? CheckedDatabase)?.base as? RestorableDatabase)
        // From now on the database knows its key.
        try #require(try await MasterKeyCheck(context).isRight())
        try await database.backUp()
        for drill in drills {
            try await drill.step()
            #expect(try await !drill.again(), "\(drill.name): it was done")
        }
        try await database.restore()
        for drill in drills { #expect(try await drill.again(), "\(drill.name): the backup does not know") }
        try await database.restore()
        let kept = try await database.fence(["--keep-sessions"])
        for drill in drills {
            let isKept = optional.contains(drill.kind)
            #expect(kept[drill.kind] == nil || !isKept, "\(drill.name)")
            #expect(try await drill.again() == isKept, "\(drill.name): keeping sessions")
        }
        try await database.restore()
        let ended = try await database.fence()
        #expect(try await AuditLog(context).newest(1).map(\.event) == [.databaseRestore])
        for drill in drills {
            #expect(ended[drill.kind, default: 0] > 0, "\(drill.name)")
            #expect(try await !drill.again(), "\(drill.name): fenced")
        }
        // Looking for a key makes those that are missing, and codes are spent by the time that it is.
        let again = try await database.fence()
        let renewed: Set<FencedKind> = [.nonces, .tokenKeys, .oneTimePasswords, .deviceCodes]
        #expect(Set(again.keys).isSubset(of: renewed), "\(again)")
    }

    private static let optional = Set(
        TableRegister.tables.flatMap(\.fence).filter(\.isOptional).compactMap(\.kind))
}
