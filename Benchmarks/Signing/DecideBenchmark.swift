import AssentCore
import AssentEngine
import AssentSigningProtocol
import Crypto
import Foundation
import GRDB
import SigningTesting

/// A device's approval as the server answers it (proof, decryption, both signatures, receipt, one transaction of the
/// database), against one ECDSA verification and the same rows written by hand with GRDB in the same file: decisions a
/// second, one at a time, in blocks that take turns. Beside it are two counts: calls of an enrolment with a PIN, and
/// statements of an unlock.
struct DecideBenchmark: Benchmark {
    static let name = "decide"
    static let summary =
        "a device's approval against one ECDSA check and the same rows by hand; calls and statements"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    @concurrent
    func run() async throws -> [Comparison] {
        let directory = try setting.workspace.directory("decide")
        let world = try await SigningWorld(path: directory + "/assent.sqlite")
        let (device, container) = try await world.enrolled()
        let hand = try await HandMadeDecide(path: directory + "/assent.sqlite", did: container.did.text)
        var comparison = Comparison(
            benchmark: Self.name,
            title: "decide / one ECDSA check and the rows by hand, decisions a second", unit: "1/s",
            aim: .atLeast(0.15))
        let (rounds, each) = (setting.rounds(9, quick: 2), setting.rounds(100, quick: 20))
        for round in 0...rounds {
            let ours = try await world.prepare(each, device, container)
            let theirs = try await world.prepare(each, device, container)
            let subject = try await Self.rate(ours) {
                _ = try await world.answer(.decide, proof: $0.proof, body: $0.body)
            }
            let baseline = try await Self.rate(theirs) { try await hand.decide($0, at: world.clock.epochSeconds) }
            // The first round warms both up.
            if round > 0 { comparison.add(subject: subject, baseline: baseline, of: rounds) }
        }
        try hand.close()
        try await world.database.close()
        return [comparison] + (try await counts())
    }

    private static func rate(
        _ prepared: [SigningWorld.Prepared], _ decide: (SigningWorld.Prepared) async throws -> Void
    ) async throws -> Double {
        let clock = ContinuousClock()
        let start = clock.now
        for each in prepared { try await decide(each) }
        return Double(prepared.count) / (clock.now - start).inSeconds
    }

    private func counts() async throws -> [Comparison] {
        let path = try setting.workspace.directory("unlock") + "/assent.sqlite"
        let world = try await SigningWorld(path: path, withPIN: true)
        var calls = Comparison(
            benchmark: Self.name, title: "calls of an enrolment with a PIN, to one", unit: "",
            aim: .exactly(6))
        let (device, container, pin) = try await world.enrolledWithPIN()
        // With the status that tells the device that it is active.
        _ = try await device.status(container.did)
        calls.add(subject: Double(world.answered), baseline: 1, of: 1)
        _ = world.database.taken()
        guard try await pin.unlock("2580") != nil else {
            throw BenchFailure("the PIN does not open the key")
        }
        let written = world.database.taken().filter {
            !$0.hasSuffix(" audit") && !$0.hasSuffix(" attempts")
        }
        var statements = Comparison(
            benchmark: Self.name, title: "statements of an unlock, to one", unit: "", aim: .exactly(1))
        statements.add(subject: Double(written.count), baseline: 1, of: 1)
        try await world.database.close()
        return [calls, statements]
    }
}

/// One ECDSA verification, and what a decision writes, as SQL by hand on the same file with the same durability.
private struct HandMadeDecide: Sendable {
    private let pool: DatabasePool
    private let did: String
    private let key = P256.Signing.PrivateKey()
    private let signature: P256.Signing.ECDSASignature
    private static let message = Data(repeating: 7, count: 700)

    private static let statements = [
        "UPDATE signing_containers SET seen_at = ?2 WHERE did = ?1 AND state = 'ACTIVE' AND expires_at > ?2",
        "UPDATE signing_keys SET used_at = ?2 WHERE did = ?1 AND label = 'payments' AND state = 'ACTIVE'",
        """
        UPDATE signing_transactions SET state = 'APPROVED', status = 'accept', decided_by = ?1, decided_at = ?2
        WHERE txn = ?3 AND state = 'PENDING' AND expires_at > ?2
        """,
        """
        INSERT INTO signing_decisions (txn, did, dh, decision, possession, txd, receipt, decided_at)
        VALUES (?3, ?1, ?4, ?5, ?5, ?5, ?5, ?2)
        """,
        "INSERT INTO signing_proofs (jti, did, expires_at) VALUES (?4, ?1, ?2)",
        HandMadeRecord.columns
            + " VALUES (?4, ?2, 'signing.decide', 'success', '/alpha', ?1, NULL, ?3, ?5, 'by hand', ?6)",
    ]

    init(path: String, did: String) async throws {
        var configuration = Configuration()
        configuration.busyMode = .timeout(10)
        pool = try DatabasePool(path: path, configuration: configuration)
        try await pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
        self.did = did
        signature = try key.signature(for: Self.message)
    }

    func decide(_ prepared: SigningWorld.Prepared, at now: Int64) async throws {
        guard key.publicKey.isValidSignature(signature, for: Self.message) else {
            throw BenchFailure("not signed")
        }
        let values = [
            did.databaseValue, now.databaseValue, prepared.txn.databaseValue, prepared.dh.databaseValue,
            prepared.decision.databaseValue, Int64(Date().timeIntervalSince1970 * 1_000_000).databaseValue,
        ]
        let used = [2, 2, 3, 5, 4, 6]
        let changed = try await pool.write { database in
            var changed = 0
            for (sql, count) in zip(Self.statements, used) {
                let statement = try database.cachedStatement(sql: sql)
                try statement.setArguments(StatementArguments(values.prefix(count)))
                try statement.execute()
                changed += database.changesCount
            }
            return changed
        }
        guard changed == Self.statements.count else {
            throw BenchFailure("\(changed) rows were written by hand")
        }
    }

    func close() throws { try pool.close() }
}
