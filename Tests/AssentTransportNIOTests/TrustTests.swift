import AssentCore
import AssentTesting
import AssentTransportNIO
import Crypto
import Foundation
import HTTPTypes
import NIOCore
import NIOSSL
import SwiftASN1
import Testing
import X509

@Suite("A server is validated before a byte of the request is sent")
struct TrustTests {
    let root: TestPKI.Authority
    let authority: TestPKI.Authority

    init() throws {
        root = try TestPKI.root()
        authority = try TestPKI.intermediate("authority", under: root)
    }

    /// Calls a server with this identity and expects a refusal that reached it without a byte of the request.
    private func expectRefusal(
        of identity: TestPKI.Server, _ code: HTTPTransportError.Code = .untrustedServer, host: String = "localhost",
        configure: @escaping @Sendable (inout TLSConfiguration) -> Void = { _ in }, because reason: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let server = try await TestServer.tls({ _ in identity }, configure: configure)
        let transport = try makeTransport(roots: [root], pins: [host: .unpinned])
        let error = await transport.failure(.to(server.port, host: host, method: .post, body: HTTPBody("secret")))
        #expect(error?.code == code, "\(String(describing: error))", sourceLocation: sourceLocation)
        #expect(error?.mayHaveHadEffect == false, sourceLocation: sourceLocation)
        if let reason {
            #expect(error?.detail.contains(reason) == true, "\(error?.detail ?? "")", sourceLocation: sourceLocation)
        }
        await transport.shutdown()
        await server.waitUntilAllClosed()
        #expect(server.seen.connections == 1, sourceLocation: sourceLocation)
        #expect(server.seen.requestBytes == 0, sourceLocation: sourceLocation)
        await server.stop()
    }

    private func identity(
        authority: TestPKI.Authority? = nil, _ change: (inout TestPKI.Extras) -> Void = { _ in }
    ) throws -> TestPKI.Server {
        var extras = TestPKI.Extras()
        change(&extras)
        let authority = authority ?? self.authority
        return try TestPKI.server(under: authority, appending: [authority.certificate], extras)
    }

    private func expectAccepted(
        _ identity: TestPKI.Server, host: String = "localhost", sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let server = try await TestServer.tls { _ in identity }
        let transport = try makeTransport(roots: [root], pins: [host: .unpinned])
        #expect(try await transport.text(.to(server.port, host: host)) == "ok", sourceLocation: sourceLocation)
        await transport.shutdown()
        await server.stop()
    }

    @Test("A certificate that has expired, or is not valid yet")
    func validity() async throws {
        let now = TestPKI.now
        try await expectRefusal(
            of: identity { $0.validity = now.addingTimeInterval(-7200)..<now.addingTimeInterval(-1) },
            because: "the server's certificate expired on 2030-03-17T17:46:39Z")
        try await expectRefusal(
            of: identity { $0.validity = now.addingTimeInterval(1)..<now.addingTimeInterval(7200) },
            because: "the server's certificate is not valid before 2030-03-17T17:46:41Z")
        try await expectAccepted(identity { $0.validity = now.addingTimeInterval(-1)..<now.addingTimeInterval(1) })
    }

    @Test("A clock that is ten years wrong fails closed and is named; set right, the same transport calls as before")
    func clocks() async throws {
        let year: TimeInterval = 365 * 86_400
        let now = TestPKI.now
        let identity = try identity { $0.validity = now.addingTimeInterval(-year)..<now.addingTimeInterval(year) }
        let server = try await TestServer.tls { _ in identity }
        let clock = ManualClock(now)
        let transport = try NIOTransport(
            configuration: NIOTransportConfiguration(
                trustRoots: .certificates([root.der]),
                pins: ["localhost": .pins([try identity.pin, try TestPKI.otherPin()])]),
            clock: clock)
        for years in [10.0, -10] {
            clock.advance(by: years * year)
            let error = await transport.failure(.to(server.port, method: .post, body: HTTPBody("secret")))
            #expect(error?.code == .untrustedServer && error?.mayHaveHadEffect == false)
            #expect(error?.suggestion?.contains("clock") == true, "\(error?.suggestion ?? "")")
            #expect(server.seen.requestBytes == 0)
            clock.advance(by: -years * year)
        }
        #expect(try await transport.text(.to(server.port)) == "ok")
        await transport.shutdown()
        await server.stop()
    }

