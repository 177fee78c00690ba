#if PostgreSQL && os(Linux)
import Foundation
import StoreTesting
import TestSupport

@testable import AssentStore

/// A primary, and a standby that streams from it over a link that a test can stop.
struct PostgreSQLPair: Sendable {
    let primary: PostgreSQLServer
    let standby: PostgreSQLServer
    let link: PostgreSQLProxy
    /// A database of both, with the primary first.
    let configuration: PostgreSQLConfiguration

    init() async throws {
        let primary = try await offPool { try PostgreSQLServer() }
        let link = try PostgreSQLProxy(primary.configuration("postgres"))
        let standby = try await primary.offPool {
            try PostgreSQLServer(standbyOf: $0, through: link.configuration.hosts[0])
        }
        var configuration = try await primary.offPool { try $0.makeDatabase() }
        configuration.hosts.append(.init(standby.directory.path, port: standby.port))
        // As short as a slow machine allows.
        configuration.commitLimit = 1_500
        configuration.watchInterval = 200
        (self.primary, self.standby, self.link, self.configuration) = (primary, standby, link, configuration)
    }

    /// From here on a commit waits for the standby.
    func replicate() async throws {
        try await name("standby")
        try await waitUntil("sync_state = 'sync'")
    }

    /// Sets which standbys a commit waits for.
    func name(_ names: String) async throws {
        try await primary.offPool {
            try $0.sql("ALTER SYSTEM SET synchronous_standby_names = '\(names)'")
            try $0.sql("SELECT pg_reload_conf()")
        }
    }

    /// Whether `assent doctor` says that a failover may forget commits.
    func isSaidToForget() async throws -> Bool {
        try await DatabaseLocation.postgresql(configuration).examine().findings
            .contains { $0.isNote && $0.text.contains("No standby is synchronous") }
    }

    /// Waits until the primary's view of the standby is so.
    func waitUntil(_ condition: String) async throws {
        while try await primary.offPool({
            try $0.sql("SELECT count(*) FROM pg_stat_replication WHERE \(condition)")
        }) != "1" { await Task.yield() }
    }

    /// Returns when a commit waits for the standby.
    func untilSomebodyWaits() async throws {
        while try await primary.offPool({
            try $0.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        }) == "0" { await Task.yield() }
    }

    /// The primary crashes, and the standby takes its place.
    func failOver(startingStandby: Bool = false) async throws {
        try await primary.offPool { try $0.stop("immediate") }
        try await standby.offPool {
            if startingStandby { try $0.start() }
            try $0.sql("SELECT pg_promote()")
        }
    }
}
#endif
