import AssentCore
import AssentTesting
import Crypto
import Testing

@testable import AssentEngine
@testable import AssentServer

/// Each test has its control: the owner succeeds with the same thing, at the same places.
@Suite("Theft: what was stolen is refused from another key, from another client and at another node")
struct TheftTests {
    /// Where the thief tries: at one server on the database of the run, and at two nodes on PostgreSQL.
    enum Place: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case alone = "one server"
        #if PostgreSQL && os(Linux)
        case nodes = "two nodes"
        #endif

        var testDescription: String { rawValue }

        /// Runs `body` with the servers, after a change to their file; the owner is at the first one.
        func run(
            editing: (String) -> String = { $0 }, _ body: ([ServerFixture]) async throws -> Void
        ) async throws {
            switch self {
            case .alone: try await ServerFixture.run(editing: editing) { try await body([$0]) }
            #if PostgreSQL && os(Linux)
            case .nodes: try await TwoNodes.run(editingBoth: editing) { try await body($0.both) }
            #endif
            }
        }
    }

    private static let verifier = SystemRandom().token()

    /// A code of Ana's for the public client `bank-app`.
    private static func code(_ home: ServerFixture, _ parameters: [(String, String)] = []) async throws -> String {
        let challenge = Base64URL.encode(Array(SHA256.hash(data: Array(verifier.utf8))))
        let answer = try await home.authorize(
            session: try await home.session(),
            [("scope", "openid accounts"), ("code_challenge", challenge)] + parameters)
        return try #require(answer.parameter("code"), "\(answer.text)")
    }

    private static func exchange(
        _ code: String, at server: ServerFixture, client: String = "bank-app", _ proof: [(String, String)]
    ) async throws -> Answer {
        try await post(
            "access_token", at: server,
            [
                ("grant_type", "authorization_code"), ("code", code), ("client_id", client),
                ("redirect_uri", "http://127.0.0.1/callback"), ("code_verifier", verifier),
            ], proof)
    }

    private static func post(
        _ path: String, at server: ServerFixture, _ form: [(String, String)], _ fields: [(String, String)] = []
    ) async throws -> Answer {
        try await server.send(
            "POST", server.oauth(path), [("Content-Type", "application/x-www-form-urlencoded")] + fields,
            text: ServerFixture.query(form))
    }

    /// Whether the user's token is accepted from its owner.
    private static func works(_ token: String?, of owner: ProofKey, at server: ServerFixture) async throws -> Bool {
        let url = server.oauth("userinfo")
        let fields = try await server.proved("GET", url, token: try #require(token), by: owner)
        return try await server.send("GET", url, fields).status == 200
    }

    @Test(
        "A stolen access token: no door lets it in, another client cannot end it, and its owner goes on",
        arguments: Place.allCases)
    func accessToken(_ place: Place) async throws {
        try await place.run { servers in
            let home = servers[0]
            let (session, others) = (try await home.session(), try await home.session("ben"))
            for door in ResourceDoor.allCases {
                let (owner, thief) = (try ProofKey(), try ProofKey())
                let token = try await door.boundToken(home, session: session, to: owner)
                // What the thief's own client was given.
                let own = try await home.boundToken(session: others, to: thief, client: "partner-app")
                let seen = try await home.proved("GET", door.url(home), token: token, by: owner)
                #expect(door.accepts(try await home.send("GET", door.url(home), seen)), "\(door)")
                for server in servers {
                    let url = door.url(server)
                    let ofOwn = try await server.proved("GET", url, token: own, by: thief).filter { $0.0 == "DPoP" }
                    for (fields, error) in [
                        (try await server.proved("GET", url, token: token, by: thief), "invalid_token"),
                        (ServerFixture.bearer(token), "invalid_token"),
                        (ServerFixture.bearer(token) + ofOwn, "invalid_token"),
                        (ServerFixture.dpop(token), "invalid_dpop_proof"),
                        (ServerFixture.dpop(token) + ofOwn, "invalid_dpop_proof"), (seen, "invalid_dpop_proof"),
                    ] {
                        let answer = try await server.send("GET", url, fields)
                        #expect(answer.status == 401, "\(door): \(answer.text)")
                        #expect(try answer.tokenChallenge?["error"] == error, "\(door): \(answer.text)")
                    }
                    let ended = try await Self.post(
                        "token/revoke", at: server, [("client_id", "partner-app"), ("token", token)])
                    #expect(ended.status == 400 && ended.error == "invalid_grant", "\(door): \(ended.text)")
                    let mine = try await server.proved("GET", url, token: token, by: owner)
                    #expect(door.accepts(try await server.send("GET", url, mine)), "\(door)")
                }
            }
        }
    }

    @Test(
        "A stolen refresh token of a public client: nobody but its owner gets tokens for it", arguments: Place.allCases)
    func refreshToken(_ place: Place) async throws {
        try await place.run { servers in
            let home = servers[0]
            let (owner, thief) = (try ProofKey(), try ProofKey())
            let seen = try await home.provedTokenRequest(by: owner)
            let first = try await Self.exchange(try await Self.code(home), at: home, seen)
            let stolen = try #require(first.json["refresh_token"]?.string, "\(first.text)")
            for server in servers {
                for (client, proof, error) in [
                    ("bank-app", try await server.provedTokenRequest(by: thief), "invalid_grant"),
                    ("bank-app", [], "invalid_grant"), ("bank-app", seen, "invalid_dpop_proof"),
                    ("partner-app", try await server.provedTokenRequest(by: thief), "invalid_grant"),
                    ("partner-app", try await server.provedTokenRequest(by: owner), "invalid_grant"),
                    ("partner-app", [], "invalid_grant"),
                ] as [(String, [(String, String)], String)] {
                    let form = ServerFixture.refreshForm(stolen, attempt: nil, client: client)
                    let answer = try await Self.post("access_token", at: server, form, proof)
                    #expect(answer.status == 400 && answer.error == error, "\(client): \(answer.text)")
                    #expect(answer.json["access_token"] == nil)
                }
                let ended = try await Self.post(
                    "token/revoke", at: server, [("client_id", "partner-app"), ("token", stolen)])
                #expect(ended.status == 400 && ended.error == "invalid_grant", "\(ended.text)")
                #expect(try await Self.works(first.json["access_token"]?.string, of: owner, at: server))
            }
            let last = try #require(servers.last)
            let mine = try await Self.post(
                "access_token", at: last, ServerFixture.refreshForm(stolen, attempt: nil),
                try await last.provedTokenRequest(by: owner))
            #expect(mine.status == 200 && mine.json["token_type"]?.string == "DPoP", "\(mine.text)")
            for server in servers {
                #expect(try await Self.works(mine.json["access_token"]?.string, of: owner, at: server))
            }
        }
    }

    @Test(
        "A stolen code that belongs to a key, with its verifier: nobody but its owner gets tokens for it",
        arguments: Place.allCases)
    func code(_ place: Place) async throws {
        try await place.run { servers in
            let home = servers[0]
            let (owner, thief) = (try ProofKey(), try ProofKey())
            let stolen = try await Self.code(home, [("dpop_jkt", owner.thumbprint)])
            for server in servers {
                for (client, proof) in [
                    ("bank-app", try await server.provedTokenRequest(by: thief)), ("bank-app", []),
                    ("partner-app", try await server.provedTokenRequest(by: thief)),
                    ("partner-app", try await server.provedTokenRequest(by: owner)), ("partner-app", []),
                ] as [(String, [(String, String)])] {
                    let answer = try await Self.exchange(stolen, at: server, client: client, proof)
                    #expect(answer.status == 400 && answer.error == "invalid_grant", "\(client): \(answer.text)")
                    #expect(answer.json["access_token"] == nil)
                }
            }
            let last = try #require(servers.last)
            let mine = try await Self.exchange(stolen, at: last, try await last.provedTokenRequest(by: owner))
            #expect(mine.status == 200 && mine.json["token_type"]?.string == "DPoP", "\(mine.text)")
            #expect(try await Self.works(mine.json["access_token"]?.string, of: owner, at: home))
        }
    }

    @Test(
        "A stolen bound session: no door takes it, no client gets a code by it, and its owner goes on",
        arguments: Place.allCases)
    func session(_ place: Place) async throws {
        try await place.run { servers in
            let home = servers[0]
            for door in SessionDoor.allCases {
                let (owner, thief) = (try ProofKey(), try ProofKey())
                let session = try await home.boundSession(to: owner)
                let own = try await home.boundSession("ben", to: thief)
                let seen = try await home.proof(door.method, door.url(home), session: session, by: owner)
                let first = try await door.send(home, session, [seen])
                #expect(door.accepts(first), "\(door): \(first.status) \(first.text)")
                for server in servers {
                    let (method, url) = (door.method, door.url(server))
                    let byThief = try await server.proof(method, url, session: session, by: thief)
                    let ofOwn = try await server.proof(method, url, session: own, by: thief)
                    for fields in [[], [seen], [byThief], [ofOwn]] {
                        let answer = try await door.send(server, session, fields)
                        #expect(answer.status == 401, "\(door): \(answer.text)")
                    }
                    let client = try await server.authorize(session: session, [("client_id", "partner-app")])
                    #expect(client.status == 401 && client.parameter("code") == nil, "\(client.text)")
                    let mine = try await server.proof(method, url, session: session, by: owner)
                    let answer = try await door.send(server, session, [mine])
                    #expect(door.accepts(answer), "\(door): \(answer.status) \(answer.text)")
                }
            }
        }
    }

    @Test(
        "A stolen registration token: nobody but the installation reads, changes or ends its registration",
        arguments: Place.allCases)
    func registrationToken(_ place: Place) async throws {
        try await place.run(editing: { RegistrationDoor.file($0) }) { servers in
            let home = try await RegistrationDoor(servers[0])
            let (instance, thief) = (try await home.instance(), try await home.instance())
            let body = RegistrationDoor.repeated(instance)
            func seen(_ method: String, _ door: RegistrationDoor, _ proof: String) async throws -> Answer {
                try await door.fixture.send(
                    method, door.url(of: instance.id),
                    [
                        ("Authorization", "DPoP \(instance.token)"), ("DPoP", proof),
                        ("Content-Type", "application/json"),
                    ],
                    body: method == "PUT" ? JSONValue.object(body).serializedBytes() : nil)
            }
            for method in ["GET", "PUT", "DELETE"] {
                // What the owner has sent, where it does no harm to the test.
                let proof = try await home.proof(
                    method, home.url(of: instance.id), by: instance.key, token: instance.token)
                if method != "DELETE" { #expect(try await seen(method, home, proof).status == 200) }
                for door in servers.map(home.at) {
                    let sent = method == "PUT" ? body : nil
                    var answers = [
                        try await door.manage(method, instance, by: thief.key, body: sent),
                        try await door.manage(method, instance, by: try ProofKey(), body: sent),
                        try await door.manage(method, thief, token: instance.token, body: sent),
                        try await door.manage(method, instance, by: thief.key, token: thief.token, body: sent),
                        try await door.manage(method, instance, id: thief.id, body: sent),
                    ]
                    answers.append(
                        try await door.fixture.send(
                            method, door.url(of: instance.id), ServerFixture.bearer(instance.token)))
                    for answer in answers {
                        #expect(answer.status == 401 && answer.error == "invalid_token", "\(method): \(answer.text)")
                    }
                    guard method != "DELETE" else { continue }
                    let again = try await seen(method, door, proof)
                    #expect(again.status == 401 && again.error == "invalid_dpop_proof", "\(method): \(again.text)")
                    #expect(try await door.manage(method, instance, body: sent).status == 200)
                }
            }
            for door in servers.map(home.at) {
                #expect(try await door.ownToken(instance.id, by: thief.key).error == "invalid_client")
                #expect(try await door.ownToken(instance.id, by: instance.key).status == 200)
            }
            let last = home.at(try #require(servers.last))
            #expect(try await last.manage("DELETE", instance).status == 204)
            #expect(try await home.manage("GET", instance).status == 401)
            #expect(try await home.manage("GET", thief).status == 200)
        }
    }
}
