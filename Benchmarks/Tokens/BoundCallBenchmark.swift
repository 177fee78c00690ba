import AssentCore
import AssentPeers
import AssentStore
import AssentTokens
import AssentVault
import Crypto
import Foundation
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOPosix
import StoreTesting

/// A GET through the gateway with a token that belongs to a key, and a proof that was made beforehand, in turns with
/// the same GET with a bearer token at the same gateway. What the proof adds to the server's processor time stands
/// against one ES256 verification and two hashes by hand; requests a second stand against those with a bearer token.
///
/// Measured on a SQLite file and, where there is one, on a PostgreSQL server, whose own time is not in it.
struct BoundCallBenchmark: Benchmark {
    static let name = "bound-call"
    static let summary = "a call with a bound token and its proof against the same with a bearer token"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    @concurrent
    func run() async throws -> [Comparison] {
        let (upstream, port) = try await Nginx.accounts(in: try setting.workspace.directory("bound-upstream"))
        defer { upstream.stop() }
        var comparisons = try await measure("SQLite", nil, upstream: port)
        #if PostgreSQL && os(Linux)
        let server = try await PostgreSQLServer.start()
        let database = try await server.offPool { try $0.makeDatabase() }
        comparisons += try await measure("PostgreSQL", database, upstream: port)
        #endif
        return comparisons
    }

    private func measure(
        _ kind: String, _ database: PostgreSQLConfiguration?, upstream: Int
    ) async throws -> [Comparison] {
        let directory = try setting.workspace.directory("bound-call-\(kind)")
        let gateway = try BenchServer(in: directory, upstream: "http://127.0.0.1:\(upstream)", database: database)
        defer { gateway.stop() }
        let keys = SoftwareKeyProvider(unprotectedFile: URL(fileURLWithPath: directory + "/keys"))
        let (bearer, bound) = (try await gateway.manager(), try await gateway.manager(dpop: .on(keys: keys)))
        guard try await bound.tokens().isBound else { throw BenchFailure("the tokens belong to no key") }
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let callers = try await Callers(gateway, each: setting.rounds(250, quick: 60), group: group)
        let byHand = ProofByHand(token: try await bound.tokens().accessToken)
        var added = Comparison(
            benchmark: Self.name,
            title: "\(kind): what a proof adds to a call / one ES256 verification and two hashes, processor time",
            unit: "s per request", aim: .atMost(2))
        var rate = Comparison(
            benchmark: Self.name, title: "\(kind): calls with proofs / calls with a bearer token, requests a second",
            unit: "1/s", aim: .atLeast(0.6))
        let rounds = setting.rounds(9, quick: 2)
        for round in 0...rounds {
            // The proofs of a round are made just before it, since their nonce is valid for minutes only.
            let (plain, proved) = (try await callers.requests(bearer), try await callers.requests(bound))
            let first = try await callers.load(round.isMultiple(of: 2) ? plain : proved)
            let second = try await callers.load(round.isMultiple(of: 2) ? proved : plain)
            let (one, other) = round.isMultiple(of: 2) ? (first, second) : (second, first)
            let verification = try byHand.processorTime(setting.rounds(4_000, quick: 500))
            // The first round warms all up.
            guard round > 0 else { continue }
            added.add(subject: other.processor - one.processor, baseline: verification, of: rounds)
            rate.add(subject: 1 / other.time, baseline: 1 / one.time, of: rounds)
        }
        await callers.close()
        try await group.shutdownGracefully()
        return [added, rate]
    }

    /// Kept connections to a gateway.
    private struct Callers {
        private static let connections = 16

        let gateway: BenchServer
        /// How many requests each connection sends in one load.
        let each: Int
        private var clients: [HandMadeClient] = []

        init(_ gateway: BenchServer, each: Int, group: MultiThreadedEventLoopGroup) async throws {
            (self.gateway, self.each) = (gateway, each)
            let certificate = try String(contentsOfFile: gateway.chainFile, encoding: .utf8)
            for _ in 0..<Self.connections {
                clients.append(
                    try await HandMadeClient.connect(
                        port: gateway.gatewayPort, certificatePEM: certificate, group: group))
            }
        }

