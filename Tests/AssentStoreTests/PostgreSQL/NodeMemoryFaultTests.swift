#if PostgreSQL && os(Linux)
import AssentCore
import Foundation
import InMemoryLogging
import Logging
import StoreTesting
import TestSupport
import Testing

@testable import AssentStore

@Suite("PostgreSQL: a node whose own disk takes nothing")
struct NodeMemoryFaultTests {
    @Test("That a mark cannot be kept is logged once, and a mark is kept as soon as the disk takes one")
    func unkept() async throws {
        let directory = try TemporaryDirectory()
        let (data, away) = (directory.url.appending(path: "data").path, directory.url.appending(path: "away").path)
        try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: false)
        let memory = NodeMemoryFile(path: data + "/database-history")
        var configuration = try await PostgreSQLPlace().configuration
        configuration.node = .init(id: "a", memory: memory)
        configuration.watchInterval = 20
        let log = InMemoryLogHandler()
        let database = try await DatabaseLocation.postgresql(configuration).open(
            schema: SQLDatabaseContract.schema, clock: SystemClock(), logger: Logger(label: "test") { _ in log })
        func mark(_ file: NodeMemoryFile) throws -> Int64 { try file.read()?.mark ?? 0 }
        func complaints() -> Int { log.entries.count { $0.level == .error } }
        _ = try await database.run(insertNote("a"))
        while try mark(memory) == 0 { await Task.yield() }
        try FileManager.default.moveItem(atPath: data, toPath: away)
        _ = try await database.run(insertNote("b"))
        while complaints() == 0 { await Task.yield() }
        let kept = try mark(NodeMemoryFile(path: away + "/database-history"))
        // Nothing is written meanwhile that would want a mark.
        try FileManager.default.moveItem(atPath: away, toPath: data)
        while try mark(memory) == kept { await Task.yield() }
        #expect(complaints() == 1)
        try await database.close()
    }
}
#endif
