#if PostgreSQL && os(Linux)
import AssentCore
import CPQ
import Foundation

/// Looks at a PostgreSQL database without changing it.
struct PostgreSQLExamination: Sendable {
    let configuration: PostgreSQLConfiguration
    var schema = Schema.current
    var clock: any WallClock = SystemClock()
    var statements: [SQLStatement] = []

    /// What is wrong with the clocks beyond this. Times in the database come from the nodes.
    private static let clockTolerance: Int64 = 2_000

    /// - Throws: ``StoreError``: `unavailable` when it cannot be reached, with what to do.
    func run() async throws -> DatabaseExamination { try await onThread { try examine() } }

    /// How many connections of nodes the servers of the database have that can be reached.
    ///
    /// - Throws: ``StoreError``: `unavailable` when none can be reached, with what to do.
    func connectionsOfServers() async throws -> Int { try await onThread { try countConnections() } }

    private func onThread<Found: Sendable>(_ body: @escaping @Sendable () throws -> Found) async throws -> Found {
        try await withCheckedThrowingContinuation { continuation in
            // It blocks.
            Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
        }
    }

    private func examine() throws -> DatabaseExamination {
        let survey = PostgreSQLSurvey(configuration)
        let opening = PostgreSQLOpening(configuration: configuration)
        // Of a standby, or of several that went different ways, there is something to say as well.
        let session =
            if let host = try? survey.host(in: configuration) {
                try opening.open(host, bell: PostgreSQLBell())
            } else {
                try opening.open(bell: PostgreSQLBell())
            }
        let before = clock.epochMilliseconds
        let row = try one(Self.look, session)
        // The server has looked at its clock at some moment of that.
        let asked = before...max(before, clock.epochMilliseconds)
        let state = try state(row, session)
        let isCurrent = if case .current = state { true } else { false }
        return DatabaseExamination(
            schema: state, isWhole: true, isUnfinishedCopy: try isUnfinishedCopy(session),
            findings: try findings(row, session, asked: asked) + lossAsStoreError { try servers(survey, session) },
            rows: isCurrent ? try statements.map { try rows(PostgreSQLCommand($0), session) } : [])
    }

    private func isUnfinishedCopy(_ session: PostgreSQLSession) throws -> Bool {
        let table = "to_regclass(quote_ident(current_schema()) || '.\(UnfinishedCopy.table)')"
        guard try one(PostgreSQLCommand("SELECT \(table) IS NOT NULL AS known"), session).bool("known") else {
            return false
        }
        return try one(PostgreSQLCommand(UnfinishedCopy.counting), session).integer("marks") > 0
    }

    /// Nodes may be at any of the servers: after a fail-over the first of the list need not be the one that they use.
    private func countConnections() throws -> Int {
        var count = 0
        var failures: [StoreError] = []
        for host in configuration.hosts {
            do {
                count += try countConnections(at: host)
            } catch let error as StoreError {
                failures.append(error)
            } catch let loss as PostgreSQLLoss {
                failures.append(loss.error)
            }
        }
        guard failures.count < configuration.hosts.count else {
            throw StoreError(.unavailable, failures.map(\.detail).joined(separator: " "))
        }
        return count
    }

    private func countConnections(at host: PostgreSQLConfiguration.Host) throws -> Int {
        let session = try PostgreSQLOpening(configuration: configuration).open(host, bell: PostgreSQLBell())
        var count = 0
        // The server hears of a connection that has just ended a moment later.
        for attempt in 0..<max(1, configuration.endingLimit / 50) {
            if attempt > 0 { session.pause(milliseconds: 50) }
            count = Int(try one(Self.connections, session).integer("connections"))
            if count == 0 { break }
        }
        return count
    }

    private static let connections = PostgreSQLCommand(
        """
        SELECT count(*) AS connections FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'assent %' AND pid <> pg_backend_pid()
        """)

    /// How far another program's tables are told from the server's.
    static let tables = PostgreSQLCommand(
        """
        SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace
                AND relkind IN ('r', 'p', 'v', 'm', 'f')) AS tables,
            to_regclass(quote_ident(current_schema()) || '.schema_steps') IS NOT NULL AS known
        """)

