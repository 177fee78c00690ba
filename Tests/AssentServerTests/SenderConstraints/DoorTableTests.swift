import AssentCore
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

/// Every door that takes an access token, and every kind of credential.
@Suite("The table of doors and credentials", .server)
struct DoorTableTests {
    @Test("Each door does what the row says", arguments: DoorRow.rows)
    func row(_ row: DoorRow) async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        #expect(row.answers.count == ResourceDoor.allCases.count)
        for (door, expected) in zip(ResourceDoor.allCases, row.answers) {
            let bench = try await DoorBench(fixture, door, session: session)
            let answer = try await bench.send(try await bench.fields(row.credential))
            #expect(try door.outcome(answer) == expected, "\(door): \(answer.text)")
        }
    }

    @Test("The endpoint that gives links into a browser answers each row as the userinfo endpoint does")
    func links() async throws {
        try await WebLinkDoor.run { place in
            let bench = try await DoorBench(links: place)
            for row in DoorRow.rows {
                let answer = try await bench.send(try await bench.fields(row.credential))
                #expect(try ResourceDoor.userInfo.outcome(answer) == row.answers.first, "\(row): \(answer.text)")
            }
        }
    }

    @Test("docs/sender-constraints.md has the table that the tests run")
    func page() throws {
        let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appending(path: "docs/sender-constraints.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        let marks = ("<!-- table -->\n", "<!-- end of table -->\n")
        let start = try #require(text.range(of: marks.0)).upperBound
        let end = try #require(text.range(of: marks.1)).lowerBound
        // Write it anew with ASSENT_WRITE_TABLE=1 after a change of the rows.
        if ProcessInfo.processInfo.environment["ASSENT_WRITE_TABLE"] != nil {
            try Data((text[..<start] + DoorRow.markdown + text[end...]).utf8).write(to: page)
        } else {
            #expect(String(text[start..<end]) == DoorRow.markdown)
        }
    }

    @Test("Every kind of credential has one row")
    func complete() {
        #expect(
            DoorRow.rows.map(\.credential.rawValue).sorted() == DoorRow.Credential.allCases.map(\.rawValue).sorted())
    }

    @Test("A token in a form is a bearer token: a bound one is refused, also with its proof")
    func form() async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        let key = try ProofKey()
        let url = fixture.oauth("userinfo")
        let bound = try await fixture.boundToken(session: session, to: key)
        let proof = ("DPoP", try await key.proof(fixture.subject("POST", url, token: bound)))
        func post(_ token: String, _ fields: [(String, String)] = []) async throws -> Answer {
            try await fixture.send(
                "POST", url, [("Content-Type", "application/x-www-form-urlencoded")] + fields,
                text: ServerFixture.query([("access_token", token)]))
        }
        let door = ResourceDoor.userInfo
        #expect(try door.outcome(await post(bound)) == "401 `DPoP` `invalid_token`")
        #expect(try door.outcome(await post(bound, [proof])) == "401 `DPoP` `invalid_token`")
        let both = try await post(bound, [proof, ("Authorization", "DPoP \(bound)")])
        #expect(both.status == 400 && both.error == "invalid_request")
        #expect(try door.outcome(await post(try await fixture.tokens(session: session).access)) == "yes")
        let control = try await fixture.send("POST", url, [("Authorization", "DPoP \(bound)"), proof])
        #expect(control.status == 200, "\(control.text)")
    }

    @Test("Doors that ask for a session look at no token, and at no proof beside a session without a key")
    func sessions() async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        let key = try ProofKey()
        let token = try await fixture.boundToken(session: session, to: key)
        for url in [fixture.json("consents"), fixture.signing("containers")] {
            let proved = try await fixture.proved("GET", url, token: token, by: key)
            #expect(try await fixture.send("GET", url, proved).status == 401)
            for fields in [proved, ServerFixture.dpop("x", "y"), ServerFixture.bearer(token)] {
                let answer = try await fixture.send("GET", url, ServerFixture.session(session) + fields)
                #expect(answer.status == 200, "\(answer.text)")
            }
        }
    }

    @Test("A bound token that lacks a scope hears so in its own scheme")
    func scope() async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = try await fixture.session()
        let key = try ProofKey()
        let token = try await fixture.boundToken(session: session, to: key, scope: "profile")
        for (url, scope) in [(fixture.oauth("userinfo"), "openid"), (fixture.gateway("/scoped"), "accounts")] {
            let answer = try await fixture.send("GET", url, try await fixture.proved("GET", url, token: token, by: key))
            #expect(answer.status == 403, "\(answer.text)")
            let challenge = try #require(try answer.tokenChallenge)
            #expect(challenge.isScheme("DPoP") && challenge["error"] == "insufficient_scope")
            #expect(challenge["scope"] == scope && challenge["algs"]?.contains("EdDSA") == true)
        }
    }
}

/// The credentials of a row, at one door.
struct DoorBench {
    private let url: String
    private let method: String
    /// What is sent.
    private let form: String?
    private let fixture: ServerFixture
    private let door: ResourceDoor
    private let session: String
    private let key: ProofKey
    private let bound: String
    private let unbound: String
    private let boundSession: String

    init(_ fixture: ServerFixture, _ door: ResourceDoor, session: String) async throws {
        self.fixture = fixture
        self.door = door
        self.session = session
        url = door.url(fixture)
        method = "GET"
        form = nil
        key = try ProofKey()
        bound = try await door.boundToken(fixture, session: session, to: key)
        unbound = try await door.bearerToken(fixture, session: session)
        boundSession = try await fixture.boundSession(to: key)
    }

