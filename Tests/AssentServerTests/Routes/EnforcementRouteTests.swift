import AssentCore
import AssentEnforcement
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("A gateway elsewhere asks over HTTP", .server, .serialized)
struct EnforcementRouteTests {
    private static let origin = "https://localhost:9543"
    private static let transfer = Array(FixtureBody.transfer.utf8)

    @Test("A payment: the body is asked for, a transaction is made, taken by the digest, and its outcome heard")
    func story() async throws {
        let door = try await EnforcementDoor(try #require(ServerFixture.shared), "edge")
        let ana = try await door.fixture.session("ana")
        var question = door.question("POST", "/nods", session: ana)
        #expect(try await door.ask(question) == .needBody(.whole, limit: 4096))
        question.content = .whole(Self.transfer)
        guard case .advised(let advised) = try await door.ask(question), let id = advised.advice.transactionID else {
            throw EngineError(.internalFailure, "there is no advice")
        }
        #expect(!advised.hasToken && advised.acrValues.isEmpty)
        #expect(try await door.fixture.approve(id, session: ana).status == 200)

        question = door.question("POST", "/nods", session: ana)
        question.transaction = id
        #expect(try await door.ask(question) == .needBody(.digest, limit: 4096))
        question.content = .digest(SHA2.sha256(Self.transfer))
        question.claims = ["email"]
        for _ in 1...2 {
            guard case .granted(let grant) = try await door.ask(question) else {
                throw EngineError(.internalFailure, "it was not granted")
            }
            #expect(grant.transaction == id && grant.keepSeconds == 0)
            #expect(grant.user?.name == "ana" && grant.user?.claims == ["email": "ana@bank.example"])
        }
        var other = question
        other.attempt = SystemRandom().token(byteCount: 16)
        #expect(
            try await door.ask(other) == .alreadyTaken(transaction: id, outcome: .forwarded, newNonce: nil))
        for (attempt, status) in [(other.attempt, 404), (question.attempt, 200), (question.attempt, 200)] {
            let statement = OutcomeStatement(transaction: id, attempt: attempt, outcome: .answered(status: 201))
            #expect(try await door.send("outcome", statement.json).status == status)
        }
        let late = OutcomeStatement(transaction: id, attempt: question.attempt, outcome: .unknown)
        #expect(try await door.send("outcome", late.json).status == 409)
        #expect(
            try await door.ask(other)
                == .alreadyTaken(transaction: id, outcome: .answered(status: 201), newNonce: nil))
    }

    @Test("A question that took a transaction is answered again as it was, to its own client alone, for half a minute")
    func repeated() async throws {
        try await ServerFixture.run { fixture in
            let door = try await EnforcementDoor(fixture, "edge")
            let branch = try await EnforcementDoor(fixture, "edge-two")
            let ana = try await fixture.session("ana")
            var question = door.question("POST", "/nods", session: ana)
            question.content = .whole(Self.transfer)
            guard case .advised(let advised) = try await door.ask(question), let id = advised.advice.transactionID
            else {
                throw EngineError(.internalFailure, "there is no advice")
            }
            #expect(try await fixture.approve(id, session: ana).status == 200)
            question = door.question("POST", "/nods", session: ana)
            question.transaction = id
            question.content = .digest(SHA2.sha256(Self.transfer))
            let granted = try await door.ask(question)
            guard case .granted(let grant) = granted, grant.transaction == id else {
                throw EngineError(.internalFailure, "it was not granted")
            }
            let taken = EnforcementAnswer.alreadyTaken(transaction: id, outcome: .forwarded, newNonce: nil)
            // Another group has not asked for it, whatever attempt it names.
            #expect(try await branch.ask(question) == .denied(.init(.forbidden)))
            var body = question
            body.content = .digest(SHA2.sha256([1]))
            #expect(try await door.ask(body) == .denied(.init(.forbidden)))
            var more = question
            more.claims = ["email"]
            #expect(try await door.ask(more) == taken)
            let statement = OutcomeStatement(
                transaction: id, attempt: question.attempt, outcome: .answered(status: 201))
            #expect(try await branch.send("outcome", statement.json).status == 404)
            for seconds in [0.0, 30] {
                fixture.clock.advance(by: seconds)
                #expect(try await door.ask(question) == granted, "\(seconds)")
            }
            fixture.clock.advance(by: 1)
            #expect(try await door.ask(question) == taken)
            #expect(try await door.send("outcome", statement.json).status == 200)
        }
    }

    @Test("A question about what the group may not ask is refused, and so is one for an origin that is not its own")
    func group() async throws {
        let fixture = try #require(ServerFixture.shared)
        let door = try await EnforcementDoor(fixture, "edge")
        let usual = door.question("GET", "/accounts", session: try await fixture.session("ana"))
        guard case .granted = try await door.ask(usual) else {
            throw EngineError(.internalFailure, "the control was not granted")
        }
        var changes: [(String, EnforcementQuestion)] = []
        for (code, change) in [
            ("enforcementPolicySet", { $0.policySet = "rest" }), ("enforcementPolicySet", { $0.policySet = "none" }),
            ("enforcementOrigin", { $0.resource = "https://localhost:9444/accounts" }),
            ("enforcementOrigin", { $0.resource = "https://bank.example/accounts" }),
            ("enforcementOrigin", { $0.credentials.proofURL = "https://localhost/accounts" }),
            ("enforcementOrigin", { $0.identity = .init(audience: "a", issuer: "https://bank.example") }),
        ] as [(String, (inout EnforcementQuestion) -> Void)] {
            var question = usual
            change(&question)
            changes.append((code, question))
        }
        for (code, question) in changes {
            let reply = try await door.send("decide", question.json)
            #expect(reply.status == 403 && reply.json["code"]?.string == code)
        }
        // Another group has other rights.
        let branch = try await EnforcementDoor(fixture, "edge-two")
        var rest = usual
        rest.policySet = "rest"
        guard case .denied = try await branch.ask(rest) else {
            throw EngineError(.internalFailure, "the other group may not ask")
        }
    }

    @Test("Only a client of a group, by a token with the scope, is answered")
    func callers() async throws {
        let fixture = try #require(ServerFixture.shared)
        let ana = try await fixture.session("ana")
        let door = try await EnforcementDoor(fixture, "edge")
        let question = door.question("GET", "/accounts", session: ana).json
        let without = try await EnforcementDoor(fixture, "edge", scope: "accounts")
        #expect(try await without.send("decide", question).status == 403)
        #expect(try await EnforcementDoor(fixture, "edge-free").send("decide", question).status == 403)
        let user = try await fixture.tokens(session: ana).access
        #expect(try await door.send("decide", question, ServerFixture.bearer(user)).status == 403)
        for fields in [[], ServerFixture.session(ana), ServerFixture.bearer("x")] {
            let reply = try await door.send("decide", question, fields)
            #expect(reply.status == 401 && reply["WWW-Authenticate"] != nil)
        }
        let elsewhere = fixture.server("/enforcement/realms/root/realms/beta/decide")
        let fields = [("Content-Type", "application/json")] + ServerFixture.bearer(door.token)
        #expect(try await fixture.send("POST", elsewhere, fields, text: question.serialized()).status == 404)
        #expect(try await door.send("decide", question).status == 200)
        let short = fixture.server("/enforcement/alpha/decide")
        #expect(try await fixture.send("POST", short, fields, text: question.serialized()).status == 200)
    }

    @Test("A token of the gateway's that belongs to a key needs a proof for this very call")
    func ownProof() async throws {
        try await ServerFixture.run { fixture in
            let key = try ProofKey()
            let ana = try await fixture.session("ana")
            let door = try await EnforcementDoor(fixture, "edge")
            let url = fixture.server("/enforcement/realms/root/realms/alpha/decide")
            let token = try await fixture.boundToken(ofClient: "edge", scope: "enforcement", to: key)
            let question = door.question("GET", "/accounts", session: ana).json
            #expect(try await door.send("decide", question, ServerFixture.bearer(token)).status == 401)
            let other = try await fixture.proved("POST", url + "x", token: token, by: key)
            #expect(try await door.send("decide", question, other).status == 401)
            let right = try await fixture.proved("POST", url, token: token, by: key)
            #expect(try await door.send("decide", question, right).status == 200)
            #expect(try await door.send("decide", question, right).status == 401)
        }
    }

    @Test("A message that is too large, not JSON, or has members of another kind is refused before anybody is asked")
    func malformed() async throws {
        let fixture = try #require(ServerFixture.shared)
        let door = try await EnforcementDoor(fixture, "edge")
        var question = door.question("POST", "/nods", session: try await fixture.session("ana"))
        // Ten MiB are refused by their announcement, unread.
        let large = try await fixture.raw(
            "POST /am/enforcement/realms/root/realms/alpha/decide HTTP/1.1\r\nHost: localhost\r\n"
                + "Authorization: Bearer \(door.token)\r\nContent-Type: application/json\r\n"
                + "Content-Length: \(10 << 20)\r\n\r\n", toGateway: false)
        #expect(large.hasPrefix("HTTP/1.1 413 "))
        // What fits into the message need not fit into the group's body.
        question.content = .whole([UInt8](repeating: 0x20, count: 4097))
        #expect(try await door.send("decide", question.json).status == 413)
        question.content = .unread
        var unknown = try #require(question.json.object)
        unknown["role"] = "admin"
        var kinds = question
        kinds.requirement.kinds = ["everybody"]
        var claims = question
        claims.claims = ["password"]
        var issuer = question
        issuer.identity = .init(audience: "a", issuer: Self.origin + "/another")
        var address = question
        address.address = "localhost"
        var resource = question
        resource.resource = Self.origin + "/a/../b"
        let messages: [JSONValue] = [
            .object(unknown), kinds.json, claims.json, issuer.json, address.json, resource.json, [], [:],
        ]
        for message in messages {
            let reply = try await door.send("decide", message)
            #expect(reply.status == 400, "\(message.serialized().prefix(80)): \(reply.text)")
        }
        let fields = ServerFixture.bearer(door.token)
        let url = fixture.server("/enforcement/realms/root/realms/alpha/decide")
        for (type, text, status) in [
            ("application/json", "{", 400), ("application/json", "", 400), ("text/plain", "{}", 415),
            ("application/json", #"{"policySet":"bank","policySet":"rest"}"#, 400),
        ] {
            let reply = try await fixture.send("POST", url, [("Content-Type", type)] + fields, text: text)
            #expect(reply.status == status, "\(text)")
        }
        for outcome: JSONValue in [["state": "taken"], ["state": "answered"], "answered", .null] {
            let message: JSONValue = ["transaction": "t", "attempt": .string(question.attempt), "outcome": outcome]
            #expect(try await door.send("outcome", message).status == 400)
        }
    }

    @Test("The client's address and its own credentials decide, not those of the gateway")
    func clientsOwn() async throws {
        let fixture = try #require(ServerFixture.shared)
        let door = try await EnforcementDoor(fixture, "edge")
        let ana = try await fixture.session("ana")
        var inside = door.question("GET", "/inside", session: ana)
        for (address, isGranted) in [("127.0.0.1", true), ("192.0.2.1", false), (nil, false)] as [(String?, Bool)] {
            inside.address = address
            inside.attempt = SystemRandom().token(byteCount: 16)
            var granted = false
            if case .granted = try await door.ask(inside) { granted = true }
            #expect(granted == isGranted, "\(address ?? "-")")
        }
        #expect(try await door.ask(door.question("GET", "/accounts", session: nil)) == .denied(.init(.noSession)))
        var token = door.question("GET", "/accounts", session: nil)
        token.credentials.authorization = [Secret("Bearer x")]
        guard case .refused(.token(let scheme, let error, _, _)) = try await door.ask(token) else {
            throw EngineError(.internalFailure, "a bad token was not refused")
        }
        #expect(scheme == .bearer && error == "invalid_token")
        let good = try await fixture.tokens(session: ana).access
        token.credentials.authorization = [Secret("Bearer \(good)")]
        guard case .granted(let grant) = try await door.ask(token) else {
            throw EngineError(.internalFailure, "a good token was refused")
        }
        #expect(grant.user?.name == "ana" && (1...60).contains(grant.keepSeconds))
        var cookie = door.question("GET", "/accounts", session: ana)
        cookie.credentials.isCookie = true
        #expect(try await door.ask(cookie) == .refused(.cookie))
    }
}

