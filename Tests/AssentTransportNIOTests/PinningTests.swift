import AssentCore
import AssentTransportNIO
import HTTPTypes
import NIOSSL
import Testing
import X509

@Suite("Pins are compared on the validated chain")
struct PinningTests {
    let root: TestPKI.Authority
    let first: TestPKI.Authority
    let second: TestPKI.Authority
    let good: TestPKI.Server
    let evil: TestPKI.Server

    /// One trusted root over two authorities. The evil server's certificate is valid for the same name.
    init() throws {
        root = try TestPKI.root()
        first = try TestPKI.intermediate("first", under: root)
        second = try TestPKI.intermediate("second", under: root)
        good = try TestPKI.server(under: first, appending: [first.certificate])
        evil = try TestPKI.server(under: second, appending: [second.certificate])
    }

    enum Named: CaseIterable { case leaf, intermediate, root, backupOnly }

    @Test("A pin may name leaf, intermediate or root, and one of several is enough", arguments: Named.allCases)
    func rightPin(named: Named) async throws {
        let server = try await TestServer.tls { _ in good }
        let pin =
            switch named {
            case .leaf: try good.pin
            case .intermediate: try first.pin
            case .root: try root.pin
            case .backupOnly: try good.pin
            }
        let pins: [Pin] =
            named == .backupOnly
            ? [try TestPKI.otherPin(), try TestPKI.otherPin(8), pin] : [pin, try TestPKI.otherPin()]
        let transport = try makeTransport(roots: [root], pins: ["localhost": .pins(pins)])
        #expect(try await transport.text(.to(server.port)) == "ok")
        #expect(server.seen.requests.count == 1)
        await transport.shutdown()
        await server.stop()
    }

    @Test("A valid chain without a pinned key is refused before a byte of the request")
    func wrongPin() async throws {
        let server = try await TestServer.tls { _ in good }
        let transport = try makeTransport(
            roots: [root], pins: ["localhost": .pins([TestPKI.otherPin(), TestPKI.otherPin(8)])])
        let error = await transport.failure(.to(server.port, method: .post, body: HTTPBody("secret")))
        #expect(error?.code == .pinMismatch)
        #expect(error?.mayHaveHadEffect == false)
        try await expectNothing(at: server, transport)
    }

    @Test("A pinned intermediate appended to a chain that it is not part of does not help")
    func appendedIntermediate() async throws {
        let attack = TestPKI.Server(chain: evil.chain + [first.certificate], keyPEM: evil.keyPEM)
        let server = try await TestServer.tls { _ in attack }
        let transport = try makeTransport(
            roots: [root], pins: ["localhost": .pins([first.pin, TestPKI.otherPin()])])
        #expect(await transport.failure(.to(server.port))?.code == .pinMismatch)
        try await expectNothing(at: server, transport)
    }

    @Test("Nor do the pinned server's own certificate or the pinned root, appended")
    func appendedLeafAndRoot() async throws {
        let otherRoot = try TestPKI.root("other")
        let attack = TestPKI.Server(
            chain: evil.chain + good.chain + [otherRoot.certificate], keyPEM: evil.keyPEM)
        let server = try await TestServer.tls { _ in attack }
        let transport = try makeTransport(
            roots: [root], pins: ["localhost": .pins([good.pin, otherRoot.pin])])
        #expect(await transport.failure(.to(server.port))?.code == .pinMismatch)
        try await expectNothing(at: server, transport)
    }

    @Test("Of two possible chains the one with the pin is found", arguments: [0, 1])
    func crossSigned(pinned: Int) async throws {
        let other = try TestPKI.root("other")
        let key = first.key
        let crossed = try TestPKI.intermediate("first", under: other, key: key)
        let both = TestPKI.Server(
            chain: Array(good.chain.prefix(1)) + [first.certificate, crossed.certificate], keyPEM: good.keyPEM)
        let server = try await TestServer.tls { _ in both }
        let pin = pinned == 0 ? try root.pin : try other.pin
        let transport = try makeTransport(roots: [root, other], pins: ["localhost": .pins([pin, TestPKI.otherPin()])])
        #expect(try await transport.text(.to(server.port)) == "ok")
        await transport.shutdown()
        await server.stop()
    }

    @Test("The pinned root must be the one that the path ends in")
    func pinnedRootOfAnotherPath() async throws {
        let other = try TestPKI.root("other")
        let server = try await TestServer.tls { _ in good }
        let transport = try makeTransport(
            roots: [root, other], pins: ["localhost": .pins([other.pin, TestPKI.otherPin()])])
        #expect(await transport.failure(.to(server.port))?.code == .pinMismatch)
        try await expectNothing(at: server, transport)
    }

    @Test("A host without an entry is not called, unless it is unpinned by name")
    func unnamedHost() async throws {
        let server = try await TestServer.tls { _ in good }
        let transport = try makeTransport(roots: [root], pins: ["elsewhere.example": .unpinned])
        let failure = await transport.failure(.to(server.port))
        #expect(failure?.code == .notPinned && failure?.detail == "The configuration has no pins for localhost.")
        #expect(server.seen.connections == 0)
        try transport.update(pins: ["localhost": .unpinned])
        #expect(try await transport.text(.to(server.port)) == "ok")
        await transport.shutdown()
        await server.stop()
    }

    @Test(
        "Hosts are compared without case and trailing dot, and an entry with the port wins",
        arguments: ["LOCALHOST", "localhost.", "LocalHost"])
    func normalisedHosts(host: String) async throws {
        let server = try await TestServer.tls { _ in good }
        let wrong = PinRequirement.pins([try TestPKI.otherPin(), try TestPKI.otherPin(8)])
        let right = PinRequirement.pins([try good.pin, try TestPKI.otherPin()])
        let transport = try makeTransport(roots: [root], pins: [host: wrong, "localhost:\(server.port)": right])
        #expect(try await transport.text(.to(server.port, host: host)) == "ok")
        try transport.update(pins: ["localhost": right, "\(host):\(server.port)": wrong])
        #expect(await transport.failure(.to(server.port, host: host))?.code == .pinMismatch)
        #expect(server.seen.requests.count == 1)
        await transport.shutdown()
        await server.stop()
    }

    @Test("The check runs on every connection, whatever tickets the server issues", arguments: [false, true])
    func everyConnection(onlyTLS12: Bool) async throws {
        let server = try await TestServer.tls(
            { $0 == 0 ? good : evil }, configure: { if onlyTLS12 { $0.maximumTLSVersion = .tlsv12 } },
            script: { _, peer in
                peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            })
        let transport = try makeTransport(
            roots: [root], pins: ["localhost": .pins([first.pin, TestPKI.otherPin()])])
        #expect(try await transport.text(.to(server.port)) == "ok")
        let bytes = server.seen.requestBytes
        #expect(await transport.failure(.to(server.port))?.code == .pinMismatch)
        await transport.shutdown()
        await server.waitUntilAllClosed()
        #expect(server.seen.connections == 2)
        #expect(server.seen.requestBytes == bytes)
        await server.stop()
    }

    private func expectNothing(at server: TestServer, _ transport: NIOTransport) async throws {
        await transport.shutdown()
        await server.waitUntilAllClosed()
        #expect(server.seen.connections >= 1)
        #expect(server.seen.requestBytes == 0)
        #expect(server.seen.requests.isEmpty)
        await server.stop()
    }
}
