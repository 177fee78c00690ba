#if PostgreSQL && os(Linux)
import AssentCore
import AssentStore
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

/// Races initial access tokens for one registration each at two processes, by several installations at a time.
actor RegistrationRace {
    private let nodes: RacedNodes
    private let keys: [ProofKey]

    /// How many tokens were raced.
    private var races: Int64 = 0

    /// The client ids that were given so far.
    private(set) var told: [String] = []

    init(_ world: NodeProcesses) async throws {
        keys = try (0..<4).map { _ in try ProofKey() }
        nodes = try await RacedNodes(world)
    }

    /// The file of the nodes with the app.
    static func file(_ text: String) -> String {
        text.replacing(
            "    clients:\n",
            with: """
                    apps:
                      pay:
                        name: Example Pay
                        redirectURIs: ["http://127.0.0.1/callback"]
                        scopes: [openid, accounts]
                        idTokenAlgorithm: ES256
                        registration: token
                        registrationsPerAddress: 1000000
                    clients:

                """, maxReplacements: 1)
    }

    func close() async throws { try await nodes.close() }

    // MARK: - Races

    /// Races a new token by four installations, of which each sends the same request to both nodes. With `killing` one
    /// node, by turns, is killed when so many requests were answered, and another process takes its place.
    func run(killing: Int?) async throws -> RaceOutcome<String> {
        let token = try await nodes.initialToken()
        let nonce = try await nonce(token)
        var requests: [RacedNodes.Registration] = []
        for key in keys { requests.append(try await .init(key, token, nonce: nonce)) }
        var outcome = RaceOutcome<String>()
        let answers = try await nodes.race(2 * requests.count, killing: killing) { [requests] index, node in
            try? await requests[index / 2].send(to: node)
        }
        for answer in answers { note(answer, isKilled: killing != nil, &outcome) }
        try await settle(token, &outcome, isKilled: killing != nil)
        told += outcome.told
        races += 1
        #expect(
            try await nodes.count("registration_tokens", "hash = \(TokenHash.of(token)) AND uses_left = 0") == 1)
        #expect(try await nodes.count("registered_apps", "app = 'pay' AND instances = \(races)") == 1)
        return outcome
    }

    private func note(_ answer: Answer?, isKilled: Bool, _ outcome: inout RaceOutcome<String>) {
        switch answer?.status {
        case 201: outcome.told.append(answer?.json["client_id"]?.string ?? "")
        case 401: #expect(answer?.error == "invalid_token", "\(answer?.text ?? "")")
        // The other node has had the same request.
        case 400: #expect(answer?.error == "invalid_dpop_proof", "\(answer?.text ?? "")")
        case nil, 503: outcome.lose(answer, isKilled: isKilled)
        default: Issue.record("\(answer?.text ?? "")")
        }
    }

    /// Presents the token once more at each node. It may only be good where a node was killed, and nobody has it yet.
    private func settle(_ token: Secret, _ outcome: inout RaceOutcome<String>, isKilled: Bool) async throws {
        let nonce = try await nonce(token)
        for (node, key) in zip(nodes.all, keys) {
            func send() async throws -> Answer {
                try await RacedNodes.Registration(key, token, nonce: nonce).send(to: node)
            }
            var answer = try await send()
            // The killed node's connection to the database may still be the one to wait for.
            for _ in 0..<20 where answer.status == 503 && isKilled { answer = try await send() }
            if answer.status == 201, isKilled, outcome.told.isEmpty {
                outcome.told.append(answer.json["client_id"]?.string ?? "")
            } else {
                #expect(answer.status == 401 && answer.error == "invalid_token", "\(answer.text)")
            }
        }
    }

    /// Holds the instances against the audit log, and against what was told.
    func compare() async throws {
        let instances = try await nodes.database.run(.read("SELECT id FROM client_instances")).map { try $0.text("id") }
        let details = try await nodes.database.run(
            .read(
                """
                SELECT detail FROM audit
                WHERE event = \(AuditEvent.registrationCreate.rawValue) AND outcome = 'success'
                """)
        ).map { try $0.text("detail") }
        let recorded = try details.compactMap { try JSONValue.parse(Array($0.utf8))["client"]?.string }
        #expect(Int64(instances.count) == races)
        #expect(recorded.sorted() == instances.sorted())
        #expect(Set(told).count == told.count && Set(told).isSubset(of: instances))
    }

    /// A nonce that is new: for minutes after the database's first start proofs need one.
    private func nonce(_ token: Secret) async throws -> String {
        let hourAgo = SystemClock().epochSeconds - 3600
        let late = try await RacedNodes.Registration(keys[0], token, nonce: nil, issuedAt: hourAgo)
        let asked = try await late.send(to: nodes.first)
        #expect(asked.status == 400 && asked.error == "use_dpop_nonce", "\(asked.text)")
        return try #require(asked["DPoP-Nonce"])
    }
}
#endif
