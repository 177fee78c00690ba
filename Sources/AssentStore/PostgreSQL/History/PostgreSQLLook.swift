#if PostgreSQL && os(Linux)
import Foundation

/// Reads and writes what tells a server and its history from others, over one connection. It needs no privilege.
struct PostgreSQLLook {
    let session: PostgreSQLSession

    /// The tables of the history. PostgreSQL alone has them, beside the schema's own.
    static let definition: [PostgreSQLCommand] = [
        """
        CREATE TABLE IF NOT EXISTS history (
            number BIGINT PRIMARY KEY, token TEXT COLLATE "C" NOT NULL, system TEXT COLLATE "C" NOT NULL,
            timeline TEXT COLLATE "C" NOT NULL, is_restored BIGINT NOT NULL, at BIGINT NOT NULL)
        """,
        """
        CREATE TABLE IF NOT EXISTS history_marks (
            node TEXT COLLATE "C" PRIMARY KEY, mark BIGINT NOT NULL, at BIGINT NOT NULL)
        """,
    ].map { PostgreSQLCommand($0, isKept: false) }

    /// More generations, or nodes, than a database ever has; the latest ones are read.
    private static let most = 10_000

    private static let now = "extract(epoch FROM now())::bigint"

    /// When the server's present run began, in microseconds. When one of its processes has crashed it recovers without
    /// being started anew, and then all statistics begin anew as well.
    private static let start = """
        (extract(epoch FROM greatest(
            pg_postmaster_start_time(), (SELECT stats_reset FROM pg_stat_archiver))) * 1000000)::bigint AS started
        """

    /// A promoted server says its new timeline in the name of the segment at once, in the control file only later.
    private static let identity = PostgreSQLCommand(
        """
        SELECT system_identifier::text AS system,
            CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline,
            \(start),
            to_regclass(quote_ident(current_schema()) || '.history_marks') IS NOT NULL AS known
        FROM pg_control_system()
        """, isKept: false)

    private static let generations = PostgreSQLCommand(
        """
        SELECT number, token, system, timeline, is_restored FROM (
            SELECT * FROM history ORDER BY number DESC LIMIT \(most)) latest ORDER BY number
        """, isKept: false)

    private static let marks = PostgreSQLCommand(
        "SELECT node, mark FROM history_marks ORDER BY at DESC LIMIT \(most)", isKept: false)

    // MARK: - Reading

    /// What the server shows. It must not be a standby.
    ///
    /// - Throws: ``StoreError`` or ``PostgreSQLLoss``.
    func sighting() throws -> ServerSighting {
        guard let row = try rows([Self.identity]).first?.first else {
            throw StoreError(.unavailable, "The server does not say which one it is.")
        }
        var sighting = ServerSighting(
            incarnation: ServerIncarnation(
                system: try row.text("system"), timeline: try row.text("timeline"),
                startedAt: try row.integer("started")),
            generations: [], marks: [:], hasTables: try row.bool("known"))
        guard sighting.hasTables else { return sighting }
        let found = try rows([Self.generations, Self.marks])
        sighting.generations = try found[0].map(Self.generation)
        for row in found[1] { sighting.marks[try row.text("node")] = try row.integer("mark") }
        return sighting
    }

    private static func generation(_ row: SQLRow) throws -> DatabaseGeneration {
        DatabaseGeneration(
            number: try row.integer("number"), token: try row.text("token"), system: try row.text("system"),
            timeline: try row.text("timeline"), isRestored: try row.bool("is_restored"))
    }

    /// What decides whether a commit waits for a standby. If it is the same before and after a commit, that commit was
    /// made under it.
    struct Replication: Sendable, Hashable {
        let standbys: String
        let commits: String
        let loadedAt: Int64
        let startedAt: Int64

        /// Whether a commit waits until a standby has it on its disk.
        var isDemanded: Bool { !standbys.isEmpty && ["on", "remote_apply"].contains(commits) }
    }

    /// - Throws: ``StoreError`` or ``PostgreSQLLoss``.
    func replication() throws -> Replication {
        guard let found = try session.exchange([Self.replicationSettings]).first.map(Self.replication) ?? nil else {
            throw StoreError(.unavailable, "The server does not say whether it replicates.")
        }
        return found
    }

