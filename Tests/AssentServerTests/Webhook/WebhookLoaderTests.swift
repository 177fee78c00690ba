import AssentConfiguration
import AssentCore
import Foundation
import Testing

@testable import AssentServer

@Suite("The section notify")
struct WebhookLoaderTests {
    /// A directory with the secret of a service, which is gone after the test.
    private final class Place {
        let path: String

        init(_ secret: String = WebhookReceiver.secret) throws {
            path = try ServerFixture.makeDirectory()
            try PrivateFile.create(path + "/notify.secret", Array(secret.utf8))
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        func load(_ lines: String, in text: String = WebhookLoaderTests.development) throws -> WebhookSettings? {
            try ServerConfiguration.parse("\(lines)\n\(text)", file: path + "/assent.yaml").webhook
        }

        /// What is said of the section.
        func complaint(_ lines: String, in text: String = WebhookLoaderTests.development) -> String {
            do {
                _ = try load(lines, in: text)
                return ""
            } catch {
                return "\(error)"
            }
        }
    }

    private static let usual = "notify: {url: \"https://push.bank.example/assent?key=1\", secretFile: notify.secret}"

    private static let development = FixtureConfiguration.yaml(upstream: 9080, refusing: 9081)

    /// The file of a server that is not under development.
    private static let production =
        development
        .replacing("development: true\n", with: "tls: {certificate: c.pem, privateKey: k.pem}\n")
        .replacing("passwordCost: 1024\n", with: "").replacing(", credentials: generated", with: "")

    @Test("It names an address, and a file with the secret")
    func good() throws {
        let place = try Place(WebhookReceiver.secret + "\n")
        for text in [Self.development, Self.production] {
            let settings = try #require(try place.load(Self.usual, in: text))
            #expect(settings.url == "https://push.bank.example/assent?key=1")
            #expect(settings.key == Secret(bytes: WebhookReceiver.key))
            #expect(!"\(settings)".contains(WebhookReceiver.secret))
        }
        let none = try place.load("")
        #expect(none == nil)
    }

    @Test(
        "An address that nothing may be sent to is refused",
        arguments: [
            ("\"http://push.bank.example/\"", "must be an https URL"),
            ("\"https://a:b@push.bank.example/\"", "must be an https URL"),
            ("\"https://push.bank.example/#a\"", "must be an https URL"), ("push.bank.example", "must be an https URL"),
            ("\"https://localhost:9000/\"", "name localhost in outbound.privateHosts"),
            ("\"http://127.0.0.1:9000/\"", "name 127.0.0.1 in outbound.privateHosts"),
        ])
    func addresses(url: String, message: String) throws {
        let complaint = try Place().complaint("notify: {url: \(url), secretFile: notify.secret}")
        #expect(complaint.contains("assent.yaml:1: notify.url: ") && complaint.contains(message), "\(complaint)")
    }

    @Test("Only under development may a service on this machine be without TLS")
    func plain() throws {
        let place = try Place()
        let lines = """
            outbound: {privateHosts: [localhost]}
            notify: {url: "http://localhost:9000/", secretFile: notify.secret}
            """
        #expect(try place.load(lines)?.url == "http://localhost:9000/")
        #expect(place.complaint(lines, in: Self.production).contains("notify.url: must be an https URL"))
    }

    @Test("Another key, and one that is missing, are named")
    func keys() throws {
        let place = try Place()
        let url = "url: \"https://push.bank.example/\""
        #expect(place.complaint("notify: {\(url)}").contains("notify.secretFile: is missing: name a file"))
        #expect(place.complaint("notify: {secretFile: notify.secret}").contains("notify.url: must be an https URL"))
        #expect(
            place.complaint("notify: {\(url), secretfile: notify.secret}").contains("unknown key; write secretFile"))
        #expect(
            place.complaint("notify: {\(url), secretFile: notify.secret, retries: 3}")
                .contains("notify.retries: unknown key"))
    }

    @Test(
        "What is not a secret of Standard Webhooks is refused",
        arguments: [
            "", "whsec_", "whsec_AAAA", WebhookReceiver.secret.replacing("whsec_", with: ""),
            "whsec_" + Data(count: 23).base64EncodedString(), "whsec_" + Data(count: 65).base64EncodedString(),
            "whsec_?" + Data(count: 32).base64EncodedString(),
        ])
    func secrets(secret: String) throws {
        let place = try Place(secret)
        let complaint = place.complaint(Self.usual)
        #expect(complaint.contains("notify.secretFile: must hold whsec_ and the base 64"), "\(complaint)")
    }

    @Test("A secret that others may read is refused, and so is one that is not there")
    func files() throws {
        let place = try Place()
        let file = place.path + "/notify.secret"
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: file)
        #expect(place.complaint(Self.usual).contains("run 'chmod 600 \(file)'"))
        try FileManager.default.removeItem(atPath: file)
        #expect(place.complaint(Self.usual).contains("\(file): cannot be read"))
    }

    @Test("assent doctor says where messages go, and reads the authorities for it")
    func doctor() async throws {
        let place = try Place()
        defer { withExtendedLifetime(place) {} }
        let text = "outbound: {authorities: missing.pem}\n\(Self.usual)\n\(Self.development)"
        let file = place.path + "/assent.yaml"
        try Data(text.utf8).write(to: URL(fileURLWithPath: file))
        let found = await ServerExamination.findings(file: file)
        let said = try #require(found.first { $0.text.contains("(notify)") })
        #expect(said.verdict == .fine && said.text.contains("https://push.bank.example, signed"))
        #expect(found.allSatisfy { !$0.text.contains("key=1") })
        #expect(found.contains { $0.verdict == .problem && $0.text.contains("outbound.authorities") })
    }
}