    /// At the endpoint for links, which takes tokens of an installation's user, as the userinfo endpoint takes them.
    init(links place: WebLinkDoor) async throws {
        fixture = place.fixture
        door = .userInfo
        session = place.session
        url = place.endpoint
        method = "POST"
        form = ServerFixture.query([("target", WebLinkDoor.target)])
        key = try ProofKey()
        bound = try await WebLinkDoor.userToken(
            place.door, place.instance, session: place.session,
            proof: try await place.fixture.provedTokenRequest(by: key))
        unbound = place.token
        boundSession = try await place.fixture.boundSession(to: key)
    }

    /// Sends a request with these fields.
    func send(_ fields: [(String, String)]) async throws -> Answer {
        guard let form else { return try await fixture.send(method, url, fields) }
        return try await fixture.send(method, url, fields + [WebLinkDoor.form], text: form)
    }

    private func proof(
        of token: String, by signer: ProofKey? = nil, _ change: (inout ProofKey.Subject) -> Void = { _ in }
    ) async throws -> String {
        var subject = fixture.subject(method, url, token: token)
        change(&subject)
        return try await (signer ?? key).proof(subject)
    }

    private var cookie: [(String, String)] { [("Cookie", "\(ServerFixture.cookieName)=\(session)")] }
    private var field: [(String, String)] { ServerFixture.session(session) }

    /// The fields of a request with a credential.
    func fields(_ credential: DoorRow.Credential) async throws -> [(String, String)] {
        switch credential {
        case .none: return []
        case .sessionField: return field
        case .sessionCookie: return cookie
        case .basicAndSession: return field + [("Authorization", "Basic YTpi")]
        case .bearer: return ServerFixture.bearer(unbound)
        case .bearerAndProof: return ServerFixture.bearer(unbound) + [("DPoP", try await proof(of: unbound))]
        case .bearerAndSession: return ServerFixture.bearer(unbound) + field
        case .unknownBearer: return ServerFixture.bearer("x")
        case .unknownBearerAndSession: return ServerFixture.bearer("x") + field
        case .unboundAsDPoP: return ServerFixture.dpop(unbound, try await proof(of: unbound))
        case .unknownAsDPoP: return ServerFixture.dpop("x", try await proof(of: "x"))
        case .right: return ServerFixture.dpop(bound, try await proof(of: bound))
        case .rightAndSession: return ServerFixture.dpop(bound, try await proof(of: bound)) + field
        case .boundAsBearer: return ServerFixture.bearer(bound)
        case .boundAsBearerAndProof: return ServerFixture.bearer(bound) + [("DPoP", try await proof(of: bound))]
        case .noProof: return ServerFixture.dpop(bound)
        case .noProofAndSession: return ServerFixture.dpop(bound) + field + cookie
        case .twoFields: return ServerFixture.bearer(unbound) + ServerFixture.dpop(bound, try await proof(of: bound))
        case .boundSession, .boundSessionInCookie, .boundSessionAlone, .boundSessionTwoProofs, .boundSessionOtherKey,
            .boundSessionOtherSession, .boundSessionNoHash, .boundSessionRepeated, .boundSessionOldProof:
            return try await sessionFields(credential)
        default: return try await wrongProof(credential)
        }
    }

    private func sessionFields(_ credential: DoorRow.Credential) async throws -> [(String, String)] {
        let field = ServerFixture.session(boundSession)
        switch credential {
        case .boundSessionInCookie:
            return [
                ("Cookie", "\(ServerFixture.cookieName)=\(boundSession)"), ("DPoP", try await proof(of: boundSession)),
            ]
        case .boundSessionAlone: return field
        case .boundSessionTwoProofs:
            return field + [("DPoP", try await proof(of: boundSession)), ("DPoP", try await proof(of: boundSession))]
        case .boundSessionOtherKey: return field + [("DPoP", try await proof(of: boundSession, by: ProofKey()))]
        case .boundSessionOtherSession:
            return field + [("DPoP", try await proof(of: try await fixture.boundSession(to: key)))]
        case .boundSessionNoHash: return field + [try await fixture.proof(method, url, by: key)]
        case .boundSessionOldProof:
            return field + [
                (
                    "DPoP",
                    try await proof(of: boundSession) {
                        $0.issuedAt -= 61
                        $0.nonce = nil
                    }
                )
            ]
        default:
            let fields = field + [("DPoP", try await proof(of: boundSession))]
            guard credential == .boundSessionRepeated else { return fields }
            #expect(door.accepts(try await send(fields)) == door.takesSessions)
            return fields
        }
    }

    private func wrongProof(_ credential: DoorRow.Credential) async throws -> [(String, String)] {
        switch credential {
        case .otherKey: return ServerFixture.dpop(bound, try await proof(of: bound, by: ProofKey()))
        case .otherToken: return ServerFixture.dpop(bound, try await proof(of: unbound))
        case .otherURL: return ServerFixture.dpop(bound, try await proof(of: bound) { $0.url += "/x" })
        case .otherMethod: return ServerFixture.dpop(bound, try await proof(of: bound) { $0.method = "PUT" })
        case .oldProof:
            return ServerFixture.dpop(
                bound,
                try await proof(of: bound) {
                    $0.issuedAt -= 61
                    $0.nonce = nil
                })
        case .foreignNonce:
            let other = fixture.nonce(of: door.server == .gateway ? .authorizationServer : .gateway)
            return ServerFixture.dpop(bound, try await proof(of: bound) { $0.nonce = other })
        case .repeated:
            let fields = ServerFixture.dpop(bound, try await proof(of: bound))
            try #require(door.accepts(try await send(fields)))
            return fields
        default:
            let proofs = (try await proof(of: bound), try await proof(of: bound))
            return ServerFixture.dpop(bound, proofs.0, proofs.1)
        }
    }
}
