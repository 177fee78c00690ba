#if PostgreSQL && os(Linux)
import AssentCore
import AssentJOSE
import AssentStore
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

/// Races single-use credentials at two processes: an assertion of the client `keyed`, and a proof beside the secret of
/// the client `shop`. Each of the two asks for tokens of its own.
actor KeyRace {
    /// What is raced, by the client that presents it.
    enum Credential: String, CaseIterable, Sendable {
        case assertion = "keyed"
        case proof = "shop"

        /// What is told to somebody who presents it after it was used.
        var refusal: String { self == .assertion ? "invalid_client" : "invalid_dpop_proof" }
    }

    /// What became of a race's requests.
    struct Outcome {
        var accepted: [Credential: Int] = [:]
        /// Requests without an answer, or with one that says that the database's is not known.
        var lost: [Credential: Int] = [:]
    }

    /// The form of a token request, and its fields.
    private struct Presented: Sendable {
        let credential: Credential
        let form: [(String, String)]
        let fields: [(String, String)]
    }

    private let nodes: RacedNodes
    private let key: ProofKey
    private var nonce: String?

    /// What both clients were given so far.
    private(set) var accepted: [Credential: Int] = [.assertion: 0, .proof: 0]

    init(_ world: NodeProcesses, _ key: ProofKey) async throws {
        self.key = key
        nodes = try await RacedNodes(world)
    }

    /// The file of the nodes with both clients.
    static func file(_ text: String, _ key: ProofKey) -> String {
        let rights = """
            grantTypes: [client_credentials]
                    scopes: [accounts]
                    defaultScopes: [accounts]
            """
        return text.replacing(
            "    clients:\n",
            with: """
                    clients:
                      keyed:
                        jwks: \(JSONValue.object(["keys": [key.jwk.json]]).serialized())
                        \(rights)
                      shop:
                        secretHash: \(OAuthClient.hash(ofSecret: Secret(FixtureConfiguration.clientSecret)))
                        \(rights)

                """, maxReplacements: 1)
    }

    func close() async throws { try await nodes.close() }

    // MARK: - Races

    /// Races a new assertion and a new proof, each twice at each node. With `killing` one node, by turns, is killed
    /// when so many requests were answered, and another process takes its place.
    func run(killing: Int?) async throws -> Outcome {
        let presented = [try await assertion(), try await proof()]
        let before = killing == nil ? nil : try await counts()
        if let before { #expect(before == accepted, "what was given, and what the audit log has") }
        var outcome = Outcome()
        let answers = try await nodes.race(8, killing: killing) { index, node in
            let each = presented[index / 2 % 2]
            return (each.credential, try? await Self.send(each, to: node))
        }
        for (credential, answer) in answers { note(answer, credential, isKilled: killing != nil, &outcome) }
        try await settle(presented, &outcome, isKilled: killing != nil)
        if let before { try await compare(outcome, from: before) }
        for (credential, count) in outcome.accepted { accepted[credential, default: 0] += count }
        if let before {
            // What only the audit log knows: a node was killed after it had given a token, and before it said so.
            accepted = try await counts()
            #expect(Credential.allCases.allSatisfy { accepted[$0, default: 0] >= before[$0, default: 0] })
        }
        return outcome
    }

    /// Presents both once more at each node, twice: whatever had no answer, the second time they are refused.
    private func settle(_ presented: [Presented], _ outcome: inout Outcome, isKilled: Bool) async throws {
        for round in 0..<2 {
            for each in presented {
                for node in nodes.all {
                    let answer = try await Self.send(each, to: node)
                    let isFirst = round == 0 && outcome.accepted[each.credential] == nil
                    if answer.status != 200 || !isFirst || !isKilled {
                        #expect(answer.status == 400 && answer.error == each.credential.refusal, "\(answer.text)")
                    }
                    if answer.status == 200 { outcome.accepted[each.credential, default: 0] += 1 }
                }
            }
            // Without a kill once is enough.
            if !isKilled { return }
        }
    }

    private func note(_ answer: Answer?, _ credential: Credential, isKilled: Bool, _ outcome: inout Outcome) {
        switch answer?.status {
        case 200: outcome.accepted[credential, default: 0] += 1
        case 400: #expect(answer?.error == credential.refusal, "\(answer?.text ?? "")")
        // The killed node's connection to the database may have been the other one's to wait for.
        case nil, 503:
            #expect(isKilled, "\(answer?.text ?? "no answer")")
            outcome.lost[credential, default: 0] += 1
        default: Issue.record("\(answer?.text ?? "")")
        }
    }

    /// Holds what was said against what was done in a race in which a node was killed.
    private func compare(_ outcome: Outcome, from before: [Credential: Int]) async throws {
        let after = try await counts()
        for credential in Credential.allCases {
            let given = after[credential, default: 0] - before[credential, default: 0]
            let told = outcome.accepted[credential, default: 0]
            // Each is spent together with what it was used for, so none is lost by a kill.
            #expect(told <= given && given == 1, "\(credential): told \(told), given \(given)")
        }
    }

    /// How many tokens both clients have had, by the audit log.
    private func counts() async throws -> [Credential: Int] {
        var counts: [Credential: Int] = [:]
        for credential in Credential.allCases {
            let client = "%\"client\":\"\(credential.rawValue)\"%"
            let row = try await nodes.database.run(
                .read(
                    """
                    SELECT count(*) AS n FROM audit
                    WHERE event = \(AuditEvent.oauthClient.rawValue) AND outcome = 'success' AND detail LIKE \(client)
                    """)
            ).first
            counts[credential] = Int(try #require(row).integer("n"))
        }
        return counts
    }

    // MARK: - Requests

    private static func send(_ presented: Presented, to node: ServeProcess) async throws -> Answer {
        try await RacedNodes.sendToken(
            [("grant_type", "client_credentials")] + presented.form, presented.fields, to: node)
    }

    private var now: Int64 { SystemClock().epochSeconds }

    private func assertion() async throws -> Presented {
        let form = try await key.assertion(
            of: Credential.assertion.rawValue, to: RacedNodes.issuer, at: now, seconds: 3000)
        return Presented(credential: .assertion, form: form, fields: [])
    }

    /// A proof with a nonce that is new: for minutes after the database's first start proofs need one.
    private func proof() async throws -> Presented {
        nonce = nil
        let asked = try await Self.send(try await proof(issuedAt: now - 3600), to: nodes.first)
        #expect(asked.status == 400 && asked.error == "use_dpop_nonce", "\(asked.text)")
        let told = try #require(asked["DPoP-Nonce"])
        nonce = told
        return try await proof(issuedAt: now)
    }

    private func proof(issuedAt: Int64) async throws -> Presented {
        let subject = ProofKey.Subject(
            method: "POST", url: RacedNodes.issuer + "/access_token", token: "", nonce: nonce, issuedAt: issuedAt)
        let proof = try await key.proof(subject, claims: { $0["ath"] = nil })
        let basic = Data("shop:\(FixtureConfiguration.clientSecret)".utf8).base64EncodedString()
        return Presented(credential: .proof, form: [], fields: [("Authorization", "Basic \(basic)"), ("DPoP", proof)])
    }
}
#endif
