import AssentCore
import AssentServer
import AssentTransportNIO
import Foundation
import HTTPTypes
import TestSupport
import TokenTableSupport

@testable import AssentDemo

/// Ends TLS before the gateway of a story, with a certificate that clients pin: a balancer, or somebody whom people
/// were talked into trusting. It keeps what passes, and does with it what a test says.
final class TLSEnder: Sendable {
    /// A request as it is between client and server.
    struct Asked: Sendable {
        var head: HTTPRequest
        var body: [UInt8]

        /// All that can be read of it.
        var bytes: [UInt8] {
            Array("\(head.method) \(head.path ?? "")\n".utf8) + TLSEnder.bytes(head.headerFields) + body
        }
    }

    /// A reply as it is between server and client.
    struct Told: Sendable {
        var head: HTTPResponse
        var body: [UInt8]

        var bytes: [UInt8] { Array("\(head.status.code)\n".utf8) + TLSEnder.bytes(head.headerFields) + body }

        /// One of the ender's own.
        static func json(_ status: Int, _ json: JSONValue) -> Told {
            Told(
                head: HTTPResponse(status: .init(code: status), headerFields: [.contentType: "application/json"]),
                body: json.serializedBytes())
        }
    }

    /// Sends a request on to the server.
    typealias Pass = @Sendable (Asked) async throws -> Told

    /// What the ender does with a request that has come.
    typealias Meddler = @Sendable (Asked, Pass) async throws -> Told

    private struct State {
        var meddler: Meddler = { asked, pass in try await pass(asked) }
        var way: (authority: String, transport: NIOTransport)?
        var arrived: [Asked] = []
        var passed: [(asked: Asked, told: Told)] = []
    }

    /// Where clients find it: the gateway's public address.
    let url: String
    private let relay: FaultRelay
    private let network: NIOTransport
    private let state: Locked<State>

    private init(directory: String) async throws {
        let certificates = try GeneratedCertificates.make(now: Date())
        let authority = directory + "/ender.pem"
        try Data(certificates.authorityPEM.utf8).write(to: URL(filePath: authority))
        let state = Locked(State())
        let relay = try await FaultRelay(tls: (certificates.chainPEM, certificates.privateKeyPEM)) { head, body in
            let asked = Asked(head: head, body: body)
            let meddler = state.withLock { state in
                state.arrived.append(asked)
                return state.meddler
            }
            let told = try await meddler(asked) { try await TLSEnder.pass($0, state) }
            return HTTPReply(told.head, body: HTTPBody(told.body))
        }
        self.relay = relay
        self.state = state
        url = relay.url("")
        network = try NIOTransport(
            configuration: NIOTransportConfiguration(
                trustRoots: .pemFile(authority), pins: ["localhost": .pins(certificates.pins)]
            ).withLeastLimit(.seconds(Patience.seconds)))
    }

    /// Runs `body` beside one, and ends it.
    static func run(_ body: (TLSEnder) async throws -> Void) async throws {
        let directory = NSTemporaryDirectory() + "/assent-ender-" + SystemRandom().token(byteCount: 9)
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let ender = try await TLSEnder(directory: directory)
        do {
            try await body(ender)
        } catch {
            await ender.stop()
            throw error
        }
        await ender.stop()
    }

    private func stop() async {
        await relay.stop()
        await network.shutdown()
        await state.withLock({ $0.way })?.transport.shutdown()
    }

    /// Makes the gateway one that clients find here.
    func place(_ configuration: inout ServerConfiguration) { configuration.gateway?.publicURL = url }

    /// Leads to the gateway of a story.
    func join(_ story: Story) throws {
        let file = story.world.endpoints.authorityFile
        let transport = try NIOTransport(
            configuration: NIOTransportConfiguration(
                trustRoots: file.map { .pemFile($0) } ?? .system, pins: ["localhost": .unpinned]
            ).withLeastLimit(.seconds(Patience.seconds)), clock: story.clock)
        state.withLock { $0.way = ("localhost:\(story.world.relay.port)", transport) }
    }

    /// The way of clients, who pin the certificate here; all that goes elsewhere takes the other way.
    func watching(_ others: any HTTPTransport) -> any HTTPTransport {
        Forked(url: url, here: network, others: others)
    }

    /// The pinned way here.
    var pinned: any HTTPTransport { network }

    /// From now on it does this.
    func meddle(_ meddler: @escaping Meddler) { state.withLock { $0.meddler = meddler } }

    /// What clients have sent, and what has passed to the server with its replies.
    var arrived: [Asked] { state.withLock { $0.arrived } }
    var passed: [(asked: Asked, told: Told)] { state.withLock { $0.passed } }

    /// Forgets what it has seen, and passes on whatever comes.
    func clear() {
        state.withLock { state in
            let way = state.way
            state = State()
            state.way = way
        }
    }

    /// Sends something of its own to the server.
    func send(_ asked: Asked) async throws -> Told { try await Self.pass(asked, state) }

    private static func pass(_ asked: Asked, _ state: Locked<State>) async throws -> Told {
        guard let way = state.withLock({ $0.way }) else { throw CancellationError() }
        var head = asked.head
        head.authority = way.authority
        let reply = try await way.transport.send(
            HTTPCall(head, body: asked.body.isEmpty ? nil : HTTPBody(asked.body)))
        let told = Told(head: reply.response, body: try await reply.body.collect(upTo: 1 << 20))
        state.withLock { $0.passed.append((asked, told)) }
        return told
    }

    private static func bytes(_ fields: HTTPFields) -> [UInt8] {
        fields.flatMap { Array("\($0.name): \($0.value)\n".utf8) }
    }

    private struct Forked: HTTPTransport {
        let url: String
        let here: any HTTPTransport
        let others: any HTTPTransport

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            let isHere = try call.origin.description == url
            return try await (isHere ? here : others).send(call)
        }
    }
}
