#if PostgreSQL && os(Linux)
import AssentCore
import AssentStore
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

/// Races links that sign browsers in, of a grant of Ana's, at two processes.
actor WebLinkRace {
    /// What became of a race's forms.
    struct Outcome {
        /// The sessions that browsers were given.
        var told: [String] = []
        /// How many forms had no answer, or one that says that the outcome is not known.
        var lost = 0
    }

    private static let target = "https://shop.example/orders"

    /// RFC 7636, appendix B.
    private static let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"

    /// How often links of the same session are raced: it ends when nobody uses it.
    private static let racesOfSession: Int64 = 100

    private let world: NodeProcesses
    private let database: any SQLDatabase
    private let password: String
    private var nodes: [ServeProcess]
    private var kills = 0

    /// The grant whose links are raced.
    private var grant = ""

    /// How many links were raced.
    private var races: Int64 = 0

    init(_ world: NodeProcesses) async throws {
        self.world = world
        nodes = [try await world.start(), try await world.start()]
        password = try #require(nodes[0].password)
        database = try await world.openDatabase()
    }

    func close() async throws { try await database.close() }

    // MARK: - Races

    /// Races a new link: four browsers send its form, two at each node. With `killing` one node, by turns, is killed
    /// when so many forms were answered, and another process takes its place.
    func run(killing: Int?) async throws -> Outcome {
        if races.isMultiple(of: Self.racesOfSession) { grant = try await newGrant() }
        let link = try await link()
        var outcome = Outcome()
        let victim = nodes[kills % 2]
        await withTaskGroup(of: Answer?.self) { [nodes] group in
            for index in 0..<4 { group.addTask { try? await Self.send(link, to: nodes[index % 2]) } }
            if killing == 0 { victim.process.signal(SIGKILL) }
            var answered = 0
            for await answer in group {
                note(answer, isKilled: killing != nil, &outcome)
                answered += 1
                if answered == killing { victim.process.signal(SIGKILL) }
            }
        }
        if killing != nil {
            victim.process.signal(SIGKILL)
            #expect(await victim.process.exit() == -SIGKILL)
            nodes[kills % 2] = try await world.start()
            kills += 1
        }
        try await settle(link, &outcome, isKilled: killing != nil)
        races += 1
        for session in outcome.told {
            let id = TokenHash.of(Secret(session))
            #expect(try await count("sessions", "id = \(id) AND grant_id = \(grant)") == 1)
        }
        return outcome
    }

    private func note(_ answer: Answer?, isKilled: Bool, _ outcome: inout Outcome) {
        switch answer?.status {
        case 303: outcome.told.append(Self.session(of: answer))
        case 410: #expect(answer?["Set-Cookie"] == nil)
        // The killed node's connection to the database may have been the other one's to wait for.
        case nil, 503:
            #expect(isKilled, "\(answer?.text ?? "no answer")")
            outcome.lost += 1
        default: Issue.record("\(answer?.status ?? 0) \(answer?.text ?? "")")
        }
    }

    /// Sends the form once more at each node. It may only sign in where a node was killed, and nobody has been.
    private func settle(_ link: Secret, _ outcome: inout Outcome, isKilled: Bool) async throws {
        for node in nodes {
            var answer = try await Self.send(link, to: node)
            for _ in 0..<20 where answer.status == 503 && isKilled { answer = try await Self.send(link, to: node) }
            if answer.status == 303, isKilled, outcome.told.isEmpty {
                outcome.told.append(Self.session(of: answer))
            } else {
                #expect(answer.status == 410 && answer["Set-Cookie"] == nil, "\(answer.status) \(answer.text)")
            }
        }
    }

    /// Holds the links against the audit log: one session for each, whether or not a browser was told of it.
    func compare() async throws {
        let event = AuditEvent.webLinkUse.rawValue
        #expect(try await count("audit", "event = \(event) AND outcome = 'success'") == races)
        #expect(try await count("web_links", "used_at IS NULL") == 0)
    }

    private func count(_ table: SQL, _ condition: SQL) async throws -> Int64? {
        try await database.run(.read("SELECT count(*) AS n FROM \(table) WHERE \(condition)")).first?.integer("n")
    }

    // MARK: - Requests

    private static func session(of answer: Answer?) -> String {
        let cookie = answer?["Set-Cookie"]?.split(separator: ";").first ?? ""
        return cookie.split(separator: "=", maxSplits: 1).last.map(String.init) ?? ""
    }

    private static func send(_ link: Secret, to node: ServeProcess) async throws -> Answer {
        try await node.send(
            "POST", node.server + "/UI/Link",
            [("Origin", "https://localhost:8443"), ("Content-Type", "application/x-www-form-urlencoded")],
            text: ServerFixture.query([("id", link.reveal())]))
    }

    /// A link as an app is given one.
    private func link() async throws -> Secret {
        let (link, now) = (Secret(SystemRandom().token()), SystemClock().epochSeconds)
        _ = try await database.run(
            SQLStatement(
                """
                INSERT INTO web_links (id, realm, grant_id, target, created_at, expires_at)
                VALUES (\(TokenHash.of(link)), '/alpha', \(grant), \(Self.target), \(now), \(now + 600))
                """, expecting: .exactly(1)))
        return link
    }

    /// Signs Ana in, and has her app get tokens.
    private func newGrant() async throws -> String {
        let (node, session) = (nodes[0], try await nodes[0].signIn("ana", password: password))
        let oauth = node.server + "/oauth2/realms/root/realms/alpha/"
        let redirect = "http://127.0.0.1/callback"
        let parameters = [
            ("response_type", "code"), ("client_id", "bank-app"), ("redirect_uri", redirect), ("state", "s"),
            ("scope", "openid"), ("code_challenge_method", "S256"), ("code_challenge", Self.challenge),
        ]
        let authorized = try await node.send(
            "GET", oauth + "authorize?" + ServerFixture.query(parameters), ServerFixture.session(session))
        let code = try #require(authorized.parameter("code"), "\(authorized.text)")
        let tokens = try await node.send(
            "POST", oauth + "access_token", [("Content-Type", "application/x-www-form-urlencoded")],
            text: ServerFixture.query([
                ("grant_type", "authorization_code"), ("code", code), ("client_id", "bank-app"),
                ("redirect_uri", redirect), ("code_verifier", KeyedApp.verifier),
            ]))
        try #require(tokens.status == 200, "\(tokens.text)")
        let id = TokenHash.of(Secret(session))
        let rows = try await database.run(.read("SELECT id FROM grants WHERE session_id = \(id)"))
        return try #require(rows.first).text("id")
    }
}
#endif
