import Assent
import AssentTransportNIO
import Foundation
import HTTPTypes
import TestSupport
import Testing

@testable import AssentResources

/// Calls of nobody over real connections, and a directory for what they download.
struct TaskWorld: Sendable {
    let server: PieceServer
    let transport: NIOTransport
    let client: DeviceClient
    let directory: URL

    /// What a test does not set is so long that no busy machine reaches it.
    static let patient = HTTPLimits(
        connect: .seconds(3600), read: .seconds(3600), total: .seconds(36000), replyBytes: 16 << 20)

    // The scheme is https for a server that never answers a handshake.
    static func run(
        scheme: String = "http", script: @escaping PieceServer.Script,
        _ body: (TaskWorld) async throws -> Void
    ) async throws {
        let server = try await PieceServer.running(script)
        // Also for what sets no limits of its own, such as a journey.
        let configuration = NIOTransportConfiguration(pins: ["127.0.0.1": .unpinned], allowPlaintextLoopback: true)
        let transport = try NIOTransport(
            configuration: configuration.withLeastLimit(.seconds(Patience.seconds)))
        let origin = "\(scheme)://127.0.0.1:\(server.port)"
        let assent = try await ResourceWorld().assent([origin: .nothing]) {
            $0.transport = transport
            $0.resourceBase = origin
        }
        let directory = FileManager.default.temporaryDirectory.appending(path: "assent-task-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
        let world = TaskWorld(server: server, transport: transport, client: assent.deviceClient, directory: directory)
        let result: Result<Void, any Error>
        do { result = .success(try await body(world)) } catch { result = .failure(error) }
        await server.stop()
        await transport.shutdown()
        try FileManager.default.removeItem(at: directory)
        try result.get()
    }

    /// Where a download goes.
    var target: String { directory.appending(path: "content").path }

    /// What is in the directory, also under other names.
    var files: [String] { (try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? [] }

    func request(_ method: HTTPRequest.Method = .get, body: HTTPBody? = nil) -> ResourceRequest {
        ResourceRequest(path: "content", method: method, body: body, limits: Self.patient)
    }

    func start(_ request: ResourceRequest, _ told: Told) throws -> NetworkTask {
        try #require(client.sendUnauthenticatedRequest(request, completion: told.completion))
    }

    func download(_ told: Told) throws -> NetworkTask {
        try #require(
            client.sendUnauthenticatedRequest(request().download(to: target), completion: told.completion))
    }
}

/// What a completion was told, each time.
final class Told: Sendable {
    private let calls = Locked<[(ResourceResponse?, ResourceError?)]>([])

    var completion: ResourceCompletion {
        { response, error in self.calls.withLock { $0.append((response, error)) } }
    }

    var count: Int { calls.withLock { $0.count } }
    var response: ResourceResponse? { calls.withLock { $0.first?.0 } }
    var error: ResourceError? { calls.withLock { $0.first?.1 } }
}

extension NetworkTask {
    /// Waits until the completion has returned.
    func ended() async { for await _ in progress {} }

    /// Waits until so many bytes of the reply have come.
    func received(_ count: Int) async {
        for await now in progress where now.receivedBytes >= count { return }
    }
}
