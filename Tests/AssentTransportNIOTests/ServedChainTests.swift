import AssentCore
import AssentTesting
import AssentTransportNIO
import TestSupport
import Testing

@Suite("A server's certificates are examined, and nothing is sent")
struct ServedChainTests {
    @Test("The path is named from leaf to root, whichever of its keys is pinned, also when none is")
    func path() async throws {
        let root = try TestPKI.root()
        let authority = try TestPKI.intermediate("first", under: root)
        let identity = try TestPKI.server(under: authority, appending: [authority.certificate])
        let server = try await TestServer.tls { _ in identity }
        let expected = [try identity.pin, try authority.pin, try root.pin]
        let origin = try Origin("https://localhost:\(server.port)")
        for pin in expected + [try TestPKI.otherPin()] {
            let seen = try await ServedChain.look(
                at: origin,
                configuration: .init(trustRoots: .certificates([root.der]), pins: ["localhost": .singlePin(pin)]),
                limit: .seconds(600), clock: ManualClock(TestPKI.now))
            #expect(seen.path.map(\.pin) == expected)
            #expect(seen.path.map(\.subject) == ["CN=server", "CN=first", "CN=root"])
            #expect(seen.presented.map(\.pin) == Array(expected.prefix(2)))
            #expect(seen.refusal?.code == (expected.contains(pin) ? nil : .pinMismatch))
        }
        await server.waitUntilAllClosed()
        #expect(server.seen.connections == 4 && server.seen.requestBytes == 0)
        await server.stop()
    }

    @Test("A chain that is not trusted has no path, and is shown as it came")
    func untrusted() async throws {
        let identity = try TestPKI.selfSigned()
        let server = try await TestServer.tls { _ in identity }
        let seen = try await ServedChain.look(
            at: Origin("https://localhost:\(server.port)"),
            configuration: .init(
                trustRoots: .certificates([try TestPKI.root().der]), pins: ["localhost": .singlePin(identity.pin)]),
            limit: .seconds(600), clock: ManualClock(TestPKI.now))
        #expect(seen.path.isEmpty && seen.refusal?.code == .untrustedServer)
        #expect(seen.presented.map(\.pin) == [try identity.pin])
        #expect(server.seen.requestBytes == 0)
        await server.stop()
    }

    @Test("A server that presents nothing, and a host without pins, are errors")
    func nothing() async throws {
        let reserved = try ReservedPort()
        defer { withExtendedLifetime(reserved) {} }
        let roots = TrustRoots.certificates([try TestPKI.root().der])
        let origin = try Origin("https://localhost:\(reserved.port)")
        await #expect(throws: HTTPTransportError(.notPinned, "")) {
            try await ServedChain.look(at: origin, configuration: .init(trustRoots: roots, pins: [:]))
        }
        await #expect(throws: HTTPTransportError(.connectFailed, "")) {
            try await ServedChain.look(
                at: origin,
                configuration: .init(trustRoots: roots, pins: ["localhost": .singlePin(TestPKI.otherPin())]),
                limit: .seconds(Patience.seconds))
        }
    }
}
