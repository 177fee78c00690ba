import AssentCore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

/// The doors of docs/resources.md, asked over HTTP: what a server answers, in the words of the table.
struct KindDoors: Sendable {
    let door: RegistrationDoor
    let caller: KindCredentials

    private var fixture: ServerFixture { door.fixture }

    typealias Question = @Sendable (KindDoors) async throws -> String

    /// What is asked at the door of each row, in the order of the page.
    static let questions: [(row: String, question: Question)] = [
        ("route, default", { try await $0.route("/accounts", denied: "/nowhere") }),
        ("route that names the kind", { try await $0.namedRoute() }),
        ("public route", { try await $0.publicRoute() }),
        ("advice, step-up, transaction", { try await $0.furtherSignIn() }),
        ("userinfo", { try await $0.userInfo() }),
        ("subject of policies over REST", { try await $0.policySubject() }),
        ("own session read, ended (/json/sessions)", { try await $0.ownSession() }),
        ("consents, invites, containers, evidence", { try await $0.account() }),
        ("administration, audit", { try await $0.administration() }),
        ("refresh, exchange, native step-up, code for another client", { try await $0.renewal() }),
        ("approving (CIBA, device grant, transactions)", { try await $0.approving() }),
        ("web link", { try await $0.webLink() }),
        ("relying party's signing transactions", { try await $0.relyingParty() }),
        ("introspected, revoked by its client", { try await $0.tokenStatus() }),
    ]

    /// What an answer is in the words of the table. A refused kind is 403 `token_kind` without a challenge; a policy
    /// that wants more than a client has refuses without that name.
    private func word(_ answer: Answer, accepted: Set<Int> = [200], isNamed: Bool = true) -> String {
        if accepted.contains(answer.status) { return "yes" }
        if answer.status == 403, isNamed {
            #expect(answer.text.contains("token_kind"), "\(caller.kind): \(answer.text)")
            #expect(answer["WWW-Authenticate"] == nil, "\(answer.text)")
        }
        return "\(answer.status)"
    }

    /// The one word that several answers are; all of them where they differ.
    private func one(_ words: [String]) -> String {
        Set(words).count == 1 ? words[0] : words.joined(separator: " and ")
    }

    private func get(_ url: String) async throws -> [Answer] {
        var answers: [Answer] = []
        for fields in try await caller.ways(fixture, "GET", url) {
            answers.append(try await fixture.send("GET", url, fields))
        }
        return answers
    }

    // MARK: - Routes

    /// A route that lets in whom its policies let in: the one path is allowed, the other one is not.
    private func route(_ path: String, denied: String) async throws -> String {
        let words = try await get(fixture.gateway(path)).map { word($0) }
        guard Set(words) == ["yes"] else { return one(words) }
        for answer in try await get(fixture.gateway(denied)) {
            #expect(answer.status == 403 && !answer.text.contains("token_kind"), "\(answer.text)")
        }
        return "policies"
    }

    private func namedRoute() async throws -> String {
        // Nobody can be named.
        guard caller.kind != .nobody else { return "–" }
        for other in KindColumn.allCases where other != caller.kind && other != .nobody {
            for answer in try await get(fixture.gateway("/only-\(other.rawValue)/open")) {
                #expect(word(answer) == "403", "\(caller.kind) at the route for \(other)")
            }
        }
        return try await route("/only-\(caller.kind.rawValue)/open", denied: "/only-\(caller.kind.rawValue)/shut")
    }

    private func publicRoute() async throws -> String {
        let before = fixture.upstream.requests.count
        let words = try await get(fixture.gateway("/open")).map { word($0) }
        let seen = fixture.upstream.requests.dropFirst(before)
        #expect(seen.count == words.count)
        for name in ["X-Remote-User", "Authorization", "DPoP", ServerFixture.cookieName] {
            #expect(seen.allSatisfy { $0.values(name).isEmpty }, "\(name)")
        }
        return one(words)
    }

