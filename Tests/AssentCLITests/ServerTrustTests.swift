#if os(Linux)
import AssentConfiguration
import AssentCore
import AssentStore
import Foundation
import Testing

@testable import AssentCLI

@Suite("assent doctor compares a trust file with a server's file and its database")
struct ServerTrustTests {
    private typealias Home = VaultCommandTests.Home

    /// A draft of a trust file that fits ``yaml``.
    private struct Draft {
        var audience = "bank-app/linux/production"
        var config = "device"
        var issuer = "https://am.bank.example/am/oauth2/realms/root/realms/alpha"
        /// Hosts with the credentials that they get.
        var hosts = [("am.bank.example", "user, device"), ("pay.bank.example", "user")]
        var origins = ["https://am.bank.example", "https://pay.bank.example"]
        var hasPayload = true
        var mode = "server"

        var yaml: String {
            let end = Date(timeIntervalSinceNow: 400 * 86_400).formatted(.iso8601.year().month().day())
            let pins = (1...2).map { number in
                let pin = Data(repeating: UInt8(number), count: 32).base64EncodedString()
                return "      - {spki: sha256/\(pin), notAfter: \(end)}"
            }
            let keys = [1, 2].map {
                "{kid: \"\(Key.kid($0))\", x: \"\(Key.publicKey($0))\", notAfter: \(Key.end)}"
            }
            var lines = [
                "audience: \(audience)", "issuer: \(issuer)", "keys: [first.jwk, second.jwk]",
                "config: [\(config).jwk]", "identity: \(Base64URL.encode([UInt8](repeating: 7, count: 32)))",
                "controls: {debugger: refuse, rooted: report, preload: refuse}",
                "source: [https://trust.bank.example/app]", "hosts:",
            ]
            for (host, sends) in hosts {
                lines += ["  \(host):", "    sends: [\(sends)]", "    pins:"]
                lines += pins
            }
            guard hasPayload else { return lines.joined(separator: "\n") }
            let sealed = origins.map { "\"\($0)\"" }.joined(separator: ", ")
            let members = "suite: pe1, mode: \(mode), keys: [\(keys.joined(separator: ", "))], origins: [\(sealed)]"
            return (lines + ["payload: {\(members)}"]).joined(separator: "\n")
        }
    }

    /// A payload key by number, in the database as the server would have it.
    private struct Key {
        var number: Int
        var publicKey: String
        var notBefore: Int64 = 1
        var notAfter = Int64(Key.end)
        var withdrawnAt: Int64?

        /// The end that the trust file says, at a whole second.
        static let end = Int(Date(timeIntervalSinceNow: 400 * 86_400).timeIntervalSince1970)

        static func publicKey(_ number: Int) -> String {
            Base64URL.encode([UInt8](repeating: UInt8(number), count: 32))
        }

        /// The thumbprint of the JWK (RFC 7638).
        static func kid(_ number: Int) -> String {
            let jwk = #"{"crv":"X25519","kty":"OKP","x":"\#(publicKey(number))"}"#
            return Base64URL.encode(SHA2.sha256(Array(jwk.utf8)))
        }

        init(_ number: Int) { (self.number, publicKey) = (number, Self.publicKey(number)) }
    }

    private static let yaml = """
        development: true
        publicURL: https://am.bank.example/am
        dataDirectory: data
        realms:
          alpha:
            deviceConfig: {keyFile: device.pem, environment: production}
            apps:
              bank-app:
                redirectURIs: ["http://127.0.0.1/callback"]
                scopes: [openid]
                idTokenAlgorithm: ES256
                versions: {"3.2.0": {status: enabled, payloadEncryption: allowed}, default: {status: enabled}}
        gateway:
          publicURL: https://pay.bank.example
          routes:
            - {name: rates, upstream: "http://127.0.0.1:9080", public: true, payloadEncryption: allowed}
        """

    private static let edge = """
        development: true
        tls: {certificate: server.pem, privateKey: server.key}
        engine:
          url: https://am.bank.example/am
          realms:
            alpha: {clientID: edge, secretFile: edge-secret}
        gateway:
          publicURL: https://pay.bank.example
          routes:
            - {name: rates, upstream: "http://127.0.0.1:9080", public: true}
        """

