import AssentCore
import AssentPeers
import AssentTokens
import AssentVault
import HTTPTypes

/// Refreshes a second, each with a rotated refresh token and a signed access token, against glewlwyd: the same requests
/// by the same client on kept connections, eight at a time, public clients, SQLite behind both. Ours speaks TLS and
/// syncs every commit to the disk; glewlwyd speaks plain HTTP.
struct TokenEndpointBenchmark: Benchmark {
    static let name = "token-endpoint"
    static let summary = "refreshes a second at the token endpoint against glewlwyd"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    private static let lanes = 8

    /// One provider, and the refresh tokens of as many sign-ins as are used at the same time.
    private struct Side {
        let transport: any HTTPTransport
        let endpoint: String
        let clientID: String
        var refreshTokens: [Secret]
        let each: Int

        /// Uses each refresh token and its successors in turn; returns refreshes a second.
        mutating func refresh() async throws -> Double {
            let (transport, endpoint, clientID, each) = (transport, endpoint, clientID, each)
            let clock = ContinuousClock()
            let start = clock.now
            refreshTokens = try await withThrowingTaskGroup { group in
                for token in refreshTokens {
                    group.addTask {
                        var token = token
                        for _ in 0..<each {
                            token = try await Self.successor(
                                of: token, endpoint: endpoint, clientID: clientID, transport: transport)
                        }
                        return token
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            return Double(each * refreshTokens.count) / (clock.now - start).inSeconds
        }

        private static func successor(
            of token: Secret, endpoint: String, clientID: String, transport: any HTTPTransport
        ) async throws -> Secret {
            let form = FormItems([
                "grant_type": "refresh_token", "client_id": clientID, "refresh_token": token.reveal(),
            ])
            let request = try HTTPRequest(
                .post, url: endpoint, headerFields: [.contentType: FormEncoding.mediaType, .accept: "application/json"])
            let reply = try await transport.send(HTTPCall(request, body: HTTPBody(FormEncoding.encode(form))))
            let body = try await reply.body.collect(upTo: 1 << 20)
            guard reply.status == 200, let json = try? JSONValue.parse(body), json["access_token"]?.string != nil,
                let next = json["refresh_token"]?.string, next != token.reveal()
            else { throw BenchFailure("\(endpoint) answers \(reply.status)") }
            return Secret(next)
        }
    }

    @concurrent
    func run() async throws -> [Comparison] {
        let server = try BenchServer(in: try setting.workspace.directory("token-endpoint"))
        defer { server.stop() }
        let peer = try await Glewlwyd()
        defer { peer.stop() }
        let session = try await peer.session()
        var subject = try await side(each: setting.rounds(300, quick: 50), transport: try server.transport()) {
            try await server.manager()
        }
        let plain = try PeerClient.transport(oneAtATime: false)
        var baseline = try await side(each: setting.rounds(15, quick: 5), transport: plain) {
            let manager = TokenManager(
                configuration: try peer.configuration(), transport: plain, store: MemorySecretStore())
            try await manager.install(session)
            return manager
        }
        var comparison = Comparison(
            benchmark: Self.name, title: "token endpoint / glewlwyd's, refreshes a second, eight at a time",
            unit: "1/s", aim: .atLeast(10))
        let rounds = setting.rounds(7, quick: 2)
        for round in 0...rounds {
            let ours = try await subject.refresh()
            let theirs = try await baseline.refresh()
            // The first round warms both up.
            guard round > 0 else { continue }
            comparison.add(subject: ours, baseline: theirs, of: rounds)
        }
        return [comparison]
    }

    private func side(
        each: Int, transport: any HTTPTransport, manager: () async throws -> TokenManager
    ) async throws -> Side {
        var refreshTokens: [Secret] = []
        var endpoint = ""
        var clientID = ""
        for _ in 0..<Self.lanes {
            let manager = try await manager()
            guard let token = try await manager.tokens().refreshToken else { throw BenchFailure("no refresh token") }
            refreshTokens.append(token)
            endpoint = try await manager.metadata().tokenEndpoint
            clientID = manager.configuration.clientID
        }
        return Side(
            transport: transport, endpoint: endpoint, clientID: clientID, refreshTokens: refreshTokens, each: each)
    }
}
