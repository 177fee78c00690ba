#if PostgreSQL && os(Linux)
import CPQ
import Foundation

/// How a thread gets a connection: to the first server of the configuration that can be used. It blocks that thread.
struct PostgreSQLOpening {
    let configuration: PostgreSQLConfiguration
    /// Decides which server may serve, and lets the connection be prepared for statements of the store; `nil` for a
    /// connection that only looks.
    var keeper: PostgreSQLKeeper?
    /// Until when the server may take to confirm what it shows; `nil` for as long as callers wait.
    var end: ContinuousClock.Instant?

    /// - Throws: ``StoreError``: why no server can be used, and what to do.
    func open(bell: PostgreSQLBell) throws(StoreError) -> PostgreSQLSession {
        var failures: [StoreError] = []
        for host in configuration.hosts {
            do {
                return try open(host, bell: bell)
            } catch let error as StoreError {
                failures.append(error)
            } catch let loss as PostgreSQLLoss {
                failures.append(loss.error)
            } catch {
                failures.append(StoreError(.unavailable, "\(error)"))
            }
        }
        // What concerns the database concerns it on every server; of several servers, some may be standbys.
        let code = failures.first { $0.code != .unavailable }?.code ?? .unavailable
        let obstacle = StoreError.Obstacle.allCases.first { one in failures.contains { $0.obstacle == one } }
        throw StoreError(
            code, failures.map(\.detail).joined(separator: " "),
            obstacle: obstacle ?? (code == .unavailable ? .noServer : nil))
    }

    /// - Throws: ``StoreError`` or ``PostgreSQLLoss``: why this server cannot be used.
    func open(_ host: PostgreSQLConfiguration.Host, bell: PostgreSQLBell) throws -> PostgreSQLSession {
        let id = UUID().uuidString.lowercased()
        let parameters = try parameters(host, id)
        let names = parameters.map { strdup($0.0) } + [nil]
        let values = parameters.map { strdup($0.1) } + [nil]
        defer { for text in names + values { free(text) } }
        let connection = names.map { UnsafePointer($0) }.withUnsafeBufferPointer { names in
            values.map { UnsafePointer($0) }.withUnsafeBufferPointer { values in
                names.baseAddress.flatMap { names in
                    values.baseAddress.flatMap { values in PQconnectStartParams(names, values, 0) }
                }
            }
        }
        guard let connection else { throw StoreError(.unavailable, "There is not enough memory for a connection.") }
        // Ends the connection if anything below throws.
        let session = PostgreSQLSession(
            connection, id: id, host: host, bell: bell, silenceLimit: configuration.statementLimit + 5_000)
        // The error then has its SQLSTATE, which no language of the server changes.
        PQsetErrorVerbosity(connection, PQERRORS_VERBOSE)
        try connect(connection, host)
        let version = PQserverVersion(connection)
        guard version >= 140_000 else {
            throw StoreError(
                .unavailable,
                "\(Self.name(host)) is PostgreSQL \(version / 10_000); version 14 or later is needed. Upgrade it.")
        }
        guard PQsetnonblocking(connection, 1) == 0, PQenterPipelineMode(connection) == 1 else {
            throw StoreError(.unavailable, "The connection to \(Self.name(host)) cannot be used.")
        }
        if let keeper {
            try prepare(session, host)
            try keeper.admit(session, until: end)
        }
        return session
    }

    // MARK: - Parameters

    /// What libpq is told: enough that no variable of the environment changes what is safe.
    private func parameters(
        _ host: PostgreSQLConfiguration.Host, _ id: String
    ) throws(StoreError) -> [(String, String)] {
        var parameters = [
            ("host", host.name), ("port", String(host.port)), ("dbname", configuration.database),
            ("user", configuration.user), ("application_name", PostgreSQLSession.applicationName(id)),
            ("client_encoding", "UTF8"), ("gssencmode", "disable"), ("keepalives_idle", "30"),
            ("keepalives_interval", "10"), ("keepalives_count", "3"), ("tcp_user_timeout", "15000"),
            ("target_session_attrs", "any"),
        ]
        switch configuration.tls(to: host) {
        case nil: parameters.append(("sslmode", "prefer"))
        case .off: parameters.append(("sslmode", "disable"))
        case .verified(let authority):
            parameters += [
                ("sslmode", "verify-full"), ("ssl_min_protocol_version", "TLSv1.2"),
                ("sslrootcert", try Self.authorities(authority)),
            ]
        }
        // There can be no such file; about one that is not a plain file libpq writes to the standard error.
        parameters.append(("passfile", "/dev/null/none"))
        if let file = configuration.passwordFile { parameters.append(("password", try Self.password(file))) }
        return parameters
    }

    private static func authorities(_ file: String?) throws(StoreError) -> String {
        if let file { return file }
        let places = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"]
        guard let found = places.first(where: { FileManager.default.isReadableFile(atPath: $0) }) else {
            throw StoreError(.unavailable, "This system has no list of authorities. Name the database server's own.")
        }
        return found
    }

    private static func password(_ file: String) throws(StoreError) -> String {
        guard let content = FileManager.default.contents(atPath: file),
            let line = String(data: content, encoding: .utf8)?.split(whereSeparator: \.isNewline).first,
            content.count < 4096
        else {
            throw StoreError(.unavailable, "The file \(file) cannot be read, or has no password on its first line.")
        }
        return String(line)
    }

    // MARK: - Connecting

