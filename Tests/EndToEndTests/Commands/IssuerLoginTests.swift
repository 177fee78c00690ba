import AssentCore
import AssentPeers
import Foundation
import HTTPTypes
import TestSupport
import Testing

@testable import AssentCLI

/// `assent login --browser` at OpenID providers that we did not write.
@Suite("assent at other OpenID providers")
struct IssuerLoginTests {
    /// Signs in, looks and signs out; `walk` is the user's browser, from the printed address to the last redirect.
    private func story(
        issuer: String, client: String, redirectURI: String = "http://127.0.0.1/callback", subject: String?,
        walk: (String) async throws -> String
    ) async throws {
        let directory = try TemporaryDirectory()
        let program = try Program(
            below: directory.path("program"),
            client: """
                issuer: \(issuer)
                client:
                  id: \(client)
                  redirectURI: \(redirectURI)
                  scopes: [openid]
                """)
        let walking = try await program.run("login", "--config", program.clientFile)
        #expect(walking.status == 1 && walking.errors.contains("--browser"), "\(walking.errors)")

        let login = try program.start([
            "login", "--browser", "--timeout", "\(Patience.seconds)", "--config", program.clientFile,
        ])
        let url = try await login.line(with: "response_type=code").trimmingCharacters(in: .whitespaces)
        let location = try await walk(url)
        #expect(try await PeerClient().send(.get, location).status == 200)
        let result = await login.result()
        #expect(result.status == 0 && result.output.contains("Signed in."), "\(result.errors)")

        let user = try await program.run("userinfo")
        let told = try? JSONValue.parse(user.output)["sub"]?.string
        #expect(user.status == 0 && told != nil && (subject == nil || told == subject), "\(user.output)\(user.errors)")
        #expect(try await program.run("token").output.isEmpty == false)
        let status = try await program.run("status")
        #expect(status.status == 0 && status.output.contains("is signed in at \(issuer)"), "\(status.output)")
        #expect(status.output.contains("Issuer:        \(issuer)"))
        let users = try await program.run("users", "list")
        #expect(users.status == 1 && users.errors.contains("names an issuer"), "\(users.errors)")
        // The provider's session is the browser's, which alone can end it: where, is said.
        let out = try await program.run("logout")
        #expect(out.output.contains("Your browser is still signed in"), "\(out.output)\(out.errors)")
        #expect(out.output.contains("id_token_hint=") && !out.errors.contains("the provider's session goes on"))
        #expect(try await program.run("status").status == 1)
    }

    @Test("glewlwyd, in C, from Debian")
    func glewlwyd() async throws {
        let provider = try await Glewlwyd.shared
        // It takes a redirect URI only as it is registered, the port of a loopback address too.
        let reserved = try ReservedPort()
        defer { withExtendedLifetime(reserved) {} }
        let redirectURI = "http://127.0.0.1:\(reserved.port)/callback"
        try await provider.addClient("command-line", redirectURI: redirectURI)
        let browser = try await provider.signIn()
        try await story(
            issuer: provider.issuer, client: "command-line", redirectURI: redirectURI, subject: nil
        ) { try await provider.authorize($0, in: browser) }
    }

    @Test("django-oauth-toolkit, from PyPI")
    func django() async throws {
        let (process, port) = try await Peer.start(
            "django_provider.sh", [try Peer.python, "http://127.0.0.1/callback"])
        defer { process.withLock { $0.stop() } }
        try await story(issuer: "http://127.0.0.1:\(port)/o", client: "app", subject: "alice") { url in
            let answer = try await PeerClient().send(.get, url)
            return try #require(answer.fields[.location], "\(answer.status) \(answer.text.prefix(300))")
        }
    }

    @Test("oidc-provider-mock, from PyPI")
    func mock() async throws {
        let (process, port) = try await Peer.start("bad_provider.sh", [try Peer.python])
        defer { process.withLock { $0.stop() } }
        try await story(issuer: "http://127.0.0.1:\(port)", client: "app", subject: "alice@example.org") { url in
            let answer = try await PeerClient().post(url, form: FormItems(["sub": "alice@example.org"]))
            return try #require(answer.fields[.location], "\(answer.status) \(answer.text.prefix(300))")
        }
    }
}
