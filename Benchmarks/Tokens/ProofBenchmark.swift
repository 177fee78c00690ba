import AssentCore
import AssentTokens
import AssentVault
import Crypto
import Foundation
import HTTPTypes

/// What an app sends with a call of its own, an access token and a proof for that call, again and again, against bare
/// signatures of as many bytes with a key of the same kind.
struct ProofBenchmark: Benchmark {
    static let name = "proof"
    static let summary = "proofs a second of a client against bare signatures"

    private let setting: BenchSetting

    init(_ setting: BenchSetting) { self.setting = setting }

    private static let url = "https://api.bank.example/accounts?from=2026-01-01"

    @concurrent
    func run() async throws -> [Comparison] {
        let directory = try setting.workspace.directory("proof")
        let server = try BenchServer(in: directory)
        defer { server.stop() }
        let keys = SoftwareKeyProvider(unprotectedFile: URL(fileURLWithPath: directory + "/keys"))
        let manager = try await server.manager(dpop: .on(keys: keys))
        let example = try await manager.credential(for: .get, url: Self.url, nonce: "nonce")
        guard let proof = example.proof else { throw BenchFailure("the tokens belong to no key") }
        // What is signed: all but the signature and the dot before it.
        let signed = proof.reveal().split(separator: ".").prefix(2).joined(separator: ".")
        let message = Data(signed.utf8)
        let key = P256.Signing.PrivateKey()
        var comparison = Comparison(
            benchmark: Self.name, title: "proofs / bare ES256 signatures, a second", unit: "1/s", aim: .atLeast(0.8))
        let (rounds, block) = (setting.rounds(15, quick: 3), setting.rounds(3_000, quick: 500))
        for round in 0...rounds {
            let bare = try await Self.rate(block) { try key.signature(for: message).rawRepresentation.count == 64 }
            let proofs = try await Self.rate(block) {
                try await manager.credential(for: .get, url: Self.url, nonce: "nonce").proof != nil
            }
            // The first round warms both up.
            guard round > 0 else { continue }
            comparison.add(subject: proofs, baseline: bare, of: rounds)
        }
        return [comparison]
    }

    private static func rate(_ count: Int, _ body: () async throws -> Bool) async throws -> Double {
        let clock = ContinuousClock()
        let start = clock.now
        for _ in 0..<count {
            guard try await body() else { throw BenchFailure("nothing was signed") }
        }
        return Double(count) / (clock.now - start).inSeconds
    }
}
