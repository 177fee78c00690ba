import AssentCore
import AssentPayload
import AssentServer
import AssentTransportNIO
import Foundation
import HTTPTypes
import TestSupport
import Testing

@testable import Assent

/// A server of payload encryption in Python, made from docs/payload-encryption.md alone: `Tests/Payload/pe1.py serve`.
@Suite("Payload encryption: a server in Python, over TLS", .enabled(if: PythonPeer.mustRun))
struct PythonPayloadServerTests {
    private static let origin = "https://pe1.example"
    private static let content = Array("amount=200.00".utf8)

    /// Carries calls to the port of the server, whatever they are for.
    private struct Led: HTTPTransport {
        let port: Int
        let network: NIOTransport
        let sent = Locked<[String]>([])

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            sent.withLock { $0.append(call.request.path ?? "") }
            var call = call
            call.request.authority = "localhost:\(port)"
            return try await network.send(call)
        }
    }

    /// What was given back, and whether what failed may have had an effect.
    private enum Outcome: Hashable {
        case answered
        case unknown
        case notSent
        case other(String)
    }

    private func call(_ transport: PayloadTransport, _ method: HTTPRequest.Method, count: Int = 0) async -> Outcome {
        let content = method == .post ? Self.content + [UInt8](repeating: 0x61, count: count) : []
        do {
            let reply = try await transport.send(
                try HTTPCall(
                    method, url: Self.origin + "/transfers?x=1", body: method == .post ? HTTPBody(content) : nil))
            let fields = reply.response.headerFields
            let names = ["x-method", "x-path"].compactMap { HTTPField.Name($0) }.map { fields[$0] ?? "" }
            let bytes = try await reply.body.collect(upTo: 1 << 20)
            let isRight = bytes == content && names == [method.rawValue, "/transfers?x=1"]
            return isRight ? .answered : .other("\(reply.status) \(names) \(bytes.count)")
        } catch let error as HTTPTransportError {
            return error.mayHaveHadEffect ? .unknown : .notSent
        } catch {
            return .other("\(error)")
        }
    }

    /// Runs `body` beside a server with a fault, which ends with it.
    private func run(
        fault: String? = nil, _ body: (PayloadTransport, Led) async throws -> Void
    ) async throws {
        let directory = NSTemporaryDirectory() + "/assent-pe1-" + SystemRandom().token(byteCount: 9)
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let certificates = try GeneratedCertificates.make(now: Date())
        for (name, text) in [
            ("ca.pem", certificates.authorityPEM), ("chain.pem", certificates.chainPEM),
            ("key.pem", certificates.privateKeyPEM.reveal()),
        ] {
            try Data(text.utf8).write(to: URL(filePath: directory + "/" + name))
        }
        let script = URL(filePath: PythonPeer.folder).deletingLastPathComponent().appending(path: "Payload/pe1.py")
        let process = try SpawnedProcess(
            "/usr/bin/timeout",
            [
                "\(Patience.seconds)", PythonPeer.interpreter, script.path, "serve", "--origin", Self.origin,
                "--certificate", directory + "/chain.pem", "--private-key", directory + "/key.pem",
            ] + (fault.map { ["--fault", $0] } ?? []), input: .pipe, output: .pipe)
        let output = try #require(process.output)
        let line = try await offPool { output.availableData }
        let told = try JSONValue.parse(Array(line))
        let port = try #require(told["port"]?.integer.map { Int($0) })
        let keys = try (told["keys"]?.array ?? []).compactMap(\.string).map { text in
            ClientSession.Key(try PayloadKey(try #require(Base64URL.decode(text))), notAfter: .distantFuture)
        }
        let network = try NIOTransport(
            configuration: NIOTransportConfiguration(
                trustRoots: .pemFile(directory + "/ca.pem"), pins: ["localhost": .pins(certificates.pins)]
            ).withLeastLimit(.seconds(Patience.seconds)))
        let led = Led(port: port, network: network)
        let settings = PayloadSettings(
            origin: try Origin(Self.origin), app: "bank", version: "3.2.0", platform: "linux")
        let transport = PayloadTransport(
            led,
            origins: [
                PayloadOrigin(
                    settings, keys: keys, over: led, seams: PayloadSeams(clock: SystemClock(), random: SystemRandom()))
            ])
        do {
            try await body(transport, led)
        } catch {
            await network.shutdown()
            throw error
        }
        await network.shutdown()
        try? process.input?.close()
        #expect(await process.ended() == 0)
    }

    @Test("It answers our client's calls, small and of many chunks, in one session")
    func calls() async throws {
        try await run { transport, led in
            for count in [0, 1, 65_536, 200_000] { #expect(await call(transport, .post, count: count) == .answered) }
            #expect(await call(transport, .get) == .answered)
            let sent = led.sent.withLock { $0 }
            #expect(sent.count == 6 && sent.count { $0 == "/assent-pe/1/handshake" } == 1)
        }
    }

    @Test(
        "36: Each fault of its replies leaves a call unknown, and what is safe is sent once more and not a third time",
        arguments: ["flipped", "number", "bound", "plain", "session", "cut", "reflected", "requestkey"])
    func replies(fault: String) async throws {
        try await run(fault: fault) { transport, led in
            #expect(await call(transport, .post) == .unknown)
            #expect(led.sent.withLock { $0.count } == 2)
            #expect(await call(transport, .get) == .unknown)
            #expect(led.sent.withLock { $0.count } == 4)
        }
    }

    @Test(
        "36: A reply that is sealed and is none, or pads without end, leaves a call unknown; nothing is sent once more",
        arguments: ["interim", "endless"])
    func contents(fault: String) async throws {
        try await run(fault: fault) { transport, led in
            #expect(await call(transport, .post) == .unknown)
            #expect(led.sent.withLock { $0.count } == 2)
            // The server itself has sealed it for this call, and would do so again: a new session changes nothing.
            #expect(await call(transport, .get) == .unknown)
            #expect(led.sent.withLock { $0.count } == 3)
        }
    }

    @Test("36: To a server that does not confirm its key nothing of a call is sent")
    func confirmation() async throws {
        try await run(fault: "confirm") { transport, led in
            #expect(await call(transport, .post) == .notSent)
            #expect(led.sent.withLock { $0 } == ["/assent-pe/1/handshake"])
        }
    }

    @Test("36: A server that has forgotten the session is asked again for what is safe, through a new one")
    func forgotten() async throws {
        try await run(fault: "forgets") { transport, led in
            #expect(await call(transport, .get) == .answered)
            #expect(await call(transport, .get) == .answered)
            #expect(await call(transport, .post) == .unknown)
            let handshakes = led.sent.withLock { sent in sent.count { $0 == "/assent-pe/1/handshake" } }
            #expect(handshakes >= 2)
        }
    }
}