    /// Who is not a user is told to do nothing more, at a route that does not take them and at one that does.
    private func furtherSignIn() async throws -> String {
        let before = fixture.upstream.requests.count
        var words: [String] = []
        for path in ["/nods", "/every/pay", "/every/strong"] {
            let url = fixture.gateway(path)
            for fields in try await caller.ways(fixture, "POST", url) {
                let answer = try await fixture.send(
                    "POST", url, ServerFixture.jsonFields + fields, text: FixtureBody.transfer)
                let isAdvised = answer["WWW-Authenticate"]?.contains("advices=") == true
                #expect(isAdvised == (caller.kind == .user), "\(answer.text)")
                let isPolicy = path != "/nods" && [.device, .client].contains(caller.kind)
                words.append(isAdvised ? "yes" : word(answer, isNamed: !isPolicy))
            }
        }
        if caller.session != nil {
            let address = fixture.json("authenticate")
            let answer = try await fixture.send(
                "POST", address + "?" + ServerFixture.query(ServerFixture.service("Login")),
                try await caller.bySession(fixture, "POST", address))
            words.append(answer.json["authId"] == nil ? word(answer, accepted: []) : "yes")
        }
        #expect(fixture.upstream.requests.count == before)
        return one(words)
    }

    // MARK: - The server

    private func userInfo() async throws -> String {
        let url = fixture.oauth("userinfo")
        return word(try await fixture.send("GET", url, try await caller.byToken(fixture, "GET", url)))
    }

    private static let see = "https://bank.example:443/see"

    /// Whether a decision is made for the caller, who asks by what it has, and about whom an enforcement point asks.
    private func policySubject() async throws -> String {
        let url = fixture.json("policies?_action=evaluate")
        var asking = [try await caller.byToken(fixture, "POST", url)]
        if caller.session != nil { asking = [try await caller.bySession(fixture, "POST", url)] }
        let question: JSONObject = ["resources": [.string(Self.see)], "application": "rest"]
        var words: [String] = []
        for fields in asking {
            words.append(
                decided(
                    try await fixture.send(
                        "POST", url, [KindCredentials.json] + fields, body: JSONValue.object(question).serializedBytes()
                    )))
        }
        // Nobody else is told anything of a session that belongs to a key.
        if caller.session == nil || caller.instance == nil, let named = caller.session ?? caller.access {
            var about = question
            about["subject"] = ["ssoToken": .string(named)]
            let point = ServerFixture.session(try await fixture.session("pat"))
            words.append(
                decided(
                    try await fixture.send(
                        "POST", url, [KindCredentials.json] + point, body: JSONValue.object(about).serializedBytes())))
        }
        return one(words)
    }

    private func decided(_ answer: Answer) -> String {
        answer.json.array?.first?["actions"]?["GET"] == true ? "yes" : "no"
    }

    private func ownSession() async throws -> String {
        var fields: [(String, String)] = []
        func ask(_ action: String) async throws -> Answer {
            let url = fixture.json("sessions?_action=\(action)")
            fields = try await caller.byToken(fixture, "POST", url)
            if caller.session != nil { fields = try await caller.bySession(fixture, "POST", url) }
            return try await fixture.send("POST", url, [KindCredentials.json] + fields, text: "{}")
        }
        let words = [word(try await ask("getSessionInfo")), word(try await ask("logout"))]
        guard let session = caller.session else {
            // Nobody is told to sign in. A token is not a session.
            return caller.kind == .nobody ? one(words) : words == ["401", "401"] ? "–" : one(words)
        }
        let isAlive = try await Sessions(fixture.server.context).live(token: Secret(session)) != nil
        #expect(isAlive == (words != ["yes", "yes"]))
        return words == ["403", "403"] ? "–" : one(words)
    }

