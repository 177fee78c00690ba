import Assent
import AssentCore
import AssentPeers
import AssentServer
import AssentTransportNIO
import Foundation
import NIOCore

/// nginx on loopback, which speaks TLS with a certificate of its own that clients pin.
struct PinnedServer {
    let port: Int
    let certificates: GeneratedCertificates

    /// The name of the cookie and of the field that carry the session.
    static let cookieName = "session"
    static let session = "u1Jf3s0m3l0ngv4lu3th4ts33msl1k3as3ss10n"

    private let process: ChildProcess

    /// Starts it in `directory`, with these lines in its `server`.
    init(_ lines: String, in directory: String) async throws {
        certificates = try GeneratedCertificates.make(now: Date())
        try Data(certificates.chainPEM.utf8).write(to: URL(fileURLWithPath: directory + "/chain.pem"))
        try Data(certificates.privateKeyPEM.revealBytes()).write(to: URL(fileURLWithPath: directory + "/key.pem"))
        let ports = try await Nginx.freePorts(1)
        guard let port = ports.first else { throw BenchFailure("no free port") }
        self.port = port
        process = try await Nginx.start(
            """
            server {
                listen 127.0.0.1:\(port) ssl; \(Nginx.tls(chain: directory + "/chain.pem", key: directory + "/key.pem"))
                \(lines)
            }
            """, in: directory, ports: ports)
    }

    var origin: String { "https://localhost:\(port)" }

    /// Ends it.
    func stop() { process.stop() }

    /// The SDK's transport, which pins the server, unless it is to take any key of the server's authority.
    func transport(on group: any EventLoopGroup, isPinned: Bool = true) throws -> NIOTransport {
        try NIOTransport(
            configuration: NIOTransportConfiguration(
                trustRoots: .certificates([Array(certificates.authorityPEM.utf8)]),
                pins: ["localhost": isPinned ? .pins(certificates.pins) : .unpinned]), eventLoopGroup: group)
    }

    /// The SDK on this transport, with a session that it attaches to what goes to this server.
    func assent(
        over transport: NIOTransport, _ change: (inout Assent.Configuration) -> Void = { _ in }
    ) async throws -> Assent {
        var configuration = Assent.Configuration(
            server: origin + "/am", realm: "alpha", client: .init(id: "bank-app", redirectURI: "com.bank:/cb"),
            resources: [origin: .session], pins: [:], vault: .memory)
        configuration.transport = transport
        configuration.sessionCookieName = Self.cookieName
        change(&configuration)
        let assent = try Assent(configuration)
        try await assent.tokens.install(Session(token: Secret(Self.session)))
        return assent
    }
}
