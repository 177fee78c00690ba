import AssentCore
import AssentTransportNIO
import Foundation
import SwiftASN1
import Testing

@Suite("A configuration that cannot be intended is refused")
struct ConfigurationTests {
    private func error(_ configuration: NIOTransportConfiguration) -> NIOTransportError.Code? {
        do {
            _ = try NIOTransport(configuration: configuration)
            return nil
        } catch {
            return error.code
        }
    }

    @Test("At least two different pins, or one on purpose")
    func pinCount() throws {
        let pin = try TestPKI.otherPin()
        #expect(error(.init(pins: ["a.example": .pins([])])) == .tooFewPins)
        #expect(error(.init(pins: ["a.example": .pins([pin])])) == .tooFewPins)
        #expect(error(.init(pins: ["a.example": .pins([pin, pin])])) == .tooFewPins)
        #expect(error(.init(pins: ["a.example": .pins([pin, try TestPKI.otherPin(8)])])) == nil)
        #expect(error(.init(pins: ["a.example": .singlePin(pin)])) == nil)
        #expect(error(.init(pins: ["a.example": .unpinned])) == nil)
    }

    @Test("The SHA-256 of nothing is not a pin")
    func pinOfNothing() {
        #expect(throws: PinError.digestOfNothing) {
            try Pin("sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")
        }
    }

    @Test(
        "Keys that are not a host",
        arguments: [
            "", "https://a.example", "a.example/", "a b", "*.a.example", "a.example:0", "a.example:x", "ü.example",
        ])
    func hosts(host: String) {
        #expect(error(.init(pins: [host: .unpinned])) == .invalidHost)
    }

    @Test("One host under two spellings")
    func twice() {
        #expect(error(.init(pins: ["a.example": .unpinned, "A.example.": .unpinned])) == .invalidHost)
        #expect(error(.init(pins: ["[::1]": .unpinned, "0:0::1": .unpinned])) == .invalidHost)
        #expect(error(.init(pins: ["a.example": .unpinned, "a.example:443": .unpinned])) == nil)
    }

    @Test("Trust roots that are missing or not certificates")
    func roots() {
        #expect(error(.init(trustRoots: .pemFile("/nonexistent.pem"), pins: [:])) == .invalidTrustRoots)
        #expect(error(.init(trustRoots: .certificates([]), pins: [:])) == .invalidTrustRoots)
        #expect(error(.init(trustRoots: .certificates([Array("x".utf8)]), pins: [:])) == .invalidTrustRoots)
        #expect(error(.init(trustRoots: .certificates([[0x30, 0]]), pins: [:])) == .invalidTrustRoots)
    }

    @Test("Roots from a PEM file serve as well as from memory")
    func pemFile() async throws {
        let root = try TestPKI.root()
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).pem").path
        try root.certificate.serializeAsPEM().pemString.write(toFile: path, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let identity = try TestPKI.server(under: root)
        let server = try await TestServer.tls { _ in identity }
        let transport = try NIOTransport(
            configuration: .init(trustRoots: .pemFile(path), pins: ["localhost": .singlePin(try identity.pin)]))
        #expect(try await transport.text(.to(server.port)) == "ok")
        await transport.shutdown()
        await server.stop()
    }

    @Test("Limits must be positive, and a client key must fit")
    func limits() {
        var configuration = NIOTransportConfiguration(pins: [:])
        configuration.maximumConnectionsPerOrigin = 0
        #expect(error(configuration) == .invalidLimit)
        configuration = NIOTransportConfiguration(pins: [:])
        configuration.clientIdentity = ClientIdentity(certificateChain: "x", privateKey: Secret("y"))
        #expect(error(configuration) == .invalidClientIdentity)
    }
}