        func close() async { for client in clients { await client.close() } }

        /// What each connection sends: requests with the manager's token, each with a proof of its own where the token
        /// belongs to a key.
        func requests(_ manager: TokenManager) async throws -> [[HTTPRequestHead]] {
            let nonce = try await nonce(manager)
            var all: [[HTTPRequestHead]] = []
            for _ in clients {
                var heads: [HTTPRequestHead] = []
                for _ in 0..<each { heads.append(try await head(manager, nonce: nonce)) }
                all.append(heads)
            }
            return all
        }

        private func head(_ manager: TokenManager, nonce: String?) async throws -> HTTPRequestHead {
            let credential = try await manager.credential(
                for: .get, url: "https://localhost:\(gateway.gatewayPort)\(AccountsReply.path)", nonce: nonce)
            var headers: HTTPHeaders = [
                "Host": "localhost:\(gateway.gatewayPort)", "Accept": "application/json",
                "Authorization": credential.authorization.reveal(),
            ]
            if let proof = credential.proof { headers.add(name: "DPoP", value: proof.reveal()) }
            return HTTPRequestHead(
                version: .http1_1, method: .GET, uri: AccountsReply.path, headers: headers)
        }

        /// A nonce of the gateway, which is told by its refusal of one that it does not know; `nil` for bearer tokens.
        private func nonce(_ manager: TokenManager) async throws -> String? {
            guard try await manager.tokens().isBound, let client = clients.first else { return nil }
            for _ in 0..<50 {
                let reply = try await client.send(try await head(manager, nonce: "unknown"))
                switch reply.head.status {
                case .unauthorized:
                    guard let nonce = reply.head.headers["DPoP-Nonce"].first else {
                        throw BenchFailure("a refused proof is answered without a nonce")
                    }
                    return nonce
                case .serviceUnavailable: try await Task.sleep(for: .milliseconds(100))
                case let status: throw BenchFailure("a proof with an unknown nonce is answered with \(status.code)")
                }
            }
            throw BenchFailure("the server does not answer")
        }

        /// Sends the requests on all connections at once; returns seconds for each of them, of the server's processor
        /// and by the clock.
        func load(_ requests: [[HTTPRequestHead]]) async throws -> (processor: Double, time: Double) {
            let expected = Array(AccountsReply.body.utf8)
            let clock = ContinuousClock()
            let (before, start) = (try gateway.process.processorTime, clock.now)
            try await withThrowingTaskGroup { group in
                for (client, heads) in zip(clients, requests) {
                    group.addTask {
                        for head in heads {
                            let reply = try await client.send(head)
                            guard reply.head.status == .ok, reply.body == expected else {
                                throw BenchFailure("an unexpected reply: \(reply.head.status.code)")
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
            let time = (clock.now - start).inSeconds
            let count = Double(each * clients.count)
            return ((try gateway.process.processorTime - before) / count, time / count)
        }
    }
}

/// The least that a proof costs whoever verifies it: its signature, the hash of the token and the key's thumbprint.
private struct ProofByHand {
    private let key = P256.Signing.PrivateKey()
    private let message = Data(repeating: 7, count: 420)
    private let token: Data

    init(token: Secret) { self.token = Data(token.revealBytes()) }

    /// Seconds of the processor for one of `count`.
    func processorTime(_ count: Int) throws -> Double {
        let signature = try key.signature(for: message).rawRepresentation
        let (point, jwk) = (key.publicKey.x963Representation, Data(repeating: 7, count: 130))
        let before = ProcessTime.now
        for _ in 0..<count {
            let publicKey = try P256.Signing.PublicKey(x963Representation: point)
            let isValid = publicKey.isValidSignature(
                try P256.Signing.ECDSASignature(rawRepresentation: signature), for: message)
            guard isValid, SHA256.hash(data: token) != SHA256.hash(data: jwk) else {
                throw BenchFailure("not signed")
            }
        }
        return (ProcessTime.now - before) / Double(count)
    }
}