    @Test("An authority that has expired")
    func expiredAuthority() async throws {
        var extras = TestPKI.Extras(names: [])
        extras.validity = TestPKI.now.addingTimeInterval(-7200)..<TestPKI.now.addingTimeInterval(-1)
        try await expectRefusal(
            of: identity(authority: TestPKI.intermediate("old", under: root, extras)),
            because: "authority CN=old expired on 2030-03-17T17:46:39Z")
    }

    @Test("A certificate for another host", arguments: ["elsewhere.example", "*.localhost", "localhost.example", "*"])
    func wrongHost(name: String) async throws {
        try await expectRefusal(of: identity { $0.names = [.dnsName(name)] }, because: "for another host")
    }

    @Test(
        "A wildcard stands for exactly one label, of a host with at least three",
        arguments: [
            ("api.bank.example", "api.bank.example", true), ("API.bank.Example", "api.bank.example", true),
            ("*.bank.example", "api.bank.example", true), ("*.bank.example", "bank.example", false),
            ("*.bank.example", "a.b.bank.example", false), ("*.example", "bank.example", false),
            ("*.*.example", "api.bank.example", false), ("a*.bank.example", "api.bank.example", false),
            ("*", "example", false), ("bank.example", "api.bank.example", false),
        ])
    func wildcards(name: String, host: String, isAccepted: Bool) async throws {
        let evaluator = try PinnedChainEvaluator(
            roots: .certificates([root.der]), clock: ManualClock(TestPKI.now))
        let identity = try identity { $0.names = [.dnsName(name)] }
        let verdict = await evaluator.evaluate(
            .init(host: host, isAddress: false, port: 443, presented: identity.encoded, pins: nil))
        if case .trusted(let validated) = verdict {
            #expect(isAccepted)
            #expect(validated == identity.encoded + [root.der])
        } else {
            #expect(!isAccepted)
        }
    }

    @Test("A name only in the subject is not accepted")
    func commonNameOnly() async throws {
        let key = P256.Signing.PrivateKey()
        let leaf = try TestPKI.mint(
            subject: "localhost", publicKey: .init(key.publicKey), issuer: authority.certificate.subject,
            signer: authority.key, isAuthority: false, TestPKI.Extras(names: []))
        try await expectRefusal(
            of: .init(chain: [leaf, authority.certificate], keyPEM: key.pemRepresentation),
            because: "subject alternative name")
    }

    @Test("An address must be named as an address, and is not put into SNI")
    func addresses() async throws {
        let loopback = ASN1OctetString(contentBytes: [127, 0, 0, 1])
        let another = ASN1OctetString(contentBytes: [127, 0, 0, 2])
        try await expectRefusal(of: identity { $0.names = [.ipAddress(another)] }, host: "127.0.0.1")
        try await expectRefusal(of: identity { $0.names = [.dnsName("127.0.0.1")] }, host: "127.0.0.1")
        try await expectRefusal(of: identity { $0.names = [.ipAddress(loopback)] }, host: "localhost")

        let named = Locked<[String?]>([])
        let right = try identity { $0.names = [.ipAddress(loopback), .dnsName("localhost")] }
        let server = try await TestServer.tls(
            { _ in right },
            configure: {
                $0.sslContextCallback = { values, promise in
                    named.withLock { $0.append(values.serverHostname) }
                    promise.succeed(.noChanges)
                }
            })
        let transport = try makeTransport(roots: [root], pins: ["127.0.0.1": .unpinned, "localhost": .unpinned])
        #expect(try await transport.text(.to(server.port, host: "127.0.0.1")) == "ok")
        #expect(try await transport.text(.to(server.port, host: "localhost")) == "ok")
        #expect(named.withLock { $0 } == [nil, "localhost"])
        await transport.shutdown()
        await server.stop()
    }

