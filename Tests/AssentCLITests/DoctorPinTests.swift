import AssentConfiguration
import AssentCore
import AssentPeers
import AssentServer
import Foundation
import TestSupport
import Testing

@testable import AssentCLI

@Suite("assent doctor and the pins")
struct DoctorPinTests {
    /// A place of its own, a CA and a certificate, and a client's file for them.
    final class World: Sendable {
        private let place: TemporaryDirectory
        let directory: String
        let certificates: GeneratedCertificates
        let authority: String
        let places: Places

        init() throws {
            place = try TemporaryDirectory()
            directory = place.url.path
            certificates = try GeneratedCertificates.make(now: Date())
            authority = directory + "/authority.pem"
            places = Places(environment: ["HOME": directory])
            try Data(certificates.authorityPEM.utf8).write(to: URL(fileURLWithPath: authority))
        }

        func client(_ port: Int, _ pins: [Pin], single: Bool = false, host: String = "localhost") -> ClientFile {
            ClientFile(
                server: "https://localhost:\(port)/am", realm: "/", cookieName: "session", clientID: "bank-app",
                redirectURI: "http://127.0.0.1/callback", scopes: ["openid"], journey: "Login", resources: [],
                authority: authority, pins: [.init(host: host, pins: pins, isSingle: single)])
        }

        /// One that waits for servers as long as a busy machine needs.
        func examination(
            profile: String, file: String?, trust: String? = nil, asking: Bool = false
        ) -> ClientExamination {
            ClientExamination(
                profile: profile, file: file, trust: trust, places: places, asksServer: asking,
                leastLimit: .seconds(3600))
        }

        func examine(_ client: ClientFile, asking: Bool = false) async throws -> [Diagnosis] {
            let path = directory + "/client.yaml"
            try Data(client.yaml.utf8).write(to: URL(fileURLWithPath: path))
            return await examination(profile: "default", file: path, asking: asking).findings()
        }

        /// The findings about a server that shows the certificates. It never gets a request.
        func examine(
            _ pins: [Pin], single: Bool = false, showing shown: GeneratedCertificates? = nil, host: String? = nil,
            asking: Bool = false
        ) async throws -> [Diagnosis] {
            let server = try await HandshakeServer.start(shown ?? certificates)
            let findings = try await examine(
                client(server.port, pins, single: single, host: host ?? "localhost:\(server.port)"), asking: asking)
            let (connections, bytes) = await server.stop()
            #expect(connections == 1 && bytes == 0)
            return findings
        }
    }

    private static func other(_ seed: UInt8) throws -> Pin { try Pin(sha256: [UInt8](repeating: seed, count: 32)) }

    private func texts(_ findings: [Diagnosis], where isWanted: (Diagnosis) -> Bool) -> String {
        findings.filter(isWanted).map(\.text).joined(separator: "\n")
    }

    @Test("Right pins: it says which is the leaf's and which the root's, for a host with and without a port")
    func right() async throws {
        let world = try World()
        let (leaf, root) = (world.certificates.pins[0], world.certificates.pins[1])
        for host in [nil, "localhost", "LOCALHOST."] {
            let findings = try await world.examine([root, leaf], host: host)
            #expect(findings.allSatisfy { $0.verdict == .fine }, "\(findings)")
            let text = texts(findings) { $0.verdict != .problem }
            #expect(text.contains("\(leaf) is the leaf's, CN=localhost"))
            #expect(text.contains("\(root) is the root's, CN=Assent development CA"))
        }
    }

    @Test("Wrong pins: it says what is shown instead, and how to get the right ones")
    func wrong() async throws {
        let world = try World()
        let findings = try await world.examine([try Self.other(1), try Self.other(2)], asking: true)
        let text = texts(findings) { $0.verdict == .problem }
        #expect(text.contains("no pin is in the chain") && text.contains("assent login --config"))
        for pin in world.certificates.pins { #expect(text.contains("\(pin)")) }
        #expect(text.contains("the leaf's") && text.contains("the root's"))
    }

    @Test("Only the issuer's pin fits: that is enough, and the backup that is missing is named")
    func backupOnly() async throws {
        let world = try World()
        let (leaf, root) = (world.certificates.pins[0], world.certificates.pins[1])
        let old = try Self.other(1)
        let findings = try await world.examine([old, root])
        #expect(findings.allSatisfy { $0.verdict != .problem }, "\(findings)")
        let notes = texts(findings) { $0.verdict == .note }
        #expect(notes.contains("\(old) is a backup: it is in no certificate"))
        #expect(notes.contains("the server's own key \(leaf) is not pinned"))
        #expect(texts(findings) { $0.verdict != .note }.contains("\(root) is the root's"))
    }

    @Test("A single pin on purpose is a note; that it is the wrong one is still wrong")
    func single() async throws {
        let world = try World()
        let leaf = world.certificates.pins[0]
        let right = try await world.examine([leaf], single: true)
        #expect(right.allSatisfy { $0.verdict != .problem }, "\(right)")
        #expect(texts(right) { $0.verdict == .note }.contains("singlePin"))
        #expect(texts(right) { $0.verdict != .note }.contains("\(leaf) is the leaf's"))
        let wrong = try await world.examine([try Self.other(1)], single: true)
        #expect(texts(wrong) { $0.verdict == .problem }.contains("no pin is in the chain"))
    }

    @Test("When the server is down the CA's file is compared all the same, and nothing is called wrong")
    func down() async throws {
        let world = try World()
        // Nobody listens there, and nobody gets it meanwhile.
        let reserved = try ReservedPort()
        defer { withExtendedLifetime(reserved) {} }
        let root = world.certificates.pins[1]
        let findings = try await world.examine(world.client(reserved.port, world.certificates.pins))
        #expect(findings.allSatisfy { $0.verdict != .problem }, "\(findings)")
        #expect(texts(findings) { $0.verdict == .note }.contains("could not be looked at"))
        #expect(
            texts(findings) { $0.verdict != .note }.contains("\(root) is in the CA's file, CN=Assent development CA"))
    }

