#if PostgreSQL && os(Linux)
import AssentCore
import AssentEngine
import AssentPayload
import AssentStore
import Crypto
import Foundation
import Logging
import StoreTesting

/// Handshakes of payload encryption, as a node on PostgreSQL answers them, against the same by hand: an ephemeral key,
/// two agreements on X25519 and one INSERT of the session's row with libpq. Handshakes a second, one at a time and
/// eight at a time; what the client calculates, TLS and HTTP are on neither side.
struct HandshakeBenchmark: Benchmark {
    static let name = "handshake"
    static let summary = "handshakes of payload encryption against X25519 and an INSERT by hand"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    private static let most = 8

    @concurrent
    func run() async throws -> [Comparison] {
        let server = try await PostgreSQLServer.start()
        var configuration = try await server.offPool { try $0.makeDatabase() }
        configuration.connections = Self.most
        let context = EngineContext(
            database: try await DatabaseLocation.postgresql(configuration).open(clock: SystemClock()),
            clock: SystemClock(), random: SystemRandom(),
            masterKey: try MasterKey(Secret(bytes: SystemRandom().bytes(MasterKey.byteCount))),
            logger: Logger(label: "bench", factory: { _ in SwiftLogNoOpLogHandler() }))
        let world = try await HandshakeWorld(context)
        let hand = try HandMadePostgreSQLRows(configuration, parallel: Self.most)
        var comparisons: [Comparison] = []
        for parallel in [1, Self.most] {
            comparisons.append(try await measure(world, hand, parallel: parallel))
        }
        try await context.database.close()
        return comparisons
    }

    private func measure(
        _ world: HandshakeWorld, _ hand: HandMadePostgreSQLRows, parallel: Int
    ) async throws -> Comparison {
        var comparison = Comparison(
            benchmark: Self.name, title: "handshakes / X25519 and an INSERT by hand, \(parallel) at a time",
            unit: "1/s", aim: .atLeast(0.7))
        let (rounds, each) = (setting.rounds(9, quick: 2), setting.rounds(2_000, quick: 200))
        let clock = ContinuousClock()
        try await comparison.inTurns(rounds: rounds) {
            let bodies = try (0..<each).map { _ in try world.request().request.body }
            let rows = try (0..<each).map { _ in try HandshakeByHand() }
            return (
                subject: {
                    let time = try await clock.measure {
                        try await Lanes.run(each, parallel: parallel) { try await world.answer(bodies[$0]) }
                    }
                    return Double(each) / time.inSeconds
                },
                baseline: {
                    Double(each) / (try await clock.measure { try await hand.run(rows, parallel: parallel) }).inSeconds
                }
            )
        }
        return comparison
    }
}

/// The least that a handshake costs: an ephemeral key, two agreements, and the session's row.
private struct HandshakeByHand: HandMadeRequest {
    private static let key = Curve25519.KeyAgreement.PrivateKey()

    private let client = Curve25519.KeyAgreement.PrivateKey().publicKey

    let rows: [SQL]

    init() throws {
        let (random, now) = (SystemRandom(), Int64(Date().timeIntervalSince1970))
        // As long as a sealed session is, in PostgreSQL's own form of bytes.
        let sealed = "\\x" + Hex.encode(random.bytes(260))
        rows = [
            """
            INSERT INTO payload_sessions (id, kid, sealed, begun_at, used_at)
            VALUES (\(random.token()), 'by hand', \(sealed), \(now), \(now))
            """
        ]
    }

    func calculate() throws {
        let ephemeral = Curve25519.KeyAgreement.PrivateKey()
        let secrets = try [Self.key, ephemeral].map { try $0.sharedSecretFromKeyAgreement(with: client) }
        guard secrets.count == 2, secrets.first != secrets.last else { throw BenchFailure("not agreed") }
    }
}
#endif
