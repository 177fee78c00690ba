#if PostgreSQL && os(Linux)
import AssentCore
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentStore

@Suite("PostgreSQL: TLS, passwords, and what errors do not say")
struct PostgreSQLTLSTests {
    private static let password = "a long password"

    @Test("Whatever is not on this machine needs a certificate that is verified")
    func defaults() {
        let configuration = PostgreSQLConfiguration(hosts: [], database: "a", user: "a")
        for name in ["/run/postgresql", "localhost", "127.0.0.1", "127.1.2.3", "::1"] {
            #expect(configuration.tls(to: .init(name)) == nil, "\(name)")
        }
        for name in ["db.example", "10.0.0.1", "127.0.0.1.evil.example", "localhost.example", "128.0.0.1", "::2"] {
            #expect(configuration.tls(to: .init(name)) == .verified(authority: nil), "\(name)")
        }
    }

    @Test("SCRAM over verified TLS: the right authority and name serve; others, and an expired certificate, do not")
    func certificates() async throws {
        let directory = try TemporaryDirectory()
        let (right, wrong) = (try Certificates(directory, "right"), try Certificates(directory, "wrong"))
        let (key, certificate) = try right.server(days: 2)
        let server = try await offPool {
            try PostgreSQLServer(
                settings: ["ssl = on", "password_encryption = 'scram-sha-256'"],
                access: "local all postgres trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n", listens: true,
                files: ["server.key": key, "server.crt": certificate])
        }
        var place = try await PostgreSQLPlace(server)
        let file = directory.url.appending(path: "password").path
        try Data("\(Self.password)\n".utf8).write(to: URL(filePath: file))
        place.configuration.hosts = [.init("localhost", port: server.port)]
        place.configuration.passwordFile = file
        place.configuration.tls = .verified(authority: right.authority)
        let database = try await place.open()
        let isEncrypted = try await database.run(
            .read("SELECT ssl AS yes FROM pg_stat_ssl WHERE pid = pg_backend_pid()"))
        #expect(isEncrypted == [SQLRow(["yes": 1])])
        let found = try await place.location.examine().findings.first?.text
        #expect(found?.contains("TLSv1.3") == true)

        var other = place
        other.configuration.tls = .verified(authority: wrong.authority)
        try await refused(other, "certificate")
        other.configuration.tls = .verified(authority: directory.url.appending(path: "missing").path)
        try await refused(other, "missing")
        other = place
        other.configuration.hosts = [.init("127.0.0.1", port: server.port)]
        try await refused(other, "does not match host name")
        other = place
        other.configuration.tls = .off
        try await refused(other, "28000")
        other = place
        try Data("another password\n".utf8).write(to: URL(filePath: file + "2"))
        other.configuration.passwordFile = file + "2"
        try await refused(other, "28P01")
        other.configuration.passwordFile = file + "3"
        try await refused(other, "cannot be read")
        other.configuration.passwordFile = nil
        try await refused(other, "password")

        let (_, expired) = try right.server(days: -1)
        try server.write(expired, "server.crt")
        try await offPool { _ = try server.sql("SELECT pg_reload_conf()") }
        try await database.close()
        try await untilRefused(place, "certificate verify failed")
    }

    /// The server takes the new certificate soon, not at once.
    private func untilRefused(_ place: PostgreSQLPlace, _ text: String) async throws {
        try await Patience.wait(until: "an expired certificate is refused") {
            do {
                try await place.open().close()
                return false
            } catch let error as StoreError {
                #expect(error.detail.contains(text), "\(error)")
                return true
            }
        }
    }

    private func refused(_ place: PostgreSQLPlace, _ text: String) async throws {
        let error = await #expect(throws: StoreError(.unavailable, "")) { try await place.open() }
        #expect(error?.detail.contains(text) == true, "\(String(describing: error))")
        #expect(error?.detail.contains("password\"") != true)
        for secret in [Self.password, "another password"] {
            #expect(error.map { "\($0)".contains(secret) } != true)
        }
    }

    @Test("No error shows a value, whatever the value breaks")
    func values() async throws {
        let place = try await PostgreSQLPlace()
        let database = try await place.open()
        let secret = "hunter2hunter2"
        _ = try await database.run(insertNote(secret))
        let statements: [SQL] = [
            "INSERT INTO notes (id) VALUES (\(secret))", "INSERT INTO notes (id, owner_id) VALUES ('x', \(secret))",
            "UPDATE notes SET count = (\(secret))::bigint", "SELECT (\(secret))::timestamp::text AS a",
            "INSERT INTO notes (id, count) VALUES (\(secret), NULL)", "SELECT 1 / (length(\(secret)) - 14) AS a",
            "INSERT INTO owners (id) VALUES (\((0..<1_000).map { _ in secret + UUID().uuidString }.joined()))",
        ]
        for statement in statements {
            let error = await #expect(throws: StoreError.self) { try await database.run(SQLStatement(statement)) }
            #expect(error.map { "\($0)".contains("hunter2") } != true, "\(String(describing: error))")
        }
    }

    @Test(
        "Each kind of failure has its code",
        arguments: [
            ("23514", StoreError.Code.constraint), ("53100", .unavailable), ("53200", .unavailable),
            ("XX001", .corrupt),
            ("58030", .unavailable), ("42P01", .statement), ("22003", .statement), ("57014", .unavailable),
            ("54000", .statement),
        ])
    func codes(state: String, code: StoreError.Code) async throws {
        let place = try await PostgreSQLPlace()
        let database = try await place.open()
        try await place.sql(
            """
            CREATE FUNCTION fail() RETURNS bigint LANGUAGE plpgsql
            AS $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '\(state)'; END $$
            """
        )
        await #expect(throws: StoreError(code, "")) {
            try await database.run([insertNote("a"), SQLStatement("UPDATE notes SET count = fail()")])
        }
        #expect(try await database.count("notes") == 0)
    }
}

/// An authority of the test's own.
private struct Certificates {
    let authority: String
    private let directory: URL
    private let name: String

    init(_ directory: TemporaryDirectory, _ name: String) throws {
        self.directory = directory.url
        self.name = name
        authority = directory.url.appending(path: "\(name).crt").path
        try openssl(
            [
                "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=\(name)", "-keyout", "\(name).key", "-out",
                authority,
            ]
                + Self.key)
    }

    /// The key and the certificate of a server that is called localhost.
    func server(days: Int) throws -> (key: String, certificate: String) {
        let extensions = directory.appending(path: "\(name).ext")
        try Data("subjectAltName=DNS:localhost\n".utf8).write(to: extensions)
        let key = directory.appending(path: "server.key")
        var arguments = ["req", "-nodes", "-subj", "/CN=localhost", "-out", "server.csr"]
        arguments +=
            FileManager.default.fileExists(atPath: key.path)
            ? ["-new", "-key", "server.key"] : Self.key + ["-keyout", "server.key"]
        try openssl(arguments)
        try openssl([
            "x509", "-req", "-in", "server.csr", "-CA", authority, "-CAkey", "\(name).key", "-CAcreateserial", "-days",
            "\(days)", "-extfile", extensions.path, "-out", "server.crt",
        ])
        return (
            try String(contentsOf: key, encoding: .utf8),
            try String(contentsOf: directory.appending(path: "server.crt"), encoding: .utf8)
        )
    }

    private static let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]

    private func openssl(_ arguments: [String]) throws {
        let finished = try FinishedProcess.run("/usr/bin/openssl", arguments, directory: directory.path)
        try #require(finished.status == 0, "\(finished.complaints)")
    }
}
#endif