    /// Reads the answer to ``replicationSettings``; `nil` if it is none.
    static func replication(_ answer: PostgreSQLAnswer) -> Replication? {
        guard let row = answer.rows.first, let standbys = try? row.text("standbys"),
            let commits = try? row.text("commits"), let loaded = try? row.integer("loaded"),
            let started = try? row.integer("started")
        else { return nil }
        return Replication(standbys: standbys, commits: commits, loadedAt: loaded, startedAt: started)
    }

    /// Asks for what decides whether a commit waits for a standby.
    static let replicationSettings = PostgreSQLCommand(
        """
        SELECT current_setting('synchronous_standby_names') AS standbys,
            current_setting('synchronous_commit') AS commits,
            (extract(epoch FROM pg_conf_load_time()) * 1000000)::bigint AS loaded,
            \(start)
        """)

    // MARK: - Writing

    /// Adds the generation that begins on this server, unless another node was faster.
    ///
    /// - Returns: what the server shows afterwards.
    /// - Throws: ``StoreError`` or ``PostgreSQLLoss``; also when the server does not confirm it in time.
    func addGeneration(after sighting: ServerSighting, isRestored: Bool, limit: Int) throws -> ServerSighting {
        let number = (sighting.generations.last?.number ?? 0) + 1
        let insertion = PostgreSQLCommand(
            """
            INSERT INTO history (number, token, system, timeline, is_restored, at)
            VALUES ($1, $2, $3, $4, $5, \(Self.now)) ON CONFLICT (number) DO NOTHING
            """,
            [
                .integer(number), .text(UUID().uuidString.lowercased()), .text(sighting.incarnation.system),
                .text(sighting.incarnation.timeline), .integer(isRestored ? 1 : 0),
            ], isKept: false)
        try write([insertion], limit: limit)
        return try self.sighting()
    }

    /// Writes a node's mark. Once that is acknowledged, everything before it is where the commit had to be.
    ///
    /// - Throws: ``StoreError`` or ``PostgreSQLLoss``: it is not known whether it is written.
    func write(mark: Int64, of node: String, limit: Int) throws {
        let insertion = PostgreSQLCommand(
            """
            INSERT INTO history_marks (node, mark, at) VALUES ($1, $2, \(Self.now))
            ON CONFLICT (node) DO UPDATE SET mark = greatest(history_marks.mark, excluded.mark), at = excluded.at
            """, [.text(node), .integer(mark)], isKept: false)
        try write([insertion], limit: limit)
    }

    private func write(_ commands: [PostgreSQLCommand], limit: Int) throws {
        do {
            _ = try rows([.begin] + commands)
        } catch let error as StoreError {
            _ = try session.exchange([.rollback])
            throw error
        }
        if case .failed(let fault) = try session.commit(limit: limit).first { throw fault.error() }
    }

    /// Commits something that no other transaction waits for, and returns when the server has acknowledged it: a
    /// standby that had to confirm it has everything before it as well. Asks `goesOn` ten times a second, and gives the
    /// connection up when the answer is no.
    ///
    /// With `requiresStandby` it must have been let wait for a standby all the time.
    ///
    /// - Throws: ``StoreError`` or ``PostgreSQLLoss``: nothing is known.
    func fence(requiresStandby: Bool = false, while goesOn: () -> Bool) throws {
        let before = requiresStandby ? try replication() : nil
        _ = try rows([.begin, Self.message])
        if case .failed(let fault) = try session.commit(while: goesOn).first { throw fault.error() }
        if requiresStandby, try before?.isDemanded != true || before != replication() {
            throw StoreError(
                .unavailable, "The server does not let commits wait for a standby, or did not for a moment.")
        }
    }

    private static let message = PostgreSQLCommand(
        "SELECT pg_logical_emit_message(true, 'assent', '')::text AS place", isKept: false)

    // MARK: - Parts

    private func rows(_ commands: [PostgreSQLCommand]) throws -> [[SQLRow]] {
        try session.exchange(commands).map { answer in
            if case .failed(let fault) = answer { throw fault.error() }
            return answer.rows
        }
    }
}
#endif