    @Test("A self-signed certificate, and one under an authority that is not trusted")
    func untrustedRoots() async throws {
        try await expectRefusal(of: TestPKI.selfSigned())
        let other = try TestPKI.root()
        try await expectRefusal(of: TestPKI.server(under: other, appending: [other.certificate]))
        try await expectRefusal(of: TestPKI.server(under: authority))
    }

    @Test("A certificate for clients, or for signing code; one without purposes is accepted")
    func purposes() async throws {
        try await expectRefusal(of: identity { $0.purposes = [.clientAuth] }, because: "extended key usage")
        try await expectRefusal(of: identity { $0.purposes = [.codeSigning] }, because: "extended key usage")
        try await expectAccepted(identity { $0.purposes = [.clientAuth, .serverAuth] })
        try await expectAccepted(identity { $0.purposes = nil })
    }

    @Test("An authority that may not sign certificates, or only for another depth")
    func authorities() async throws {
        let key = P256.Signing.PrivateKey()
        let leafAsAuthority = TestPKI.Authority(
            certificate: try TestPKI.mint(
                subject: "leaf", publicKey: .init(key.publicKey), issuer: root.certificate.subject, signer: root.key,
                isAuthority: false, .init()), key: .init(key))
        try await expectRefusal(of: identity(authority: leafAsAuthority))

        var noSigning = TestPKI.Extras(names: [])
        noSigning.keyUsage = KeyUsage(digitalSignature: true)
        try await expectRefusal(
            of: identity(authority: TestPKI.intermediate("no", under: root, noSigning)), because: "key usage")

        let flat = try TestPKI.intermediate("flat", under: root, .init(names: [], pathLength: 0))
        let below = try TestPKI.intermediate("below", under: flat)
        try await expectRefusal(of: TestPKI.server(under: below, appending: [below.certificate, flat.certificate]))
    }

    @Test("Names outside the constraints of an authority")
    func nameConstraints() async throws {
        func constrained(to name: String) throws -> TestPKI.Authority {
            let limits = NameConstraints(permittedDNSDomains: [name])
            return try TestPKI.intermediate(name, under: root, .init(names: [], constraints: limits))
        }
        try await expectRefusal(of: identity(authority: constrained(to: "bank.example")))
        try await expectAccepted(identity(authority: constrained(to: "localhost")))
    }

    @Test("More certificates than any real chain has, and a chain built to be slow")
    func excess() async throws {
        var chain: [Certificate] = [authority.certificate]
        for index in 0..<10 { chain.append(try TestPKI.intermediate("extra \(index)", under: root).certificate) }
        try await expectRefusal(of: TestPKI.server(under: authority, appending: chain))

        // One key under one subject with nine alternative names: 9! paths for a search that takes them for different.
        let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
        let first = TestPKI.Authority(certificate: try TestPKI.root("loop").certificate, key: key)
        let loops = try (0..<9).map { index in
            try TestPKI.intermediate("loop", under: first, key: key, .init(names: [.dnsName("n\(index).example")]))
                .certificate
        }
        try await expectRefusal(of: TestPKI.server(under: first, appending: loops), because: "alternative names")
    }

    @Test("TLS before 1.2, and a server that insists on another protocol")
    func oldTLS() async throws {
        let good = try identity()
        try await expectRefusal(of: good, .tlsFailed, configure: { $0.maximumTLSVersion = .tlsv11 })
        let server = try await TestServer.tls({ _ in good }, configure: { $0.applicationProtocols = ["h2"] })
        let transport = try makeTransport(roots: [root], pins: ["localhost": .unpinned])
        // Without a common protocol the server goes on without ALPN, which means HTTP/1.1.
        #expect(try await transport.text(.to(server.port)) == "ok")
        await transport.shutdown()
        await server.stop()
    }

