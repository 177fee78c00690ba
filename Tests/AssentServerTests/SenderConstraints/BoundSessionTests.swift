import AssentCore
import AssentStore
import AssentTesting
import InMemoryLogging
import Testing

@testable import AssentEngine
@testable import AssentServer

/// A way to use a session, in tests of what proves its key: each succeeds with a live session alone.
enum SessionDoor: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case info, consents, authorize, stepUp, signing, administration, policies, page, gateway, constrained

    var testDescription: String { rawValue }

    /// The method.
    var method: String { [.info, .stepUp, .administration, .policies].contains(self) ? "POST" : "GET" }

    /// The address.
    func url(_ fixture: ServerFixture) -> String {
        switch self {
        case .info: fixture.json("sessions?_action=getSessionInfo")
        case .consents: fixture.json("consents")
        case .authorize:
            fixture.oauth("authorize") + "?"
                + ServerFixture.query([
                    ("response_type", "code"), ("client_id", "bank-app"), ("redirect_uri", "http://127.0.0.1/callback"),
                    ("scope", "openid"), ("code_challenge_method", "S256"),
                    ("code_challenge", Base64URL.encode([UInt8](repeating: 7, count: 32))),
                ])
        case .stepUp: fixture.json("authenticate") + "?ForceAuth=true&authIndexType=service&authIndexValue=Login"
        case .signing: fixture.signing("containers")
        case .administration: fixture.json("administration?_action=listUsers")
        case .policies: fixture.json("policies?_action=evaluate")
        case .page: fixture.server("/UI/Login?realm=/alpha")
        case .gateway: fixture.gateway("/accounts")
        case .constrained: fixture.gateway("/files/keyed/a")
        }
    }

    /// What is sent.
    var body: String {
        self == .policies ? #"{"resources":["https://bank.example:443/see"],"application":"rest"}"# : ""
    }

    /// The fields by which a session is presented here.
    func session(_ token: String) -> [(String, String)] {
        self == .page ? [("Cookie", "\(ServerFixture.cookieName)=\(token)")] : ServerFixture.session(token)
    }

    /// Whether an answer shows that the session was accepted.
    func accepts(_ answer: Answer) -> Bool {
        switch self {
        case .authorize: answer.status == 302 && answer.parameter("code") != nil
        // Ana is not an administrator.
        case .administration: answer.status == 403
        case .page: answer.status == 200 && answer.text.contains("signout")
        default: answer.status == 200
        }
    }

    /// Sends a request with a session and these fields.
    func send(_ fixture: ServerFixture, _ session: String, _ fields: [(String, String)]) async throws -> Answer {
        let type = method == "POST" ? [("Content-Type", "application/json")] : []
        return try await fixture.send(
            method, url(fixture), self.session(session) + type + fields, text: body)
    }
}

@Suite("Sessions that belong to a key", .server)
struct BoundSessionTests {
    @Test(
        "A stolen session is refused from another key, and as it is, at every door, and its owner goes on",
        arguments: SessionDoor.allCases)
    func theft(_ door: SessionDoor) async throws {
        let fixture = try #require(ServerFixture.shared)
        let (owner, thief) = (try ProofKey(), try ProofKey())
        let session = try await fixture.boundSession(to: owner)
        let own = try await fixture.boundSession("ben", to: thief)
        func proof(_ key: ProofKey, of token: String?) async throws -> [(String, String)] {
            [try await fixture.proof(door.method, door.url(fixture), session: token, by: key)]
        }
        let seen = try await proof(owner, of: session)
        let first = try await door.send(fixture, session, seen)
        #expect(door.accepts(first), "\(door): \(first.status) \(first.text)")
        for fields in [
            seen, [], try await proof(thief, of: session), try await proof(thief, of: own),
            try await proof(owner, of: nil), try await proof(thief, of: nil),
            try await proof(owner, of: session) + proof(owner, of: session),
        ] {
            let answer = try await door.send(fixture, session, fields)
            #expect(answer.status == 401, "\(door): \(answer.text)")
            #expect(try answer.tokenChallenge?["error"] == "invalid_dpop_proof", "\(door)")
            #expect(try answer.tokenChallenge?["algs"] == "ES256 ES384 PS256 EdDSA")
        }
        let mine = try await door.send(fixture, session, proof(owner, of: session))
        #expect(door.accepts(mine), "\(door): \(mine.status) \(mine.text)")
    }