    private func account() async throws -> String {
        var requests: [(method: String, url: String, accepted: Int)] = [
            ("GET", fixture.json("consents"), 200), ("POST", fixture.signing("invites"), 201),
            ("GET", fixture.signing("containers"), 200),
        ]
        // A client's own token makes its bearer a relying party there.
        if caller.kind != .client { requests.append(("GET", fixture.signing("transactions/x/evidence"), 404)) }
        var words: [String] = []
        for request in requests {
            var ways = try await caller.ways(fixture, request.method, request.url)
            // These doors take a user's session, and no token.
            if caller.kind == .user { ways.removeFirst() }
            for fields in ways {
                let isPost = request.method == "POST"
                let answer = try await fixture.send(
                    request.method, request.url, (isPost ? [KindCredentials.json] : []) + fields,
                    body: isPost ? Array("{}".utf8) : nil)
                words.append(word(answer, accepted: [request.accepted]))
            }
        }
        return one(words)
    }

    private func administration() async throws -> String {
        let list = fixture.json("administration?_action=listRegistrations")
        let audit = fixture.json("audit")
        func asked(_ fields: (String, String) async throws -> [(String, String)]) async throws -> [Answer] {
            [
                try await fixture.send(
                    "POST", list, [KindCredentials.json] + fields("POST", list), text: #"{"app":"pay"}"#),
                try await fixture.send("GET", audit, fields("GET", audit)),
            ]
        }
        guard caller.session != nil else {
            return one(try await asked { try await caller.byToken(fixture, $0, $1) }.map { word($0) })
        }
        let words = try await asked { try await caller.bySession(fixture, $0, $1) }.map { word($0) }
        guard words == ["yes", "yes"] else { return one(words) }
        // Ana has the role. Ben has not, and is told so.
        let ben = ServerFixture.session(try await fixture.session("ben"))
        for answer in try await asked({ _, _ in ben }) {
            #expect(answer.status == 403 && !answer.text.contains("token_kind"), "\(answer.text)")
        }
        return "role"
    }

    // MARK: - More credentials, and what becomes of them

    private func renewal() async throws -> String {
        guard caller.kind != .nobody else { return "–" }
        // Who gets no refresh token has nothing better to offer than the access token.
        let offered = try #require(caller.refresh ?? caller.access)
        var client = [("client_id", "bank-app")]
        var fields = [KindCredentials.form]
        if let instance = caller.instance { client = try await door.assertion(instance.id, by: instance.key) }
        if caller.kind == .client {
            client = []
            fields.append(KindCredentials.basic("jobs"))
        }
        let renewed = try await fixture.send(
            "POST", fixture.oauth("access_token"), fields,
            text: ServerFixture.query([("grant_type", "refresh_token"), ("refresh_token", offered)] + client))
        #expect((renewed.status == 200) == (renewed.json["access_token"] != nil))
        let address = fixture.oauth("authorize")
        let own = try await caller.bySession(fixture, "GET", address)
        let code = try await fixture.send(
            "GET",
            address + "?"
                + ServerFixture.query([
                    ("response_type", "code"), ("client_id", "partner-app"), ("state", "s"), ("scope", "openid"),
                    ("redirect_uri", "http://127.0.0.1/callback"), ("prompt", "none"),
                    ("code_challenge_method", "S256"),
                    ("code_challenge", Base64URL.encode([UInt8](repeating: 7, count: 32))),
                ]), own.isEmpty ? caller.access.map(ServerFixture.bearer) ?? [] : own)
        let words = [renewed.status == 200, code.parameter("code") != nil].map { $0 ? "yes" : "no" }
        return one(words)
    }

    /// A transaction of a session that has turned into one of the caller's kind since.
    private func approving() async throws -> String {
        guard caller.kind != .nobody else { return "–" }
        let isBound = caller.session != nil && caller.instance != nil
        let session =
            if isBound, let key = caller.instance?.key {
                try await fixture.boundSession(to: key)
            } else {
                try await fixture.session("ana")
            }
        func fields(_ url: String) async throws -> [(String, String)] {
            isBound
                ? try await caller.bySession(fixture, "POST", url, other: session) : ServerFixture.session(session)
        }
        let nods = fixture.gateway("/nods")
        let id = try ServerFixture.transactionID(
            try await fixture.send(
                "POST", nods, ServerFixture.jsonFields + (try await fields(nods)), text: FixtureBody.transfer))
        if let kind = caller.kind.session { try await fixture.turn(session, into: kind) }
        let address = fixture.json("authenticate")
        func ask(_ query: String, _ body: [UInt8]?) async throws -> Answer {
            var sent = body == nil ? [] : [KindCredentials.json]
            sent += try await fields(address)
            if caller.session == nil { sent = try await caller.byToken(fixture, "POST", address) }
            return try await fixture.send("POST", address + query, sent, body: body)
        }
        var answer = try await ask("?" + ServerFixture.query(ServerFixture.approval(id)), nil)
        if answer.json["authId"] != nil {
            let filled = ServerFixture.filled(answer.json) { $0 == "ConfirmationCallback" ? 0 : nil }
            answer = try await ask("", filled.serializedBytes())
        }
        return answer.json["tokenId"] == nil ? "no" : "yes"
    }

    private func webLink() async throws -> String {
        let url = fixture.oauth("web_link")
        var fields = try await caller.byToken(fixture, "POST", url)
        if [.user, .implicit].contains(caller.kind), let kind = caller.kind.session {
            // Links belong to apps, and so does the token that asks for one.
            let session = try await fixture.session("ana")
            let token = try await WebLinkDoor.userToken(door, try await door.instance(), session: session)
            try await fixture.turn(session, into: kind)
            fields = ServerFixture.bearer(token)
        }
        let answer = try await fixture.send(
            "POST", url, fields + [KindCredentials.form], text: ServerFixture.query([("target", WebLinkDoor.target)]))
        #expect((answer.status == 200) == (answer.json["url"] != nil), "\(answer.text)")
        return word(answer)
    }

    private func relyingParty() async throws -> String {
        let shop = try await SigningOverHTTP(fixture).shop()
        var words: [String] = []
        for path in ["transactions/x", "transactions/x/evidence"] {
            let url = fixture.signing(path)
            let answer = try await fixture.send("GET", url, try await caller.byToken(fixture, "GET", url))
            guard caller.kind == .client else {
                words.append(word(answer, accepted: [404]))
                continue
            }
            // The client `jobs` has not the scope, and `shop` has.
            #expect(answer.status == 401, "\(answer.text)")
            let control = try await fixture.send("GET", url, ServerFixture.bearer(shop))
            words.append(control.status == 404 ? "scope" : "no")
        }
        return one(words)
    }

    private func tokenStatus() async throws -> String {
        guard let access = caller.access else { return "–" }
        func active() async throws -> JSONValue {
            try await fixture.send(
                "POST", fixture.oauth("introspect"), [KindCredentials.form, KindCredentials.basic("back-office")],
                text: ServerFixture.query([("token", access)])
            ).json
        }
        let before = try await active()
        #expect(before["assent_kind"]?.string == caller.kind.rawValue, "\(before)")
        var form = [("token", access)]
        var fields = [KindCredentials.form]
        switch caller.kind {
        case .device, .stateless:
            let instance = try #require(caller.instance)
            form += try await door.assertion(instance.id, by: instance.key)
        case .client: fields.append(KindCredentials.basic("jobs"))
        default: form.append(("client_id", "bank-app"))
        }
        // Another client cannot.
        let foreign = try await fixture.send(
            "POST", fixture.oauth("token/revoke"), [KindCredentials.form, KindCredentials.basic("back-office")],
            text: ServerFixture.query([("token", access)]))
        #expect(foreign.status == 400 && foreign.error == "invalid_grant")
        let revoked = try await fixture.send(
            "POST", fixture.oauth("token/revoke"), fields, text: ServerFixture.query(form))
        let isGone = try await active()["active"] == false
        return before["active"] == true && revoked.status == 200 && isGone ? "yes" : "no"
    }
}
