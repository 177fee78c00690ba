import AssentAuthorization
import AssentCore
import AssentJourney
import AssentTokens
import AssentTransportNIO
import AssentURLSession
import AssentVault
import Foundation
import HTTPTypes
import NIOCore
import NIOPosix

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// What approvals cost a call that needs none: an `AuthorizedClient` with twenty policies, one of which is about the
/// call, against one without, in processor time; and the same client behind a `URLSession`, against itself and against
/// itself and a `URLSession` whose class answers at once, in latency.
/// All send the same call on kept connections to one server in another process, one at a time, in blocks that take
/// turns.
struct ApprovalBenchmark: Benchmark {
    static let name = "approval"
    static let summary = "a call that needs no approval with policies against without, and by URLSession"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    @concurrent
    func run() async throws -> [Comparison] {
        let server = try await PinnedServer(
            AccountsReply.location, in: try setting.workspace.directory("approval"))
        defer { server.stop() }
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let transport = try server.transport(on: group)
        let plain = try await Self.client(server, transport, policies: [])
        let paths = ["/accounts", "/payments/"] + (1...18).map { "/other/\($0)" }
        let covered = try await Self.client(
            server, transport,
            policies: try paths.map { try AuthorizationPolicy(server.origin + $0, approve: { _ in .decline }) })
        BenchProtocol.serve(plain)
        let comparisons = try await measure(server.origin + AccountsReply.path, plain: plain, covered: covered)
        await transport.shutdown()
        try await group.shutdownGracefully()
        return comparisons
    }

    private static func client(
        _ server: PinnedServer, _ transport: NIOTransport, policies: [AuthorizationPolicy]
    ) async throws -> AuthorizedClient {
        let am = server.origin + "/am"
        let tokens = TokenManager(
            configuration: try TokenConfiguration(
                issuer: am + "/oauth2", clientID: "bank-app", redirectURI: "com.bank:/cb",
                sessionCookieName: PinnedServer.cookieName), transport: transport, store: MemorySecretStore())
        try await tokens.install(Session(token: Secret(PinnedServer.session)))
        return try AuthorizedClient(
            configuration: AuthorizationConfiguration(resources: [server.origin: .session]),
            journeys: JourneyClient(
                configuration: try JourneyConfiguration(
                    server: am, realm: "alpha", sessionCookieName: PinnedServer.cookieName), transport: transport),
            source: tokens, transport: transport, policies: policies)
    }

    private func measure(
        _ url: String, plain: AuthorizedClient, covered: AuthorizedClient
    ) async throws -> [Comparison] {
        let call = try HTTPCall(.get, url: url, headerFields: [.accept: "application/json"])
        guard let address = URL(string: url) else { throw BenchFailure("\(url) is no URL") }
        var request = URLRequest(url: address)
        request.setValue("application/json", forHTTPHeaderField: "Accept")
        let (session, empty) = (BenchProtocol.session(), EmptyProtocol.session())
        var processor = Comparison(
            benchmark: Self.name, title: "send with twenty policies / without, processor time", unit: "s per call",
            aim: .atMost(1.02))
        var latency = Comparison(
            benchmark: Self.name, title: "URLSession by the app's class / AuthorizedClient.send, latency", unit: "s",
            aim: .atMost(1.5))
        var whole = Comparison(
            benchmark: Self.name,
            title: "URLSession by the app's class / AuthorizedClient.send and a URLSession that sends nothing, latency",
            unit: "s", aim: .atMost(1.5))
        try await TimedCaller.inTurns(
            setting.callTurns, expecting: AccountsReply.body,
            {
                [
                    TimedCaller(call, over: covered), TimedCaller(call, over: plain),
                    TimedCaller(request, by: session), TimedCaller(request, by: empty),
                ]
            },
            count: { callers in
                processor.add(
                    subject: callers[0].processorTime, baseline: callers[1].processorTime, of: setting.callTurns.rounds)
                latency.add(
                    subject: callers[2].latency, baseline: callers[1].latency, of: setting.callTurns.rounds)
                whole.add(
                    subject: callers[2].latency, baseline: callers[1].latency + callers[3].latency,
                    of: setting.callTurns.rounds)
            })
        session.finishTasksAndInvalidate()
        empty.finishTasksAndInvalidate()
        return [processor, latency, whole]
    }
}

extension TimedCaller {
    fileprivate init(_ request: URLRequest, by session: URLSession) {
        self.init {
            let (data, response) = try await session.data(for: request)
            return ((response as? HTTPURLResponse)?.statusCode ?? 0, Array(data))
        }
    }
}

/// Answers at once, so that what is left is `URLSession` itself.
private final class EmptyProtocol: URLProtocol {
    override class func canInit(with request: URLRequest) -> Bool { true }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        guard let url = request.url,
            let reply = HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: [:])
        else { return }
        client?.urlProtocol(self, didReceive: reply, cacheStoragePolicy: .notAllowed)
        client?.urlProtocol(self, didLoad: Data(AccountsReply.body.utf8))
        client?.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {}

    static func session() -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [EmptyProtocol.self]
        return URLSession(configuration: configuration)
    }
}

/// The class that the measured session asks.
private final class BenchProtocol: AssentURLProtocol {
    private static let served = Locked<AuthorizedClient?>(nil)

    override class var client: AuthorizedClient? { served.withLock { $0 } }

    static func serve(_ client: AuthorizedClient) { served.withLock { $0 = client } }

    static func session() -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.protocolClasses = [BenchProtocol.self]
        return URLSession(configuration: configuration)
    }
}
