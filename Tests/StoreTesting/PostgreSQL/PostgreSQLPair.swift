#if PostgreSQL && os(Linux)
import AssentCore
package import AssentStore
import Foundation
import TestSupport

/// A primary, and a standby that streams from it over a link that a test can stop.
package struct PostgreSQLPair: Sendable {
    package let primary: PostgreSQLServer
    package let standby: PostgreSQLServer
    package let link: PostgreSQLProxy
    /// A database of both, with the primary first.
    package let configuration: PostgreSQLConfiguration

    /// Those that tests have given back.
    private static let idle = Locked<[PostgreSQLPair]>([])

    /// Starts both. It takes some seconds.
    package init() async throws {
        let primary = try await offPool { try PostgreSQLServer() }
        let link = try PostgreSQLProxy(primary.configuration("postgres"))
        let standby = try await primary.offPool {
            try PostgreSQLServer(standbyOf: $0, through: link.configuration.hosts[0])
        }
        try await self.init(primary, standby, link)
    }

    /// The servers, with a database of their own.
    private init(_ primary: PostgreSQLServer, _ standby: PostgreSQLServer, _ link: PostgreSQLProxy) async throws {
        var configuration = try await primary.offPool { try $0.makeDatabase() }
        configuration.hosts.append(.init(standby.directory.path, port: standby.port))
        // As short as a slow machine allows.
        configuration.commitLimit = 1_500
        configuration.watchInterval = 200
        // A server that does not run refuses at once, and one that is late is not to be taken for such a one.
        configuration.connectLimit = Patience.seconds * 1_000
        configuration.surveyLimit = Patience.seconds * 1_000
        (self.primary, self.standby, self.link, self.configuration) = (primary, standby, link, configuration)
    }

    /// The servers that another test has given back, or new ones, in any case with a new database.
    package static func reused() async throws -> PostgreSQLPair {
        guard let pair = idle.withLock({ $0.popLast() }) else { return try await PostgreSQLPair() }
        // In new ones no commit waits for the standby.
        try await pair.name("")
        try await pair.waitUntil("sync_state = 'async'")
        try await pair.primary.offPool { [database = pair.configuration.database] in
            try $0.sql("DROP DATABASE \(database) WITH (FORCE)")
        }
        return try await PostgreSQLPair(pair.primary, pair.standby, pair.link)
    }

    /// Lets another test have the servers, which are as they were but for the standbys that a commit waits for: both
    /// run, neither was promoted, and the standby follows. A test that fails before this has them for itself.
    package func giveBack() { Self.idle.withLock { $0.append(self) } }

    /// From here on a commit waits for the standby.
    package func replicate() async throws {
        try await name("standby")
        try await waitUntil("sync_state = 'sync'")
    }

    /// Sets which standbys a commit waits for.
    package func name(_ names: String) async throws {
        try await primary.offPool {
            try $0.sql("ALTER SYSTEM SET synchronous_standby_names = '\(names)'")
            try $0.sql("SELECT pg_reload_conf()")
        }
    }

    /// Whether `assent doctor` says that a failover may forget commits.
    package func isSaidToForget() async throws -> Bool {
        try await DatabaseLocation.postgresql(configuration).examine().findings
            .contains { $0.isNote && $0.text.contains("No standby is synchronous") }
    }

    /// Waits until the primary's view of the standby is so.
    package func waitUntil(_ condition: String) async throws {
        while try await primary.offPool({
            try $0.sql("SELECT count(*) FROM pg_stat_replication WHERE \(condition)")
        }) != "1" { await Task.yield() }
    }

    /// Returns when a commit waits for the standby.
    package func untilSomebodyWaits() async throws {
        while try await primary.offPool({
            try $0.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        }) == "0" { await Task.yield() }
    }

    /// The primary crashes, and the standby takes its place.
    package func failOver(startingStandby: Bool = false) async throws {
        try await primary.offPool { try $0.stop("immediate") }
        try await standby.offPool {
            if startingStandby { try $0.start() }
            try $0.sql("SELECT pg_promote()")
        }
    }

    /// From here on the standby, which was promoted and which nobody follows, waits for nobody.
    package func stopReplicating() async throws {
        try await standby.offPool {
            try $0.sql("ALTER SYSTEM SET synchronous_standby_names = ''")
            try $0.sql("SELECT pg_reload_conf()")
        }
    }
}
#endif