    private let home: Home
    private var server: String { home.directory.appending(path: "assent.yaml").path }
    private var database: String { home.directory.appending(path: "data/assent.sqlite").path }

    init() throws {
        home = try Home()
        for name in ["first", "second", "device"] { try home.makeKey(name) }
        try FileManager.default.createDirectory(
            at: home.directory.appending(path: "data"), withIntermediateDirectories: false,
            attributes: [.posixPermissions: 0o700])
        _ = try home.file("assent.yaml", Self.yaml)
    }

    /// Signs a draft as the first version of a chain of its own, and says where it is.
    private func sign(_ draft: Draft) async throws -> String {
        let versions = home.directory.appending(path: SystemRandom().uuid())
        try FileManager.default.createDirectory(at: versions, withIntermediateDirectories: false)
        try await home.sign(
            home.file("trust.yaml", draft.yaml), in: versions.path,
            key: home.directory.appending(path: "first.pem").path)
        return versions.appending(path: "1").path
    }

    /// Has exactly these keys in the database.
    private func keep(_ keys: [Key]) async throws {
        let database = try await DatabaseLocation.sqlite(path: database).open(clock: SystemClock())
        _ = try await database.run(SQLStatement("DELETE FROM payload_keys"))
        for key in keys {
            _ = try await database.run(
                SQLStatement(
                    """
                    INSERT INTO payload_keys (kid, public_key, not_before, not_after, created_at, withdrawn_at)
                    VALUES (\(Key.kid(key.number)), \(key.publicKey), \(key.notBefore), \(key.notAfter), 1,
                        \(key.withdrawnAt))
                    """))
        }
        try await database.close()
    }

    /// What is found beside what there is to say of the trust file alone.
    private func findings(
        _ draft: Draft = Draft(), config: String? = nil, server change: (String) -> String = { $0 }
    ) async throws -> [Diagnosis] {
        _ = try home.file("assent.yaml", change(Self.yaml))
        let trust = try await sign(draft)
        let found = await ServerTrustExamination(trust: trust, config: config ?? server, clock: SystemClock())
            .findings()
        #expect(found.first?.verdict == .fine && found.first?.text.contains("is version 1 for") == true, "\(found)")
        return Array(found.dropFirst())
    }

