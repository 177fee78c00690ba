#if PostgreSQL && os(Linux)
import AssentCore
import AssentStore
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

/// Races links that sign browsers in, of a grant of Ana's, at two processes.
actor WebLinkRace {
    private static let target = "https://shop.example/orders"

    /// RFC 7636, appendix B.
    private static let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"

    /// How often links of the same session are raced: it ends when nobody uses it.
    private static let racesOfSession: Int64 = 100

    private let nodes: RacedNodes
    private let password: String

    /// The grant whose links are raced.
    private var grant = ""

    /// How many links were raced.
    private var races: Int64 = 0

    init(_ world: NodeProcesses) async throws {
        nodes = try await RacedNodes(world)
        password = try #require(nodes.first.password)
    }

    func close() async throws { try await nodes.close() }

    // MARK: - Races

    /// Races a new link: four browsers send its form, two at each node. With `killing` one node, by turns, is killed
    /// when so many forms were answered, and another process takes its place.
    func run(killing: Int?) async throws -> RaceOutcome<String> {
        if races.isMultiple(of: Self.racesOfSession) { grant = try await newGrant() }
        let link = try await link()
        var outcome = RaceOutcome<String>()
        let answers = try await nodes.race(4, killing: killing) { _, node in try? await Self.send(link, to: node) }
        for answer in answers { note(answer, isKilled: killing != nil, &outcome) }
        try await settle(link, &outcome, isKilled: killing != nil)
        races += 1
        for session in outcome.told {
            let id = TokenHash.of(Secret(session))
            #expect(try await nodes.count("sessions", "id = \(id) AND grant_id = \(grant)") == 1)
        }
        return outcome
    }

    private func note(_ answer: Answer?, isKilled: Bool, _ outcome: inout RaceOutcome<String>) {
        switch answer?.status {
        case 303: outcome.told.append(Self.session(of: answer))
        case 410: #expect(answer?["Set-Cookie"] == nil)
        case nil, 503: outcome.lose(answer, isKilled: isKilled)
        default: Issue.record("\(answer?.status ?? 0) \(answer?.text ?? "")")
        }
    }

    /// Sends the form once more at each node. It may only sign in where a node was killed, and nobody has been.
    private func settle(_ link: Secret, _ outcome: inout RaceOutcome<String>, isKilled: Bool) async throws {
        for node in nodes.all {
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
        #expect(try await nodes.count("audit", "event = \(event) AND outcome = 'success'") == races)
        #expect(try await nodes.count("web_links", "used_at IS NULL") == 0)
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
        _ = try await nodes.database.run(
            SQLStatement(
                """
                INSERT INTO web_links (id, realm, grant_id, target, created_at, expires_at)
                VALUES (\(TokenHash.of(link)), '/alpha', \(grant), \(Self.target), \(now), \(now + 600))
                """, expecting: .exactly(1)))
        return link
    }

    /// Signs Ana in, and has her app get tokens.
    private func newGrant() async throws -> String {
        let node = nodes.first
        let session = try await node.signIn("ana", password: password)
        let oauth = node.server + "/oauth2/realms/root/realms/alpha/"
        let redirect = "http://127.0.0.1/callback"
        let parameters = [
            ("response_type", "code"), ("client_id", "bank-app"), ("redirect_uri", redirect), ("state", "s"),
            ("scope", "openid"), ("code_challenge_method", "S256"), ("code_challenge", Self.challenge),
        ]
        let authorized = try await node.send(
            "GET", oauth + "authorize?" + ServerFixture.query(parameters), ServerFixture.session(session))
        let code = try #require(authorized.parameter("code"), "\(authorized.text)")
        let tokens = try await RacedNodes.sendToken(
            [
                ("grant_type", "authorization_code"), ("code", code), ("client_id", "bank-app"),
                ("redirect_uri", redirect), ("code_verifier", KeyedApp.verifier),
            ], to: node)
        try #require(tokens.status == 200, "\(tokens.text)")
        let id = TokenHash.of(Secret(session))
        let rows = try await nodes.database.run(.read("SELECT id FROM grants WHERE session_id = \(id)"))
        return try #require(rows.first).text("id")
    }
}
#endif
