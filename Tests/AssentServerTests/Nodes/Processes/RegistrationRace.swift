#if PostgreSQL && os(Linux)
import AssentCore
import AssentStore
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

/// Races initial access tokens for one registration each at two processes, by several installations at a time.
actor RegistrationRace {
    /// What became of a race's requests.
    struct Outcome {
        /// The client ids that were given.
        var told: [String] = []
        /// How many requests had no answer, or one that says that the outcome is not known.
        var lost = 0
    }

    /// A request to register.
    private struct Presented: Sendable {
        let token: Secret
        let proof: String
        let body: String
    }

    private static let issuer = "https://localhost:8443/am/oauth2/realms/root/realms/alpha"

    private let world: NodeProcesses
    private let database: any SQLDatabase
    private let keys: [ProofKey]
    private var nodes: [ServeProcess]
    private var kills = 0

    /// How many tokens were raced.
    private var races: Int64 = 0

    /// The client ids that were given so far.
    private(set) var told: [String] = []

    init(_ world: NodeProcesses) async throws {
        self.world = world
        keys = try (0..<4).map { _ in try ProofKey() }
        nodes = [try await world.start(), try await world.start()]
        database = try await world.openDatabase()
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

    func close() async throws { try await database.close() }

    // MARK: - Races

    /// Races a new token by four installations, of which each sends the same request to both nodes. With `killing` one
    /// node, by turns, is killed when so many requests were answered, and another process takes its place.
    func run(killing: Int?) async throws -> Outcome {
        let token = try await initialToken()
        let nonce = try await nonce(token)
        var requests: [Presented] = []
        for key in keys { requests.append(try await request(key, token, nonce: nonce)) }
        var outcome = Outcome()
        let victim = nodes[kills % 2]
        await withTaskGroup(of: Answer?.self) { [requests] group in
            for index in 0..<(2 * requests.count) {
                let (node, each) = (nodes[index % 2], requests[index / 2])
                group.addTask { try? await Self.send(each, to: node) }
            }
            if killing == 0 { victim.process.signal(SIGKILL) }
            var answered = 0
            for await answer in group {
                note(answer, isKilled: killing != nil, &outcome)
                answered += 1
                if answered == killing { victim.process.signal(SIGKILL) }
            }
        }
        if killing != nil {
            #expect(await victim.process.exit() == -SIGKILL)
            nodes[kills % 2] = try await world.start()
            kills += 1
        }
        try await settle(token, &outcome, isKilled: killing != nil)
        told += outcome.told
        races += 1
        #expect(try await count("registration_tokens", "hash = \(TokenHash.of(token)) AND uses_left = 0") == 1)
        #expect(try await count("registered_apps", "app = 'pay' AND instances = \(races)") == 1)
        return outcome
    }

    private func note(_ answer: Answer?, isKilled: Bool, _ outcome: inout Outcome) {
        switch answer?.status {
        case 201: outcome.told.append(answer?.json["client_id"]?.string ?? "")
        case 401: #expect(answer?.error == "invalid_token", "\(answer?.text ?? "")")
        // The other node has had the same request.
        case 400: #expect(answer?.error == "invalid_dpop_proof", "\(answer?.text ?? "")")
        // The killed node's connection to the database may have been the other one's to wait for.
        case nil, 503:
            #expect(isKilled, "\(answer?.text ?? "no answer")")
            outcome.lost += 1
        default: Issue.record("\(answer?.text ?? "")")
        }
    }

    /// Presents the token once more at each node. It may only be good where a node was killed, and nobody has it yet.
    private func settle(_ token: Secret, _ outcome: inout Outcome, isKilled: Bool) async throws {
        let nonce = try await nonce(token)
        for (node, key) in zip(nodes, keys) {
            var answer = try await Self.send(try await request(key, token, nonce: nonce), to: node)
            // The killed node's connection to the database may still be the one to wait for.
            for _ in 0..<20 where answer.status == 503 && isKilled {
                answer = try await Self.send(try await request(key, token, nonce: nonce), to: node)
            }
            if answer.status == 201, isKilled, outcome.told.isEmpty {
                outcome.told.append(answer.json["client_id"]?.string ?? "")
            } else {
                #expect(answer.status == 401 && answer.error == "invalid_token", "\(answer.text)")
            }
        }
    }

    /// Holds the instances against the audit log, and against what was told.
    func compare() async throws {
        let instances = try await database.run(.read("SELECT id FROM client_instances")).map { try $0.text("id") }
        let details = try await database.run(
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

    private func count(_ table: SQL, _ condition: SQL) async throws -> Int64? {
        try await database.run(.read("SELECT count(*) AS n FROM \(table) WHERE \(condition)")).first?.integer("n")
    }

    // MARK: - Requests

    private static func send(_ presented: Presented, to node: ServeProcess) async throws -> Answer {
        try await node.send(
            "POST", node.server + "/oauth2/realms/root/realms/alpha/register",
            [
                ("Content-Type", "application/json"), ("Authorization", "Bearer \(presented.token.reveal())"),
                ("DPoP", presented.proof),
            ], text: presented.body)
    }

    private var now: Int64 { Int64(SystemClock().now.timeIntervalSince1970) }

    /// A token as an administrator makes one.
    private func initialToken() async throws -> Secret {
        let token = Secret(SystemRandom().token())
        _ = try await database.run(
            SQLStatement(
                """
                INSERT INTO registration_tokens (hash, realm, app, uses_left, created_at, expires_at)
                VALUES (\(TokenHash.of(token)), '/alpha', 'pay', 1, \(now), \(now + 3600))
                """, expecting: .exactly(1)))
        return token
    }

    /// A nonce that is new: for minutes after the database's first start proofs need one.
    private func nonce(_ token: Secret) async throws -> String {
        let late = try await request(keys[0], token, nonce: nil, issuedAt: now - 3600)
        let asked = try await Self.send(late, to: nodes[0])
        #expect(asked.status == 400 && asked.error == "use_dpop_nonce", "\(asked.text)")
        return try #require(asked["DPoP-Nonce"])
    }

    private func request(
        _ key: ProofKey, _ token: Secret, nonce: String?, issuedAt: Int64? = nil
    ) async throws -> Presented {
        let subject = ProofKey.Subject(
            method: "POST", url: Self.issuer + "/register", token: "", nonce: nonce, issuedAt: issuedAt ?? now)
        let proof = try await key.proof(subject, claims: { $0["ath"] = nil })
        return Presented(
            token: token, proof: proof, body: JSONValue.object(RegistrationDoor.request(key)).serialized())
    }
}
#endif