    private func connect(_ connection: OpaquePointer, _ host: PostgreSQLConfiguration.Host) throws(StoreError) {
        let end = ContinuousClock.now + .milliseconds(configuration.connectLimit)
        // As after PGRES_POLLING_WRITING, says the manual.
        var state = PQstatus(connection) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING
        while state != PGRES_POLLING_OK {
            if state == PGRES_POLLING_FAILED { throw Self.failure(of: connection, host) }
            let rest = (end - ContinuousClock.now) / .milliseconds(1)
            guard rest > 0 else {
                throw StoreError(
                    .unavailable, "\(Self.name(host)) did not answer within \(configuration.connectLimit) ms.")
            }
            var place = pollfd(
                fd: PQsocket(connection), events: Int16(state == PGRES_POLLING_READING ? POLLIN : POLLOUT), revents: 0)
            if poll(&place, 1, Int32(rest.rounded(.up))) > 0 { state = PQconnectPoll(connection) }
        }
    }

    static func name(_ host: PostgreSQLConfiguration.Host) -> String {
        host.name.hasPrefix("/") ? "the server at \(host.name)" : "\(host.name):\(host.port)"
    }

    /// What libpq says, up to the end of the line, without the place in the server's program that follows.
    private static func failure(of connection: OpaquePointer, _ host: PostgreSQLConfiguration.Host) -> StoreError {
        let lines = String(cString: PQerrorMessage(connection)).split(separator: "\n")
        let line = lines.first { !$0.hasPrefix("LOCATION") } ?? "no reason"
        let parts = line.split(separator: ": ").map { $0.trimmingCharacters(in: .whitespaces) }
        let index = parts.firstIndex { isState($0) }
        let state = index.map { parts[$0] } ?? ""
        let message = index.map { parts[($0 + 1)...].joined(separator: ": ") } ?? String(line)
        let text = "\(name(host)) refused the connection\(state.isEmpty ? "" : " (\(state))"): \(message)."
        return StoreError(.unavailable, "\(text) \(advice(state, message))")
    }

    private static func isState(_ text: String) -> Bool {
        text.utf8.count == 5 && text.contains(where: \.isNumber)
            && text.allSatisfy { $0.isASCII && ($0.isNumber || $0.isUppercase) }
    }

    private static func advice(_ state: String, _ message: String) -> String {
        switch state {
        case "28P01": "Check the user and the password file."
        case "28000": "Check the user, and what the server's pg_hba.conf allows."
        case "3D000": "Check the database's name, or make it: CREATE DATABASE … OWNER …."
        case "42501": "Give the role the right to connect to the database."
        case "53300": "Let each node open fewer connections, or let the server allow more (max_connections)."
        case "57P03": "It starts or stops; try again."
        case "" where message.contains("certificate"):
            "Check the authority's file, and that the certificate is valid and names the host."
        case "" where message.contains("SSL"): "Turn TLS on in the server, or off in the configuration if that is safe."
        case "": "Check the host and the port, and that the server runs."
        default: "See the server's log."
        }
    }

    // MARK: - Preparing

    /// Sets what the store relies on. Reading is the default, so that a statement by itself cannot write and needs no
    /// transaction around it.
    private func prepare(_ session: PostgreSQLSession, _ host: PostgreSQLConfiguration.Host) throws {
        guard Self.value("server_encoding", of: session) == "UTF8" else {
            throw StoreError(
                .unavailable,
                """
                The database \(configuration.database) is not in UTF-8. Make one with ENCODING 'UTF8' TEMPLATE \
                template0.
                """
            )
        }
        if Self.value("in_hot_standby", of: session) != "off" {
            throw StoreError(.unavailable, "\(Self.name(host)) is a standby. \(PostgreSQLFault.standbyAdvice)")
        }
        let settings = PostgreSQLCommand(
            """
            SELECT current_schema() AS namespace,
                set_config('search_path', quote_ident(current_schema()) || ', pg_temp', false) AS path,
                \(Self.commits),
                set_config('statement_timeout', \(configuration.statementLimit)::text, false) AS statements,
                set_config('lock_timeout', \(configuration.lockLimit)::text, false) AS locks,
                set_config('idle_in_transaction_session_timeout', \(configuration.idleLimit)::text, false) AS idle,
                set_config('default_transaction_isolation', 'read committed', false) AS isolation,
                \(Self.reading),
                set_config('jit', 'off', false) AS jit
            """, isKept: false)
        let answer = try session.exchange([settings]).first
        if case .failed(let fault) = answer { throw fault.error() }
        guard try answer?.rows.first?.optionalText("namespace") != nil else {
            throw StoreError(
                .unavailable,
                """
                The role \(configuration.user) has no schema to work in. Make one: CREATE SCHEMA \(configuration.user) \
                AUTHORIZATION \(configuration.user).
                """)
        }
    }

    /// A server that is configured to acknowledge before its disk has a commit, or the disk of a standby that it waits
    /// for, is overruled.
    static let commits = """
        set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') = 'remote_apply'
            THEN 'remote_apply' ELSE 'on' END, false) AS commits
        """

    static let reading = "set_config('default_transaction_read_only', 'on', false) AS reading"

    /// Sets how a connection commits, as all connections that serve do.
    static func demandCommits(_ session: PostgreSQLSession) throws {
        let answer = try session.exchange([PostgreSQLCommand("SELECT \(commits)", isKept: false)]).first
        if case .failed(let fault) = answer { throw fault.error() }
    }

    static func value(_ setting: String, of session: PostgreSQLSession) -> String? {
        PQparameterStatus(session.connection, setting).map { String(cString: $0) }
    }
}
#endif
