import AssentConfiguration
import AssentCore
import Crypto
import Foundation
import HTTPTypes
import Logging
import NIOSSL
import SwiftASN1
import TestSupport
import Testing
import X509

@testable import AssentServer

@Suite("TLS from the gateway to its services")
struct UpstreamTLSTests {
    private static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    /// Certificates of a service, and files in a directory that is removed at the end.
    private struct World {
        let directory: String
        let service: GeneratedCertificates
        var authorities: TrustRoots { .pemFile(directory + "/authorities.pem") }

        init() throws {
            directory = NSTemporaryDirectory() + "/assent-upstream-" + SystemRandom().uuid()
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            service = try GeneratedCertificates.make(now: Date())
            try write("authorities.pem", service.authorityPEM)
        }

        @discardableResult
        func write(_ name: String, _ text: String) throws -> String {
            try PrivateFile.create("\(directory)/\(name)", Array(text.utf8))
            return "\(directory)/\(name)"
        }

        func remove() { try? FileManager.default.removeItem(atPath: directory) }

        func tls() throws -> TLSConfiguration { try Self.tls(service) }

        static func tls(_ made: GeneratedCertificates) throws -> TLSConfiguration {
            TLSConfiguration.makeServerConfiguration(
                certificateChain: try NIOSSLCertificate.fromPEMBytes(Array(made.chainPEM.utf8)).map {
                    .certificate($0)
                },
                privateKey: .privateKey(try NIOSSLPrivateKey(bytes: made.privateKeyPEM.revealBytes(), format: .pem)))
        }

        /// A certificate that vouches for itself, for a client.
        func client(_ name: String) throws -> (certificate: String, key: String) {
            let key = P256.Signing.PrivateKey()
            let subject = try DistinguishedName { CommonName(name) }
            let certificate = try Certificate(
                version: .v3, serialNumber: .init(), publicKey: .init(key.publicKey),
                notValidBefore: Date().addingTimeInterval(-3600), notValidAfter: Date().addingTimeInterval(86_400),
                issuer: subject, subject: subject, signatureAlgorithm: .ecdsaWithSHA256,
                extensions: try Certificate.Extensions {
                    Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
                    Critical(KeyUsage(digitalSignature: true, keyCertSign: true))
                    try ExtendedKeyUsage([.clientAuth])
                }, issuerPrivateKey: .init(key))
            return (try certificate.serializeAsPEM().pemString + "\n", key.pemRepresentation + "\n")
        }
    }

    private func status(_ settings: UpstreamSettings) async throws -> Int {
        let upstream = try Upstream([settings], logger: Self.logger)
        do {
            let reply = try await upstream.forward(
                .toService(.post), body: HTTPBody("{}"), to: settings, once: true)
            await upstream.shutdown()
            return reply.status
        } catch {
            await upstream.shutdown()
            throw error
        }
    }

    @Test("A service of the operator's own authority is trusted where the route names the authority, and not elsewhere")
    func authorities() async throws {
        let world = try World()
        defer { world.remove() }
        let service = try await TestUpstream.start(tls: try world.tls())
        var settings = UpstreamSettings.patient(["https://localhost:\(service.port)"])
        await #expect(throws: Upstream.Failure.notForwarded) { try await status(settings) }
        settings.tls.authorities = .pemFile(
            try world.write("others.pem", GeneratedCertificates.make(now: Date()).authorityPEM))
        await #expect(throws: Upstream.Failure.notForwarded) { try await status(settings) }
        #expect(service.requests.isEmpty)
        settings.tls.authorities = world.authorities
        #expect(try await status(settings) == 201)
        settings.addresses = ["https://127.0.0.1:\(service.port)"]
        #expect(try await status(settings) == 201)
        await service.stop()
    }

    @Test("With pins a service needs one of these keys in its chain, also when its authority is right")
    func pins() async throws {
        let world = try World()
        defer { world.remove() }
        let other = try GeneratedCertificates.make(now: Date()).pins
        let service = try await TestUpstream.start(tls: try world.tls())
        var settings = UpstreamSettings.patient(["https://localhost:\(service.port)"])
        settings.tls.authorities = world.authorities
        for pins in [[other[0]], other] {
            settings.tls.pins = pins
            await #expect(throws: Upstream.Failure.notForwarded) { try await status(settings) }
        }
        #expect(service.requests.isEmpty)
        for pins in [[world.service.pins[0]], [world.service.pins[1]], [other[0], world.service.pins[0]]] {
            settings.tls.pins = pins
            #expect(try await status(settings) == 201)
        }
        await service.stop()
    }

