import AssentConfiguration
import AssentCore
import AssentJOSE
import Foundation
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import Testing

@testable import AssentServer

@Suite("The file of a gateway without an engine")
struct GatewayServerLoaderTests {
    private static func inDirectory(_ body: (String) throws -> Void) throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try PrivateFile.create(directory + "/edge-secret", Array("a-secret-of-the-gateway\n".utf8))
        try body(directory)
    }

    private static func read(
        _ directory: String, _ change: (String) -> String = { $0 }
    ) throws -> GatewayServerConfiguration {
        let text = GatewayAlone.yaml(
            engine: "https://am.example.com/am", publicURL: "https://am.example.com/am", directory: directory,
            upstream: 9080)
        return try GatewayServerConfiguration.parse(change(text), file: directory + "/edge.yaml")
    }

    @Test("It names the engine, a client in each realm, and routes as the ordinary file has them")
    func whole() throws {
        try Self.inDirectory { directory in
            let read = try Self.read(directory)
            #expect(read.engine.url == "https://am.example.com/am")
            #expect(read.engine.realms.keys.sorted() == ["/alpha"])
            #expect(read.gateway.routes.map(\.name) == ["bank", "kept", "scoped", "open"])
            #expect(read.gateway.routes.map(\.cacheSeconds) == [0, 30, 0, 0])
            #expect(read.gateway.routes[0].access == .policies(realm: "/alpha", policySet: "bank"))
            guard case .secret(let secret) = read.engine.realms["/alpha"]?.proof else {
                Issue.record("the client has no secret")
                return
            }
            #expect(secret.reveal() == "a-secret-of-the-gateway")
            #expect(read.sendsHSTS == false && read.cookieName == "iPlanetDirectoryPro")
        }
    }

    @Test("A client's key is a PKCS#8 file, and anything else is refused")
    func key() throws {
        try Self.inDirectory { directory in
            let key = try SoftwareSigningKey.generate(.es256)
            let der = Data(key.privateKey.revealBytes())
                .base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
            try PrivateFile.create(
                directory + "/key.pem", Array("-----BEGIN PRIVATE KEY-----\n\(der)\n-----END PRIVATE KEY-----\n".utf8))
            let read = try Self.read(directory) {
                $0.replacing("secretFile: edge-secret", with: "privateKey: key.pem, keyID: k1")
            }
            guard case .key(let found, let id) = read.engine.realms["/alpha"]?.proof else {
                Issue.record("the client has no key")
                return
            }
            #expect(found.publicKeyInfo == key.publicKeyInfo && id == "k1" && found.algorithm == .es256)
            #expect(throws: ConfigurationError.self) {
                try Self.read(directory) { $0.replacing("secretFile:", with: "privateKey:") }
            }
            #expect(read.engine.realms["/alpha"]?.proofKey == nil)
            let proving = try Self.read(directory) {
                $0.replacing("secretFile: edge-secret", with: "secretFile: edge-secret, proofKey: key.pem")
            }
            #expect(proving.engine.realms["/alpha"]?.proofKey?.publicKeyInfo == key.publicKeyInfo)
        }
    }

    @Test(
        "What makes no sense without an engine, and what is missing, is refused with what to do",
        arguments: [
            ("gateway:\n", "realms: {}\ngateway:\n", "belongs in the file of the server that decides"),
            ("gateway:\n", "dataDirectory: data\ngateway:\n", "belongs in the file of the server that decides"),
            ("gateway:\n", "masterKeyFile: key\ngateway:\n", "belongs in the file of the server that decides"),
            ("gateway:\n", "database: {}\ngateway:\n", "belongs in the file of the server that decides"),
            ("gateway:\n", "publicURL: https://a.example\ngateway:\n", "stands in the section gateway"),
            ("gateway:\n", "listen: {port: 1}\ngateway:\n", "is gateway.port"),
            ("gateway:\n", "listen: {healthPort: 65536}\ngateway:\n", "healthPort"),
            (
                "gateway:\n  publicURL: \(GatewayAlone.origin)\n  port: 0\n",
                "listen: {healthPort: 9544}\ngateway:\n  publicURL: \(GatewayAlone.origin)\n  port: 9544\n",
                "another port than gateway.port"
            ),
            ("gateway:\n", "listen: {host: 0.0.0.0}\ngateway:\n", "loopback only"),
            ("gateway:\n", "whatever: 1\ngateway:\n", "unknown key"),
            ("  realms:\n    alpha: {clientID: edge, secretFile: edge-secret}\n", "", "must name a realm"),
            ("  realms:\n    alpha: {", "  Realms:\n    alpha: {", "engine.Realms: unknown key; write realms"),
            ("tls: {", "TLS: {", "TLS: unknown key; write tls"),
            (", secretFile: edge-secret", "", "secretFile or privateKey"),
            ("secretFile: edge-secret", "secretFile: edge-secret, privateKey: k", "secretFile or privateKey"),
            ("url: https://am", "url: http://am", "must be an https URL"),
            ("      realm: alpha\n", "      realm: beta\n", "engine.realms has no realm /beta"),
            ("cacheSeconds: 30", "cacheSeconds: 61", "60"),
            ("cacheSeconds: 30", "cacheSeconds: -1", "0"),
            (
                "cacheSeconds: 30", "cacheSeconds: 30\n      identity: {audience: a}",
                "cannot stand beside identity"
            ),
            ("public: true}", "public: true, cacheSeconds: 5}", "a public route has no cacheSeconds"),
            ("tls: {", "other: {", "tls is missing"),
            ("  authorities:", "  pins: [x]\n  authorities:", "pins"),
        ])
    func refused(_ old: String, _ new: String, _ expected: String) throws {
        try Self.inDirectory { directory in
            _ = try Self.read(directory)
            do {
                _ = try Self.read(directory) { $0.replacing(old, with: new, maxReplacements: 1) }
                Issue.record("it was accepted")
            } catch let error as ConfigurationError {
                #expect("\(error)".contains(expected), "\(error)")
            }
        }
    }

    @Test("A taken port ends the start with its number, its key and what to do")
    func takenPort() async throws {
        let directory = try ServerFixture.makeDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try PrivateFile.create(directory + "/edge-secret", Array("a-secret-of-the-gateway\n".utf8))
        let made = try GeneratedCertificates.make(now: Date())
        try FileManager.default.createDirectory(atPath: directory + "/data", withIntermediateDirectories: false)
        try Data(made.chainPEM.utf8).write(to: URL(fileURLWithPath: directory + "/data/server.pem"))
        try Data(made.authorityPEM.utf8).write(to: URL(fileURLWithPath: directory + "/data/authority.pem"))
        try PrivateFile.create(directory + "/data/server.key", made.privateKeyPEM.revealBytes())
        let taken = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(taken.localAddress?.port)
        var configuration = try Self.read(directory)
        configuration.gateway.port = port
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let gateway = try GatewayServer(configuration: configuration, logger: logger)
        let error = await #expect(throws: ConfigurationError.self) {
            try await ServiceGroup(services: [gateway], logger: logger).run()
        }
        let place = "port \(port) (gateway.port)"
        #expect(error?.message == "\(place) is taken: stop the program that uses it, or set another port there")
        try await taken.close()
    }

    @Test("The server's own file has no engine, and no route of it keeps decisions")
    func ordinary() throws {
        let text = FixtureConfiguration.yaml(upstream: 1, refusing: 2)
        func refusal(_ text: String) -> String {
            do {
                _ = try ServerConfiguration.parse(text, file: "/tmp/assent.yaml")
                return "accepted"
            } catch {
                return "\(error)"
            }
        }
        #expect(refusal(text) == "accepted")
        #expect(refusal(text + "\nengine: {url: https://am.example}\n").contains("serve --gateway-only"))
        #expect(
            refusal(text.replacing("passHeaders: [X-Custom]", with: "cacheSeconds: 5")).contains(
                "belongs to a gateway alone"))
    }
}