    @Test("With a custom evaluator the pins are still compared, on what it validated")
    func customEvaluator() async throws {
        struct Lenient: ServerTrustEvaluator {
            func evaluate(_ question: ServerTrustQuestion) async -> ServerTrustVerdict {
                .trusted(validated: Array(question.presented.prefix(1)))
            }
        }
        let good = try identity()
        let server = try await TestServer.tls { _ in good }
        let pins: [String: PinRequirement] = ["localhost": .singlePin(try authority.pin)]
        let transport = try NIOTransport(configuration: .init(pins: pins), trust: Lenient())
        #expect(await transport.failure(.to(server.port))?.code == .pinMismatch)
        await transport.shutdown()
        await server.waitUntilAllClosed()
        #expect(server.seen.requestBytes == 0)
        await server.stop()
    }

    @Test("Session keys are never written down, even when the environment asks for it")
    func keyLog() async throws {
        // In a process of its own: other tests read the environment of theirs meanwhile.
        await #expect(processExitsWith: .success) {
            do { try await TrustTests.callAskedForKeys() } catch { Issue.record(error) }
        }
    }

    private static func callAskedForKeys() async throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("keys-\(UUID().uuidString)").path
        setenv("SSLKEYLOGFILE", path, 1)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let tests = try TrustTests()
        let good = try tests.identity()
        let server = try await TestServer.tls { _ in good }
        let transport = try makeTransport(roots: [tests.root], pins: ["localhost": .unpinned])
        #expect(try await transport.text(.to(server.port)) == "ok")
        await transport.shutdown()
        await server.stop()
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test("A client certificate is shown to a server that asks for one")
    func clientCertificate() async throws {
        let good = try identity()
        let client = try identity { $0.purposes = [.clientAuth] }
        let rootDER = root.der
        let server = try await TestServer.tls(
            { _ in good },
            configure: {
                $0.certificateVerification = .noHostnameVerification
                $0.trustRoots = (try? NIOSSLCertificate(bytes: rootDER, format: .der)).map { .certificates([$0]) }
            })
        let chain = try client.chain.map { try $0.serializeAsPEM().pemString }.joined(separator: "\n")
        let transport = try makeTransport(roots: [root], pins: ["localhost": .unpinned]) {
            $0.clientIdentity = ClientIdentity(certificateChain: chain, privateKey: Secret(client.keyPEM))
        }
        #expect(try await transport.text(.to(server.port)) == "ok")
        let bytes = server.seen.requestBytes
        let without = try makeTransport(roots: [root], pins: ["localhost": .unpinned])
        #expect(await without.failure(.to(server.port)) != nil)
        await transport.shutdown()
        await without.shutdown()
        await server.waitUntilAllClosed()
        #expect(server.seen.requestBytes == bytes)
        await server.stop()
    }

    @Test("Weak signatures and short keys, made by openssl", arguments: OpenSSLIdentity.Kind.allCases)
    func strength(kind: OpenSSLIdentity.Kind) async throws {
        let made = try OpenSSLIdentity(kind)
        let server = try await TestServer.tls { _ in made.server }
        let transport = try NIOTransport(
            configuration: .init(trustRoots: .certificates([made.root]), pins: ["localhost": .unpinned]),
            clock: ManualClock(TestPKI.now))
        if kind == .strong {
            #expect(try await transport.text(.to(server.port)) == "ok")
        } else {
            let error = await transport.failure(.to(server.port))
            #expect(error?.code == .untrustedServer)
            // The library reads SHA-1 signatures; ours is the check that refuses them. The others it cannot even read.
            if kind == .sha1 { #expect(error?.detail.contains("signature algorithm") == true) }
        }
        await transport.shutdown()
        await server.waitUntilAllClosed()
        #expect(server.seen.connections == 1)
        #expect(server.seen.requests.count == (kind == .strong ? 1 : 0))
        if kind != .strong { #expect(server.seen.requestBytes == 0) }
        await server.stop()
    }
}