    /// That exactly one thing is found, of this kind and with these words.
    private func expect(_ verdict: Diagnosis.Verdict, _ words: [String], in found: [Diagnosis], _ what: String) {
        #expect(found.map(\.verdict) == [verdict], "\(what): \(found)")
        for word in words { #expect(found.first?.text.contains(word) == true, "\(what), \(word): \(found)") }
    }

    @Test("Nothing is found where the file, the server and its keys fit")
    func good() async throws {
        try await keep([Key(1), Key(2)])
        #expect(try await findings().isEmpty)
        var without = Draft()
        without.hasPayload = false
        #expect(try await findings(without).isEmpty)
    }

    @Test("A payload key that the server lacks, has withdrawn, has ended or soon ends")
    func keys() async throws {
        let now = SystemClock().epochSeconds
        let cases: [(what: String, verdict: Diagnosis.Verdict, words: String, change: (inout Key) -> Void)] = [
            ("another key of that name", .problem, "the server lacks", { $0.publicKey = Key.publicKey(3) }),
            ("withdrawn", .problem, "was withdrawn", { $0.withdrawnAt = now - 5 }),
            ("ended", .problem, "ended at the server", { $0.notAfter = now - 5 }),
            ("not begun", .note, "and not yet", { $0.notBefore = now + 86_400 }),
            ("ends soon", .note, "within 30 days", { $0.notAfter = now + 20 * 86_400 }),
            ("ends before the file says", .note, "for longer", { $0.notAfter = now + 100 * 86_400 }),
        ]
        for (what, verdict, words, change) in cases {
            var key = Key(1)
            change(&key)
            try await keep([key, Key(2)])
            expect(verdict, [words, Key.kid(1)], in: try await findings(), what)
        }
        try await keep([Key(2)])
        expect(.problem, ["the server lacks", Key.kid(1)], in: try await findings(), "missing")
        // Another key of the server is nothing to an app.
        try await keep([Key(1), Key(2), Key(3)])
        #expect(try await findings().isEmpty)
    }

    @Test("A server without a database lacks every key; one that cannot be read is not compared")
    func unreadable() async throws {
        let missing = try await findings()
        #expect(missing.map(\.verdict) == [.problem, .problem], "\(missing)")
        try Data(repeating: 7, count: 8192).write(to: URL(fileURLWithPath: database))
        expect(.note, ["the database was not read"], in: try await findings(), "damaged")
    }

    @Test("Payload keys of other servers are not compared")
    func elsewhere() async throws {
        try await keep([])
        var draft = Draft()
        draft.origins = ["https://other.bank.example"]
        expect(.note, ["payload.origins"], in: try await findings(draft), "elsewhere")
        draft.origins += ["https://pay.bank.example"]
        #expect(try await findings(draft).map(\.verdict) == [.problem, .problem])
    }

    @Test("A version whose calls must be sealed, and an address that the file has no payload keys for")
    func versions() async throws {
        try await keep([Key(1), Key(2)])
        let required: (String) -> String = {
            $0.replacing("payloadEncryption: allowed}, default", with: "payloadEncryption: required}, default")
        }
        #expect(try await findings(server: required).isEmpty)
        for (kept, lost) in [("am", "pay"), ("pay", "am")] {
            var draft = Draft()
            draft.origins = ["https://\(kept).bank.example"]
            #expect(try await findings(draft).isEmpty)
            let found = try await findings(draft, server: required)
            expect(.problem, ["versions 3.2.0 of the app bank-app", "https://\(lost).bank.example"], in: found, lost)
        }
        // What gets no credential does not know whose version calls, and another app has other versions.
        var draft = Draft()
        draft.origins = ["https://am.bank.example"]
        draft.hosts[1].1 = ""
        #expect(try await findings(draft, server: required).isEmpty)
        draft = Draft()
        draft.hasPayload = false
        #expect(try await findings(draft, server: required).map(\.verdict) == [.problem, .problem])
    }

    @Test("A version that gets no session, and whose app always seals")
    func off() async throws {
        try await keep([Key(1), Key(2)])
        func versions(_ yaml: String, of text: String) -> String {
            text.replacing(
                "{\"3.2.0\": {status: enabled, payloadEncryption: allowed}, default: {status: enabled}}", with: yaml)
        }
        let off = "{\"3.2.0\": {status: enabled, payloadEncryption: \"off\"}, default: {status: enabled}}"
        var draft = Draft()
        // Where the server decides, it tells such a version to call plainly.
        #expect(try await findings(draft, server: { versions(off, of: $0) }).isEmpty)
        draft.mode = "always"
        #expect(try await findings(draft).isEmpty, "the control")
        let words = [
            "the versions 3.2.0 of the app bank-app", "always", "https://am.bank.example, https://pay.bank.example",
        ]
        expect(.problem, words, in: try await findings(draft, server: { versions(off, of: $0) }), "named")
        let others = "{\"3.2.0\": {status: enabled}, default: {status: enabled, payloadEncryption: \"off\"}}"
        let told = try await findings(draft, server: { versions(others, of: $0) })
        expect(.problem, ["the versions default of the app bank-app"], in: told, "all others")
        // What is not served needs no session.
        let disabled = "{\"3.2.0\": {status: disabled, payloadEncryption: \"off\"}, default: {status: enabled}}"
        #expect(try await findings(draft, server: { versions(disabled, of: $0) }).isEmpty)
        draft.origins = ["https://other.bank.example"]
        let elsewhere = try await findings(draft, server: { versions(off, of: $0) })
        expect(.note, ["payload.origins"], in: elsewhere, "sealed elsewhere alone")
    }

    @Test("An app of the same name in another realm that allows it keeps a version's sessions")
    func offInOneRealm() async throws {
        try await keep([Key(1), Key(2)])
        var draft = Draft()
        draft.mode = "always"
        func server(_ sealing: String) -> (String) -> String {
            {
                $0.replacing("payloadEncryption: allowed}, default", with: "payloadEncryption: \"off\"}, default")
                    .replacing(
                        "gateway:",
                        with: """
                              beta:
                                apps:
                                  bank-app:
                                    redirectURIs: ["http://127.0.0.1/callback"]
                                    scopes: [openid]
                                    idTokenAlgorithm: ES256
                                    versions:
                                      "3.2.0": {status: enabled, payloadEncryption: "\(sealing)"}
                                      default: {status: enabled}
                            gateway:
                            """)
            }
        }
        #expect(try await findings(draft, server: server("allowed")).isEmpty)
        expect(.problem, ["3.2.0"], in: try await findings(draft, server: server("off")), "off in both")
    }

    @Test("A route whose calls must be sealed, and the file has no payload keys for the gateway")
    func routes() async throws {
        try await keep([Key(1), Key(2)])
        let required: (String) -> String = {
            $0.replacing("public: true, payloadEncryption: allowed", with: "public: true, payloadEncryption: required")
        }
        #expect(try await findings(server: required).isEmpty)
        var draft = Draft()
        draft.origins = ["https://am.bank.example"]
        #expect(try await findings(draft).isEmpty)
        let found = try await findings(draft, server: required)
        expect(.problem, ["the routes rates", "https://pay.bank.example"], in: found, "route")
    }

    @Test("A host that the file does not name: of the server, of the gateway, of a gateway elsewhere")
    func hosts() async throws {
        try await keep([Key(1), Key(2)])
        let edge = try home.file("edge.yaml", Self.edge)
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o600], ofItemAtPath: try home.file("edge-secret", "a-secret-of-the-gateway\n"))
        var draft = Draft()
        #expect(try await findings(draft, config: edge).isEmpty)
        draft.hosts.removeLast()
        let gateway = ["does not name pay.bank.example", "rates"]
        expect(.note, gateway, in: try await findings(draft), "gateway")
        expect(.note, gateway, in: try await findings(draft, config: edge), "gateway elsewhere")
        draft = Draft()
        draft.hosts.removeFirst()
        expect(.problem, ["does not name am.bank.example"], in: try await findings(draft), "server")
    }

    @Test("What the realm tells installations: by a key that the file does not name, or for others than it is for")
    func deviceConfiguration() async throws {
        try await keep([Key(1), Key(2)])
        let silent: (String) -> String = {
            $0.replacing("    deviceConfig: {keyFile: device.pem, environment: production}\n", with: "")
        }
        let wrong: [(Diagnosis.Verdict, String, (inout Draft) -> Void)] = [
            (.problem, "in config", { $0.config = "second" }),
            (.problem, "deviceConfig.environment", { $0.audience = "bank-app/linux/test" }),
            (.note, "has no app other", { $0.audience = "other/linux/production" }),
        ]
        for (verdict, words, change) in wrong {
            var draft = Draft()
            change(&draft)
            expect(verdict, [words], in: try await findings(draft), words)
            #expect(try await findings(draft, server: silent).isEmpty, "\(words)")
        }
        var draft = Draft()
        draft.config = "second"
        draft.issuer = "https://am.bank.example/am/oauth2/realms/root/realms/beta"
        expect(.note, ["is not one of this server's"], in: try await findings(draft), "issuer")
    }

    @Test("A trust file that cannot be used is all that is said of it")
    func unusable() async throws {
        let path = try home.file("none", "none")
        let found = await ServerTrustExamination(trust: path, config: server, clock: SystemClock()).findings()
        expect(.problem, ["cannot be used"], in: found, "none")
    }

    @Test("The command says it among its findings, and its exit status is that of a problem")
    func command() async throws {
        try await keep([Key(2)])
        let trust = try await sign(Draft())
        let told = try home.run("doctor", "--config", server, "--trust", trust)
        #expect(told.status == 78 && told.out.contains("✗ the server lacks the payload key \(Key.kid(1))"), "\(told)")
        try await keep([Key(1), Key(2)])
        let fine = try home.run("doctor", "--config", server, "--trust", trust)
        #expect(fine.out.contains("✓ the trust file") && !fine.out.contains("the server lacks"), "\(fine)")
        let profile = try home.run("doctor", "--config", server, "--profile", "default")
        #expect(profile.status == 64 && profile.err.contains("--profile is for a client"), "\(profile)")
    }
}
#endif
