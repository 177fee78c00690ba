#if PostgreSQL && os(Linux)
import AssentCore
import Foundation

/// The programs of PostgreSQL that write and read a dump, for one database.
struct PostgreSQLDump: Sendable {
    private let configuration: PostgreSQLConfiguration

    /// Dumps of a configuration's database.
    init(_ configuration: PostgreSQLConfiguration) { self.configuration = configuration }

    /// Writes a dump.
    func write(to path: String) async throws {
        try await run(
            "pg_dump",
            [
                // What a crash may take is nothing to restore.
                "--format=custom", "--no-unlogged-table-data", "--no-password", "--file", path, "--dbname",
                try await connection(),
            ], password: try password())
    }

    /// Reads a dump from end to end.
    func check(_ path: String) async throws {
        do {
            try await run("pg_restore", ["--file=/dev/null", path], password: nil)
        } catch {
            throw StoreError(.corrupt, "the backup cannot be read. \(error.detail)")
        }
    }

    /// What libpq is told, as for the server's own connections: the backup is of the server that has everything. The
    /// first of the list may be an old primary.
    private func connection() async throws -> String {
        let host = try await DatabaseLocation.onThread { [configuration] in
            try PostgreSQLSurvey.host(of: configuration)
        }
        var parameters = [
            ("host", host.name), ("port", "\(host.port)"),
            ("dbname", configuration.database), ("user", configuration.user), ("target_session_attrs", "read-write"),
            ("connect_timeout", "\(max(2, configuration.connectLimit / 1000))"), ("gssencmode", "disable"),
            ("passfile", "/dev/null/none"),
        ]
        switch configuration.tls(to: host) {
        case nil: parameters.append(("sslmode", "prefer"))
        case .off: parameters.append(("sslmode", "disable"))
        case .verified(let authority):
            parameters += [("sslmode", "verify-full"), ("ssl_min_protocol_version", "TLSv1.2")]
            if let authority = authority ?? Self.systemAuthorities { parameters.append(("sslrootcert", authority)) }
        }
        return parameters.map { name, value in
            let quoted = value.replacing("\\", with: "\\\\").replacing("'", with: "\\'")
            return "\(name)='\(quoted)'"
        }.joined(separator: " ")
    }

    private static var systemAuthorities: String? {
        ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"]
            .first { FileManager.default.isReadableFile(atPath: $0) }
    }

    private func password() throws(StoreError) -> Secret? {
        guard let file = configuration.passwordFile else { return nil }
        guard let content = FileManager.default.contents(atPath: file), content.count < 4096,
            let line = String(data: content, encoding: .utf8)?.split(whereSeparator: \.isNewline).first
        else {
            throw StoreError(.unavailable, "The file \(file) cannot be read, or has no password on its first line.")
        }
        return Secret(String(line))
    }

    /// Runs a program to its end.
    private func run(_ program: String, _ arguments: [String], password: Secret?) async throws(StoreError) {
        let ours = ProcessInfo.processInfo.environment
        let path = ours["PATH"] ?? "/usr/bin:/bin"
        let found = path.split(separator: ":").map { "\($0)/\(program)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
        guard let found else {
            throw StoreError(
                .unavailable,
                "The program \(program) is not here: install PostgreSQL's client programs (postgresql-client), in the "
                    + "server's version or a later one.")
        }
        var environment = ["PATH": path, "LC_ALL": "C"]
        environment["LD_LIBRARY_PATH"] = ours["LD_LIBRARY_PATH"]
        // Only this user and root can read it there. A command line everybody could read.
        environment["PGPASSWORD"] = password?.reveal()
        let result: (status: Int32, errors: String)
        do {
            result = try await DatabaseLocation.onThread { [environment] in
                let process = Process()
                process.executableURL = URL(fileURLWithPath: found)
                process.arguments = arguments
                process.environment = environment
                process.standardInput = FileHandle.nullDevice
                process.standardOutput = FileHandle.nullDevice
                let errors = Pipe()
                process.standardError = errors
                try process.run()
                let said = errors.fileHandleForReading.readDataToEndOfFile()
                process.waitUntilExit()
                return (process.terminationStatus, String(decoding: said.suffix(2000), as: UTF8.self))
            }
        } catch {
            throw StoreError(.unavailable, "\(program) cannot be run: \(error.localizedDescription)")
        }
        guard result.status == 0 else {
            let lines = result.errors.split(separator: "\n").joined(separator: " ")
            throw StoreError(.unavailable, "\(program) failed (\(result.status)): \(lines)")
        }
    }
}
#endif