    private static let look = PostgreSQLCommand(
        """
        SELECT current_schema() AS namespace, pg_is_in_recovery() AS standby,
            (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now,
            current_setting('fsync') AS syncs,
            current_setting('full_page_writes') AS pages, current_setting('max_connections')::bigint AS most,
            coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS may_create,
            EXISTS (SELECT 1 FROM pg_stat_replication) AND current_setting('synchronous_standby_names') = ''
                AS forgets
        """)

    private func one(_ command: PostgreSQLCommand, _ session: PostgreSQLSession) throws -> SQLRow {
        guard let row = try rows(command, session).first else {
            throw StoreError(.unavailable, "The server gave no answer.")
        }
        return row
    }

    private func rows(_ command: PostgreSQLCommand, _ session: PostgreSQLSession) throws -> [SQLRow] {
        let answer = try lossAsStoreError { try session.exchange([command]).first }
        if case .failed(let fault) = answer { throw fault.error() }
        return answer?.rows ?? []
    }

    private func lossAsStoreError<Result>(_ body: () throws -> Result) throws -> Result {
        do { return try body() } catch let loss as PostgreSQLLoss { throw loss.error }
    }

    private func state(_ row: SQLRow, _ session: PostgreSQLSession) throws -> SchemaState {
        guard try row.optionalText("namespace") != nil else { return .missing }
        let found = try one(Self.tables, session)
        guard try found.bool("known") else { return try found.integer("tables") == 0 ? .missing : .foreign }
        let steps = try one(PostgreSQLCommand(SchemaState.count), session).integer("steps")
        return schema.state(applied: Int(steps))
    }

    private func findings(
        _ row: SQLRow, _ session: PostgreSQLSession, asked: ClosedRange<Int64>
    ) throws -> [DatabaseFinding] {
        let version = PQserverVersion(session.connection)
        let host = PQhost(session.connection).map { String(cString: $0) } ?? ""
        let isEncrypted = PQsslInUse(session.connection) == 1
        let tls = isEncrypted ? PQsslAttribute(session.connection, "protocol").map { String(cString: $0) } : nil
        let isLocal = PostgreSQLConfiguration.Host(host).isLocal
        var findings = [
            DatabaseFinding(
                isProblem: false, isNote: !isEncrypted && !isLocal,
                "PostgreSQL \(version / 10_000).\(version % 10_000) at \(host), "
                    + (tls
                        ?? (isLocal
                            ? "without TLS" : "without TLS: anyone on the way can read and change all data"))
            )
        ]
        findings += try roleFindings(session)
        func complain(_ condition: Bool, _ text: String) {
            if condition { findings.append(DatabaseFinding(isProblem: true, text)) }
        }
        complain(try row.bool("standby"), "The server is a standby. \(PostgreSQLFault.standbyAdvice)")
        complain(
            PostgreSQLOpening.value("server_encoding", of: session) != "UTF8",
            "The database is not in UTF-8. Make one with ENCODING 'UTF8' TEMPLATE template0.")
        complain(
            try row.optionalText("namespace") == nil,
            "The role has no schema to work in. Make one that belongs to it, with the role's name.")
        complain(
            try !row.bool("may_create"),
            "The role may make no tables: GRANT USAGE, CREATE ON SCHEMA … TO \(configuration.user).")
        for (column, name) in [("syncs", "fsync"), ("pages", "full_page_writes")] {
            complain(
                try row.text(column) == "off",
                "\(name) is off: a power loss can destroy the database, and a spent transaction could be whole again.")
        }
        let now = try row.integer("now")
        let difference = now - min(max(now, asked.lowerBound), asked.upperBound)
        complain(
            abs(difference) > Self.clockTolerance,
            "The server's clock is \(difference) ms ahead of this machine's. Let both follow NTP.")
        if try row.bool("forgets") {
            findings.append(
                DatabaseFinding(
                    isProblem: false, isNote: true,
                    "No standby is synchronous: a failover may forget the latest commits, so that a spent approval could "
                        + "be spent again and a PIN's wrong tries would be forgotten. Name one in synchronous_standby_names."
                ))
        }
        let most = try row.integer("most")
        complain(
            most < configuration.connections,
            "The server allows \(most) connections, one node opens up to \(configuration.connections).")
        return findings
    }
}
#endif