/// Asks as the gateway of a client does.
struct EnforcementDoor {
    let fixture: ServerFixture
    let token: String

    init(_ fixture: ServerFixture, _ client: String, scope: String = "enforcement") async throws {
        self.fixture = fixture
        let basic = Data("\(client):\(FixtureConfiguration.clientSecret)".utf8).base64EncodedString()
        let reply = try await fixture.send(
            "POST", fixture.oauth("access_token"),
            [("Content-Type", "application/x-www-form-urlencoded"), ("Authorization", "Basic \(basic)")],
            text: ServerFixture.query([("grant_type", "client_credentials"), ("scope", scope)]))
        token = try #require(reply.json["access_token"]?.string, "\(reply.text)")
    }

    /// A question about a request to a gateway at `https://localhost:9543`.
    func question(_ method: String, _ target: String, session: String?) -> EnforcementQuestion {
        let url = "https://localhost:9543" + target
        var credentials = EnforcementQuestion.Credentials(proofURL: url)
        credentials.session = session.map { Secret($0) }
        var requirement = EnforcementQuestion.Requirement()
        requirement.kinds = ["user"]
        requirement.includesIssuer = true
        var question = EnforcementQuestion(
            policySet: "bank", resource: url, method: method, credentials: credentials, requirement: requirement,
            attempt: SystemRandom().token(byteCount: 16))
        question.contentType = method == "POST" ? "application/json" : nil
        return question
    }

    func send(_ path: String, _ message: JSONValue, _ fields: [(String, String)]? = nil) async throws -> Answer {
        try await fixture.send(
            "POST", fixture.server("/enforcement/realms/root/realms/alpha/\(path)"),
            [("Content-Type", "application/json")] + (fields ?? ServerFixture.bearer(token)),
            text: message.serialized())
    }

    func ask(_ question: EnforcementQuestion) async throws -> EnforcementAnswer {
        let reply = try await send("decide", question.json)
        #expect(reply.status == 200, "\(reply.text)")
        return try EnforcementAnswer(json: reply.json, to: question.attempt)
    }
}
