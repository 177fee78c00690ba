#if PostgreSQL && os(Linux)
import AssentCore
import AssentStore
import Foundation
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

/// Two processes of `assent serve` on one database that are asked at the same time. One of them, by turns, may be
/// killed meanwhile, and another process takes its place.
final class RacedNodes: Sendable {
    /// The realm's issuer, by which clients know both.
    static let issuer = "https://localhost:8443/am/oauth2/realms/root/realms/alpha"

    /// The nodes' database.
    let database: any SQLDatabase

    private let world: NodeProcesses
    private let state: Locked<State>

    private struct State {
        var nodes: [ServeProcess]
        var kills = 0
    }

    init(_ world: NodeProcesses) async throws {
        self.world = world
        let nodes = [try await world.start(), try await world.start()]
        state = Locked(State(nodes: nodes))
        database = try await world.openDatabase()
    }

    func close() async throws { try await database.close() }

    /// Both, in their order.
    var all: [ServeProcess] { state.withLock { $0.nodes } }

    /// The first one.
    var first: ServeProcess { state.withLock { $0.nodes[0] } }

    /// The one whose turn it is to be killed.
    var victim: ServeProcess { state.withLock { $0.nodes[$0.kills % 2] } }

    /// Makes requests at once, every other one at the same node, and gives what came of them, as it came. With
    /// `killing` the victim is killed when so many were answered, and replaced when all were.
    func race<Answered: Sendable>(
        _ count: Int, killing: Int?, _ send: @escaping @Sendable (_ index: Int, ServeProcess) async -> Answered
    ) async throws -> [Answered] {
        let (nodes, victim) = (all, victim)
        let answered = await withTaskGroup(of: Answered.self) { group in
            for index in 0..<count { group.addTask { await send(index, nodes[index % 2]) } }
            if killing == 0 { victim.process.signal(SIGKILL) }
            var answered: [Answered] = []
            for await each in group {
                answered.append(each)
                if answered.count == killing { victim.process.signal(SIGKILL) }
            }
            return answered
        }
        if killing != nil { try await replaceVictim() }
        return answered
    }

    /// Kills the victim, unless that was done, and starts another process in its place.
    func replaceVictim() async throws {
        let victim = victim
        victim.process.signal(SIGKILL)
        #expect(await victim.process.exit() == -SIGKILL)
        let fresh = try await world.start()
        state.withLock { state in
            state.nodes[state.kills % 2] = fresh
            state.kills += 1
        }
    }

    func count(_ table: SQL, _ condition: SQL) async throws -> Int64? {
        try await database.run(.read("SELECT count(*) AS n FROM \(table) WHERE \(condition)")).first?.integer("n")
    }

    // MARK: - Installations

    /// An initial access token for one installation of the app `pay`, as an administrator makes one.
    func initialToken() async throws -> Secret {
        let (token, now) = (Secret(SystemRandom().token()), SystemClock().epochSeconds)
        _ = try await database.run(
            SQLStatement(
                """
                INSERT INTO registration_tokens (hash, realm, app, uses_left, created_at, expires_at)
                VALUES (\(TokenHash.of(token)), '/alpha', 'pay', 1, \(now), \(now + 3600))
                """, expecting: .exactly(1)))
        return token
    }

    /// A request to register an installation.
    struct Registration: Sendable {
        private let token: Secret
        private let proof: String
        private let body: String

        /// With a proof of the key.
        init(
            _ key: ProofKey, _ token: Secret, nonce: String?, issuedAt: Int64 = SystemClock().epochSeconds
        ) async throws {
            let subject = ProofKey.Subject(
                method: "POST", url: RacedNodes.issuer + "/register", token: "", nonce: nonce, issuedAt: issuedAt)
            proof = try await key.proof(subject, claims: { $0["ath"] = nil })
            self.token = token
            body = JSONValue.object(RegistrationDoor.request(key)).serialized()
        }

        func send(to node: ServeProcess) async throws -> Answer {
            try await node.send(
                "POST", node.server + "/oauth2/realms/root/realms/alpha/register",
                [
                    ("Content-Type", "application/json"), ("Authorization", "Bearer \(token.reveal())"),
                    ("DPoP", proof),
                ], text: body)
        }
    }

    /// A token request, as a form and further fields.
    static func sendToken(
        _ form: [(String, String)], _ fields: [(String, String)] = [], to node: ServeProcess
    ) async throws -> Answer {
        try await node.send(
            "POST", node.server + "/oauth2/realms/root/realms/alpha/access_token",
            [("Content-Type", "application/x-www-form-urlencoded")] + fields, text: ServerFixture.query(form))
    }
}

/// What became of a race that one may win.
struct RaceOutcome<Told: Sendable>: Sendable {
    /// What those were told who won.
    var told: [Told] = []

    /// How many requests had no answer, or one that says that the outcome is not known.
    var lost = 0

    /// Whether one has won, or a process that was killed may have let one win, and told nobody.
    func isOne(killed: Bool) -> Bool { told.count == 1 || killed && lost > 0 && told.isEmpty }

    /// Counts a request without an answer, or with one that says that it does not know. The killed node's connection to
    /// the database may have been the other one's to wait for.
    mutating func lose(_ answer: Answer?, isKilled: Bool) {
        #expect(isKilled, "\(answer?.text ?? "no answer")")
        lost += 1
    }
}

/// How often something is raced, and in how many races a node is killed.
struct RacePlan: Sendable {
    let rounds: Int
    let kills: Int

    /// So many rounds, or where tests soak, more.
    init(_ rounds: Int, kills: Int, soaking: Int = 10_000) {
        (self.rounds, self.kills) = Soak.isOn ? (soaking, 100) : (rounds, kills)
    }

    /// After how many answers a node is killed in a round, counted from 1: from before the first one on, below `end`;
    /// `nil` in a round without a kill.
    func killing(_ round: Int, below end: Int = 5) -> Int? {
        let every = rounds / kills
        return round.isMultiple(of: every) ? round / every % end : nil
    }
}
#endif
