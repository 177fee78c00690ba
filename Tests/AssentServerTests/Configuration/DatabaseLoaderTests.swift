import AssentConfiguration
import AssentCore
import AssentStore
import Testing

@testable import AssentServer

@Suite("Where the database is")
struct DatabaseLoaderTests {
    private func configuration(_ database: String, keyFile: String = "masterKeyFile: key\n") throws
        -> ServerConfiguration
    {
        let good = FixtureConfiguration.yaml(upstream: 9080, refusing: 9081)
        return try ServerConfiguration.parse("\(good)\n\(keyFile)\(database)\n", file: "/etc/assent/assent.yaml")
    }

    @Test("Without a word it is the file in the data directory")
    func file() throws {
        #expect(try configuration("").postgreSQL == nil)
    }

    @Test("Servers, names, the password's file and the authority are read; TLS is verified unless the server is here")
    func postgresql() throws {
        let read = try configuration(
            """
            database:
              postgresql:
                hosts: [db1.example, "db2.example:5433", "[2001:db8::1]:5434", "2001:db8::2", /run/postgresql]
                database: assent
                user: bank
                passwordFile: secrets/db
                authority: /etc/ca.pem
                connections: 25
            """)
        let found = try #require(read.postgreSQL)
        let expected: [PostgreSQLConfiguration.Host] = [
            .init("db1.example"), .init("db2.example", port: 5433), .init("2001:db8::1", port: 5434),
            .init("2001:db8::2"), .init("/run/postgresql"),
        ]
        #expect(found.hosts == expected)
        #expect(found.database == "assent" && found.user == "bank" && found.connections == 25)
        #expect(found.passwordFile == "/etc/assent/secrets/db")
        #expect(found.tls == .verified(authority: "/etc/ca.pem"))
        let plain = "database: {postgresql: {hosts: [db.example], database: a, user: b"
        let verified = try #require(try configuration(plain + "}}").postgreSQL)
        #expect(verified.tls(to: verified.hosts[0]) == .verified(authority: nil))
        #expect(try configuration(plain + ", unencrypted: true}}").postgreSQL?.tls == .off)
    }

    @Test("All nodes have one master key, so none makes its own")
    func masterKey() {
        let error = #expect(throws: ConfigurationError.self) {
            try configuration("database: {postgresql: {hosts: [a], database: a, user: b}}", keyFile: "")
        }
        #expect(error.map { "\($0)".contains("masterKeyFile: is missing") } == true)
    }

    @Test(
        "What cannot work is refused with the reason",
        arguments: [
            ("database: {}", "postgresql: is missing"),
            ("database: {sqlite: a}", "is missing"),
            ("database: {postgresql: {database: a, user: b}}", "must name a server"),
            ("database: {postgresql: {hosts: [], database: a, user: b}}", "must name a server"),
            ("database: {postgresql: {hosts: [\"a:0\"], database: a, user: b}}", "is not a host"),
            ("database: {postgresql: {hosts: [\"a b\"], database: a, user: b}}", "is not a host"),
            ("database: {postgresql: {hosts: [\"[::1\"], database: a, user: b}}", "is not a host"),
            ("database: {postgresql: {hosts: [\"a,b\"], database: a, user: b}}", "is not a host"),
            ("database: {postgresql: {hosts: [a], database: a}}", "user: is missing"),
            ("database: {postgresql: {hosts: [a], database: a, user: b, password: c}}", "unknown key"),
            ("database: {postgresql: {hosts: [a], database: a, user: b, connections: 0}}", "from 1 to 1000"),
            (
                "database: {postgresql: {hosts: [a], database: a, user: b, unencrypted: true, authority: c}}",
                "no certificate is verified"
            ),
        ])
    func mistakes(text: String, reason: String) {
        let error = #expect(throws: ConfigurationError.self) { try configuration(text) }
        #expect(error.map { "\($0)".contains(reason) } == true, "\(String(describing: error))")
    }
}