    @Test("A proof of a session is for one method and one address", arguments: SessionDoor.allCases)
    func otherRequest(_ door: SessionDoor) async throws {
        let fixture = try #require(ServerFixture.shared)
        let key = try ProofKey()
        let session = try await fixture.boundSession(to: key)
        let url = door.url(fixture)
        for (method, url) in [
            (door.method == "GET" ? "POST" : "GET", url), (door.method, fixture.json("nothing")),
            (door.method, fixture.gateway("/nothing")),
        ] {
            let answer = try await door.send(
                fixture, session, [try await fixture.proof(method, url, session: session, by: key)])
            #expect(answer.status == 401, "\(door): \(answer.text)")
        }
        // A bit of the signature.
        var (name, proof) = try await fixture.proof(door.method, url, session: session, by: key)
        let last = proof.removeLast()
        proof.append(last == "A" ? "Q" : "A")
        #expect(try await door.send(fixture, session, [(name, proof)]).status == 401)
        name = "Dpop"
        let right = try await fixture.proof(door.method, url, session: session, by: key).1
        let control = try await door.send(fixture, session, [(name, right)])
        #expect(door.accepts(control), "\(door): \(control.status) \(control.text)")
    }

    @Test("A session that belongs to no key needs no proof, and a proof beside it is not read")
    func unbound() async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        for door in SessionDoor.allCases where door != .constrained {
            for fields in [[], [("DPoP", "x")], [("DPoP", "x"), ("DPoP", "y")]] {
                let answer = try await door.send(fixture, session, fields)
                #expect(door.accepts(answer), "\(door): \(answer.status) \(answer.text)")
                #expect(answer["DPoP-Nonce"] == nil)
            }
        }
        let refused = try await SessionDoor.constrained.send(fixture, session, [])
        #expect(refused.status == 401)
        #expect(try refused.tokenChallenge?.isScheme("DPoP") == true)
    }

    @Test(
        "An old proof of a session asks for a nonce, with which the request succeeds", arguments: SessionDoor.allCases)
    func nonces(_ door: SessionDoor) async throws {
        let fixture = try #require(ServerFixture.shared)
        let key = try ProofKey()
        let session = try await fixture.boundSession(to: key)
        var subject = fixture.subject(door.method, door.url(fixture), token: session)
        subject.issuedAt -= 3600
        subject.nonce = nil
        let asked = try await door.send(fixture, session, [("DPoP", try await key.proof(subject))])
        #expect(asked.status == 401)
        #expect(try asked.tokenChallenge?["error"] == "use_dpop_nonce", "\(door)")
        let nonce = try #require(asked["DPoP-Nonce"], "\(door)")
        subject.nonce = nonce
        let answer = try await door.send(fixture, session, [("DPoP", try await key.proof(subject))])
        #expect(door.accepts(answer), "\(door): \(answer.status) \(answer.text)")
    }

    @Test("The use of a session without its key is in the log, by the name that the audit log has for it")
    func trace() async throws {
        try await ServerFixture.run { fixture in
            let (key, thief) = (try ProofKey(), try ProofKey())
            let session = try await fixture.boundSession(to: key)
            let live = try #require(try await Sessions(fixture.server.context).live(token: Secret(session)))
            func notices() -> [String] {
                fixture.log.entries.filter { "\($0.message)" == "a session was presented without its key" }
                    .map { "\($0.metadata)" }
            }
            let url = fixture.json("consents")
            let own = try await fixture.proof("GET", url, session: session, by: key)
            #expect(try await SessionDoor.consents.send(fixture, session, [own]).status == 200)
            #expect(notices().isEmpty)
            let foreign = try await fixture.proof("GET", url, session: session, by: thief)
            for fields in [[], [foreign], [own]] {
                #expect(try await SessionDoor.consents.send(fixture, session, fields).status == 401)
            }
            let found = notices()
            #expect(found.count == 3)
            for notice in found { #expect(notice.contains(live.auditID) && !notice.contains(session), "\(notice)") }
        }
    }

    @Test("Signing out wants the key, wherever the session is named")
    func logout() async throws {
        let fixture = try #require(ServerFixture.shared)
        let key = try ProofKey()
        let session = try await fixture.boundSession(to: key)
        let url = fixture.json("sessions?_action=logout")
        let json = [("Content-Type", "application/json")]
        let named = #"{"tokenId":"\#(session)"}"#
        for action in ["logout", "validate", "getSessionInfo"] {
            let url = fixture.json("sessions?_action=\(action)")
            #expect(try await fixture.send("POST", url, json, text: named).status == 401)
            #expect(try await fixture.send("POST", url + "&tokenId=\(session)", json).status == 401)
        }
        let proof = try await fixture.proof("POST", url, session: session, by: key)
        #expect(try await fixture.send("POST", url, json + [proof], text: named).status == 200)
        let after = try await SessionDoor.consents.send(
            fixture, session, [try await fixture.proof("GET", fixture.json("consents"), session: session, by: key)])
        #expect(after.status == 401)
    }

    @Test("Whether a session's proof must have a nonce is said by the session's realm, not by the path's")
    func noncePolicy() async throws {
        let fixture = try await ServerFixture(editing: {
            $0.replacing(
                "    defaultJourney: Login\n", with: "    defaultJourney: Login\n    dpop: {nonce: required}\n",
                maxReplacements: 1)
        })
        fixture.clock.advance(by: 200)
        let key = try ProofKey()
        let session = try await fixture.boundSession(to: key)
        for realm in ["alpha", "beta"] {
            let url = fixture.server("/json/realms/root/realms/\(realm)/sessions?_action=getSessionInfo")
            var subject = fixture.subject("POST", url, token: session)
            subject.nonce = nil
            let fields = ServerFixture.session(session) + [("Content-Type", "application/json")]
            let asked = try await fixture.send("POST", url, fields + [("DPoP", try await key.proof(subject))])
            #expect(asked.status == 401, "\(realm): \(asked.text)")
            #expect(try asked.tokenChallenge?["error"] == "use_dpop_nonce")
            let nonce = try #require(asked["DPoP-Nonce"])
            subject.nonce = nonce
            let answer = try await fixture.send("POST", url, fields + [("DPoP", try await key.proof(subject))])
            #expect(answer.status == 200, "\(realm): \(answer.text)")
        }
        await fixture.stop()
    }

    @Test("Who asks for a decision about somebody else's session cannot prove its key: it counts as no session")
    func enforcementPoint() async throws {
        let fixture = try #require(ServerFixture.shared)
        let key = try ProofKey()
        let (bound, unbound) = (try await fixture.boundSession(to: key), try await fixture.session())
        let url = fixture.json("policies?_action=evaluate")
        func evaluate(_ about: String, _ fields: [(String, String)]) async throws -> Bool? {
            let body = """
                {"resources":["https://bank.example:443/see"],"application":"rest","subject":{"ssoToken":"\(about)"}}
                """
            let answer = try await fixture.send("POST", url, ServerFixture.jsonFields + fields, text: body)
            #expect(answer.status == 200, "\(answer.text)")
            return answer.json.array?.first?["actions"]?["GET"]?.bool
        }
        let agent = ServerFixture.session(try await fixture.session("pat"))
        #expect(try await evaluate(bound, agent) != true)
        #expect(try await evaluate(unbound, agent) == true)
        #expect(try await evaluate(bound, try await fixture.proved("POST", url, session: bound, by: key)) == true)
    }

    @Test("What was approved in a bound session is executed with its proof, once, and not without")
    func transaction() async throws {
        try await ServerFixture.run { fixture in
            let (key, other) = (try ProofKey(), try ProofKey())
            let session = try await fixture.boundSession(to: key)
            let url = fixture.gateway("/nods")
            func pay(_ transaction: String?, by key: ProofKey?) async throws -> Answer {
                var fields = ServerFixture.jsonFields + ServerFixture.session(session)
                if let transaction { fields.append(("X-TxID", transaction)) }
                if let key { fields.append(try await fixture.proof("POST", url, session: session, by: key)) }
                return try await fixture.send("POST", url, fields, text: FixtureBody.transfer)
            }
            let id = try ServerFixture.transactionID(try await pay(nil, by: key))
            let row = try await fixture.server.context.database.run(
                .read("SELECT sender FROM transactions WHERE id = \(id)")
            ).first
            #expect(try row?.optionalText("sender") == "jkt:\(key.thumbprint)")
            let answers = try fixture.answers(of: "ana")
            let stolen = try await fixture.runProvedJourney(
                ServerFixture.approval(id), session: session, by: other, answer: answers)
            #expect(stolen.status == 401, "\(stolen.text)")
            let approved = try await fixture.runProvedJourney(
                ServerFixture.approval(id), session: session, by: key, answer: answers)
            #expect(approved.status == 200, "\(approved.text)")
            #expect(approved.json["cnf"]?["jkt"]?.string == key.thumbprint)
            for thief in [nil, other] {
                #expect(try await pay(id, by: thief).status == 401)
                #expect(fixture.upstream.requests.isEmpty)
            }
            #expect(try await pay(id, by: key).status == 201)
            #expect(try await pay(id, by: key).status == 409)
            #expect(fixture.upstream.requests.count == 1)
        }
    }
}