    @Test("A server under another CA is not trusted, whatever is pinned")
    func otherAuthority() async throws {
        let world = try World()
        let evil = try GeneratedCertificates.make(now: Date())
        let text = texts(try await world.examine(evil.pins, showing: evil, asking: true)) { $0.verdict == .problem }
        #expect(text.contains("is not trusted") && text.contains("\(evil.pins[0])"))
    }

    @Test("A certificate that is shown without being part of the path does not match, and doctor says so")
    func appended() async throws {
        let world = try World()
        let backup = try GeneratedCertificates.make(now: Date())
        let extended = world.certificates.authorityPEM + backup.authorityPEM
        try Data(extended.utf8).write(to: URL(fileURLWithPath: world.authority))
        let findings = try await world.examine([world.certificates.pins[0], backup.pins[1]])
        #expect(findings.allSatisfy { $0.verdict != .problem })
        #expect(texts(findings) { $0.verdict == .note }.contains("\(backup.pins[1]) is a backup: the key of CN=Assent"))
        try Data(world.certificates.authorityPEM.utf8).write(to: URL(fileURLWithPath: world.authority))
        let server = try await HandshakeServer.start(world.certificates, appending: backup.authorityPEM)
        let shown = try await world.examine(world.client(server.port, [world.certificates.pins[0], backup.pins[1]]))
        #expect(texts(shown) { $0.verdict == .note }.contains("is not part of the validated chain"))
        let alone = try await world.examine(world.client(server.port, [backup.pins[1], try Self.other(1)]))
        #expect(texts(alone) { $0.verdict == .problem }.contains("no pin is in the chain"))
        #expect(await server.stop().bytes == 0)
    }

    @Test("A host without pins, a CA's file that is missing or unreadable, and a port without TLS are each a problem")
    func mistakes() async throws {
        let world = try World()
        let pins = world.certificates.pins
        let unpinned = try await world.examine(world.client(1, pins, host: "elsewhere.example"))
        #expect(texts(unpinned) { $0.verdict == .problem }.contains("localhost:1 has no pins"))
        let mail = try await HandshakeServer(nil)
        let plain = try await world.examine(world.client(mail.port, pins))
        #expect(texts(plain) { $0.verdict == .problem }.contains("a TLS connection could not be made"))
        _ = await mail.stop()
        try Data("no certificate".utf8).write(to: URL(fileURLWithPath: world.authority))
        #expect(
            texts(try await world.examine(world.client(1, pins))) { $0.verdict == .problem }.contains("authority.pem"))
        try FileManager.default.removeItem(atPath: world.authority)
        #expect(texts(try await world.examine(world.client(1, pins))) { $0.verdict == .problem }.contains("is missing"))
        var file = world.client(1, pins)
        file.server = "http://localhost:1/am"
        #expect(texts(try await world.examine(file)) { $0.verdict == .problem }.contains("is not an https:// URL"))
    }

    @Test("Without a file the profile's own is looked at; where there is none, it says how to get one")
    func profile() async throws {
        let world = try World()
        let server = try await HandshakeServer.start(world.certificates)
        let client = world.client(server.port, world.certificates.pins)
        let examination = world.examination(profile: "work", file: nil)
        let missing = await examination.findings()
        #expect(
            missing.count == 1
                && missing.allSatisfy { $0.verdict == .problem && $0.text.contains("assent login --config") })
        let path = world.directory + "/client.yaml"
        try Data(client.yaml.utf8).write(to: URL(fileURLWithPath: path))
        try ClientProfile.load(config: path, name: "work", places: world.places).keep()
        let kept = await examination.findings()
        #expect(kept.allSatisfy { $0.verdict == .fine }, "\(kept)")
        #expect(kept.first?.text.contains("/assent/work.yaml can be read") == true)
        var newer = client
        let byName = world.examination(profile: "work", file: path)
        // Where the server had its gateway, only its next start wants to know.
        newer.lastGateway = .missing
        try Data(newer.yaml.utf8).write(to: URL(fileURLWithPath: path))
        let same = await byName.findings()
        #expect(!same.contains { $0.verdict == .note }, "\(same)")
        newer.journey = "Other"
        try Data(newer.yaml.utf8).write(to: URL(fileURLWithPath: path))
        let named = await byName.findings()
        let work = world.places.configurationFile(profile: "work")
        #expect(texts(named) { $0.verdict == .note }.contains("use \(work)"))
        try Data("server: [".utf8).write(
            to: URL(fileURLWithPath: world.places.configurationFile(profile: "work")))
        #expect(texts(await examination.findings()) { $0.verdict == .problem }.contains("work.yaml:"))
        #expect(await server.stop().bytes == 0)
    }
}
