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

        /// Runs `body` with the servers; the owner is at the first one. With a change to the file of each.
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
        "A stolen registration token: nobody but its owner sees, changes or ends the registration",
        arguments: Place.allCases)
    func registrationToken(_ place: Place) async throws {
        try await place.run(editing: { RegistrationDoor.file($0) }) { servers in
            let door = try await RegistrationDoor(servers[0])
            let (owner, thief) = (try await door.instance(), try await door.instance())
            for (method, accepted) in [("GET", 200), ("PUT", 200), ("DELETE", 204)] {
                let body = method == "PUT" ? RegistrationDoor.repeated(owner) : nil
                // What the owner has sent, and the thief has seen. Another method's proof is all there is of DELETE.
                let shown = method == "DELETE" ? "GET" : method
                let seen = try await door.proof(shown, door.url(of: owner.id), by: owner.key, token: owner.token)
                let first = try await door.manage(shown, owner, body: body, proofs: [seen])
                #expect(first.status == 200, "\(method): \(first.text)")
                for server in servers {
                    // Another key; another client with its own token, or at its own address; no key at all.
                    let token = [
                        try await door.manage(method, owner, by: try ProofKey(), body: body, on: server),
                        try await door.manage(method, owner, by: thief.key, body: body, on: server),
                        try await door.manage(method, owner, by: thief.key, token: thief.token, body: body, on: server),
                        try await door.manage(
                            method, owner, by: thief.key, id: thief.id,
                            body: body == nil ? nil : RegistrationDoor.repeated(thief), on: server),
                    ]
                    let proof = [
                        try await door.manage(method, owner, body: body, proofs: [], on: server),
                        try await door.manage(method, owner, body: body, proofs: [seen], on: server),
                    ]
                    for (answers, error) in [(token, "invalid_token"), (proof, "invalid_dpop_proof")] {
                        for (index, answer) in answers.enumerated() {
                            let what = "\(method) \(error) \(index): \(answer.status) \(answer.text)"
                            #expect(answer.status == 401 && answer.error == error, "\(what)")
                        }
                    }
                    guard method != "DELETE" else { continue }
                    let mine = try await door.manage(method, owner, body: body, on: server)
                    #expect(mine.status == accepted && mine.json["jwks"] == owner.metadata["jwks"], "\(mine.text)")
                }
                guard method == "DELETE" else { continue }
                #expect(try await door.ownToken(owner.id, by: owner.key).status == 200)
                let ended = try await door.manage(method, owner, on: servers.last)
                #expect(ended.status == accepted, "\(ended.text)")
                #expect(try await door.manage("GET", thief, on: servers.last).status == 200)
            }
        }
    }
}