    @Test("Calls to an engine elsewhere from no event loop, as looks at open connections are, keep one connection")
    func engine() async throws {
        let world = try World()
        defer { world.remove() }
        let service = try await TestUpstream.start(tls: try world.tls())
        let url = "https://localhost:\(service.port)"
        var settings = EngineSettings(url: url + "/am", publicURL: url + "/am", realms: [:])
        settings.tls.authorities = world.authorities
        settings.leastLimit = .seconds(3600)
        let transport = try EngineTransport(settings, clock: SystemClock(), logger: Self.logger)
        for _ in 1...3 {
            let reply = try await transport.send(HTTPCall(.post, url: url + "/decide", body: HTTPBody("{}")))
            #expect(reply.status == 201)
            _ = try await reply.body.collect(upTo: 1 << 10)
        }
        #expect(service.requests.count == 3 && service.seen.value.connections == 1)
        await transport.shutdown()
        await service.stop()
    }

    @Test("A service that is not trusted gets no byte of the request, which the next one gets whole")
    func next() async throws {
        let world = try World()
        defer { world.remove() }
        let foreign = try await TestUpstream.start(tls: try World.tls(GeneratedCertificates.make(now: Date())))
        let service = try await TestUpstream.start(tls: try world.tls())
        var settings = UpstreamSettings.patient([foreign, service].map { "https://localhost:\($0.port)" })
        settings.tls.authorities = world.authorities
        #expect(try await status(settings) == 201)
        #expect(foreign.seen.value.bytes == 0 && service.requests.count == 1)
        #expect(service.requests.first?.body == Array("{}".utf8))
        await foreign.stop()
        await service.stop()
    }

    @Test("The gateway shows its certificate where a service asks for one; without it no request arrives")
    func mutual() async throws {
        let world = try World()
        defer { world.remove() }
        let (known, unknown) = (try world.client("gateway"), try world.client("stranger"))
        for version in [TLSVersion.tlsv12, .tlsv13] {
            var tls = try world.tls()
            tls.maximumTLSVersion = version
            tls.certificateVerification = .noHostnameVerification
            tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(Array(known.certificate.utf8)))
            let service = try await TestUpstream.start(tls: tls)
            var settings = UpstreamSettings.patient(["https://localhost:\(service.port)"])
            settings.tls.authorities = world.authorities
            // In 1.3 the service refuses a certificate when the request may be on its way.
            await #expect(throws: Upstream.Failure.self) { try await status(settings) }
            for (name, client, isKnown) in [("known", known, true), ("unknown", unknown, false)] {
                settings.tls.certificate = .init(
                    chain: try world.write("\(name)-\(version).pem", client.certificate),
                    privateKey: try world.write("\(name)-\(version).key", client.key))
                if isKnown {
                    #expect(try await status(settings) == 201)
                } else {
                    await #expect(throws: Upstream.Failure.self) { try await status(settings) }
                }
            }
            #expect(service.requests.count == 1, "only that with the right certificate")
            await service.stop()
        }
    }

    @Test("A file that cannot be used ends the start, with its name and without its content")
    func files() throws {
        let world = try World()
        defer { world.remove() }
        let client = try world.client("gateway")
        let chain = try world.write("gateway.pem", client.certificate)
        let key = try world.write("gateway.key", client.key)
        let other = try world.write("other.key", world.client("other").key)
        let empty = try world.write("empty.pem", "nothing")
        let open = try world.write("open.key", client.key)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: open)
        func fault(_ change: (inout UpstreamSettings.TLS) -> Void) -> ConfigurationError? {
            var settings = UpstreamSettings.patient(["https://localhost:1"])
            change(&settings.tls)
            return #expect(throws: ConfigurationError.self) { try Upstream([settings], logger: Self.logger) }
        }
        let faults = [
            (empty, "authorities", fault { $0.authorities = .pemFile(empty) }),
            (world.directory + "/none", "authorities", fault { $0.authorities = .pemFile(world.directory + "/none") }),
            (other, "must be the key", fault { $0.certificate = .init(chain: chain, privateKey: other) }),
            (open, "other users", fault { $0.certificate = .init(chain: chain, privateKey: open) }),
            (
                world.directory + "/no.pem", "cannot be read",
                fault { $0.certificate = .init(chain: world.directory + "/no.pem", privateKey: key) }
            ),
        ]
        for (file, message, error) in faults {
            #expect(error?.file == file && error?.message.contains(message) == true, "\(error as Any)")
            #expect(!"\(error as Any)".contains("BEGIN"))
        }
        var settings = UpstreamSettings.patient(["https://localhost:1"])
        settings.tls.certificate = .init(chain: chain, privateKey: key)
        #expect(throws: Never.self) { try Upstream([settings], logger: Self.logger) }
    }
}
