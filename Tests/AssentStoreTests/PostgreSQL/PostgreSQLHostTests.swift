#if PostgreSQL && os(Linux)
import Testing

@testable import AssentStore

@Suite("PostgreSQL: to which hosts a connection needs a certificate")
struct PostgreSQLHostTests {
    @Test(
        "Without a setting, only a connection that does not leave this machine goes without",
        arguments: [
            ("/var/run/postgresql", true), ("localhost", true), ("::1", true), ("127.0.0.1", true), ("127.1.2.3", true),
            ("127.evil.example", false), ("127.0.0.1.evil.example", false), ("localhost.evil.example", false),
            ("Localhost", false), ("10.0.0.1", false), ("::2", false), ("db.example", false), ("128.0.0.1", false),
            ("", false), ("evil/localhost", false),
        ])
    func hosts(name: String, isLocal: Bool) {
        let host = PostgreSQLConfiguration.Host(name)
        #expect(host.isLocal == isLocal)
        let usual = PostgreSQLConfiguration(hosts: [host], database: "d", user: "u")
        switch usual.tls(to: host) {
        case nil: #expect(isLocal)
        case .verified(authority: nil): #expect(!isLocal)
        default: Issue.record("neither of them was asked for")
        }
        // What the operator has said holds for all hosts.
        let off = PostgreSQLConfiguration(hosts: [host], database: "d", user: "u", tls: .off)
        guard case .off = off.tls(to: host) else {
            Issue.record("TLS is off")
            return
        }
        let own = PostgreSQLConfiguration(
            hosts: [host], database: "d", user: "u", tls: .verified(authority: "/etc/own.pem"))
        guard case .verified("/etc/own.pem") = own.tls(to: host) else {
            Issue.record("the authority is the operator's")
            return
        }
    }
}
#endif
