import AssentConfiguration
import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import Foundation
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("A service behind the gateway is told who calls in a signed token")
struct ServiceIdentityTests {
    private static let audience = "https://accounts.internal"
    private static let usual = #"identity: {audience: "https://accounts.internal"}"#
    private static let field = "Assent-Identity"

    /// The fixture's configuration, whose route `bank` has one key more.
    private static func adding(_ key: String) -> (String) -> String {
        { $0.replacing("home: /accounts\n", with: "home: /accounts\n      \(key)\n") }
    }

    /// The token that came with the service's latest request, and no second one.
    private func token(_ fixture: ServerFixture, in field: String = field) throws -> String {
        let values = try #require(fixture.upstream.requests.last).values(field)
        #expect(values.count == 1)
        return try #require(values.first)
    }

    private func identityKeys(_ fixture: ServerFixture) async throws -> JSONValue {
        let reply = try await fixture.send("GET", fixture.oauth("connect/identity_keys"))
        #expect(reply.status == 200)
        return reply.json
    }

    private func claims(_ token: String, _ keys: JSONValue) throws -> JWTClaims? {
        let message = try UnverifiedJWS.parse(token)
        #expect(message.type == "assent-identity+jwt")
        return try? JWTClaims(payload: message.verified(with: try JWKSet(keys), algorithms: [.es256]).payload)
    }

    @Test("It says issuer, user, chosen claims, service and time, and no two are the same")
    func claims() async throws {
        let key = #"identity: {audience: "https://accounts.internal", claims: [preferred_username, email, given_name]}"#
        try await ServerFixture.run(editing: Self.adding(key)) { fixture in
            let session = ServerFixture.session(try await fixture.session())
            func call() async throws -> JWTClaims {
                #expect(try await fixture.send("GET", fixture.gateway("/accounts"), session).status == 200)
                let keys = try await identityKeys(fixture)
                let read = try claims(token(fixture), keys)
                return try #require(read)
            }
            let (first, second) = (try await call(), try await call())
            let ana = try #require(await Users(fixture.server.context).find(username: "ana", realm: "/alpha"))
            #expect(first.iss == fixture.gateway("") && first.aud == [Self.audience] && first.sub == ana.id)
            #expect(first["preferred_username"] == "ana" && first["email"] == "ana@bank.example")
            #expect(first["given_name"] == "Ana" && first["family_name"] == nil && first["realm"] == "/alpha")
            let issuedAt = try #require(first["iat"]?.integer)
            #expect(issuedAt == fixture.server.context.clock.epochSeconds)
            #expect(first["exp"]?.integer == issuedAt + 60)
            #expect(first["txn"] == nil && first["client_id"] == nil)
            #expect(first.jti != nil && first.jti != second.jti)
        }
    }

    @Test("A client's access token is named by client_id beside the user, and a public route names nobody")
    func callers() async throws {
        try await ServerFixture.run(editing: Self.adding(Self.usual)) { fixture in
            let session = try await fixture.session()
            let tokens = try await fixture.tokens(session: session)
            let reply = try await fixture.send("GET", fixture.gateway("/accounts"), ServerFixture.bearer(tokens.access))
            #expect(reply.status == 200)
            let read = try claims(token(fixture), await identityKeys(fixture))
            let ana = try #require(await Users(fixture.server.context).find(username: "ana", realm: "/alpha"))
            #expect(read?.sub == ana.id)
            #expect(read?["client_id"] == "bank-app")
            // Neither token opens anything at the server.
            let told = try token(fixture)
            for fields in [ServerFixture.bearer(told), ServerFixture.session(told)] {
                #expect(try await fixture.send("GET", fixture.gateway("/accounts"), fields).status == 401)
            }
            let anybody = try await fixture.send(
                "GET", fixture.gateway("/open/x"), ServerFixture.session(session))
            #expect(anybody.status == 200)
            #expect(fixture.upstream.requests.last?.values(Self.field) == [])
        }
    }

    @Test("With a transaction it says what was approved: id, method, URL and the digest of the very body")
    func transaction() async throws {
        try await ServerFixture.run(editing: Self.adding(Self.usual)) { fixture in
            let session = try await fixture.session()
            let id = try await fixture.completedTransaction("/nods?b=2", session: session)
            let reply = try await fixture.send(
                "POST", fixture.gateway("/nods?b=2&_txid=" + id),
                ServerFixture.jsonFields + ServerFixture.session(session), text: FixtureBody.transfer)
            #expect(reply.status == 201)
            let read = try claims(token(fixture), await identityKeys(fixture))
            let sent = try #require(fixture.upstream.requests.last)
            let txn = try #require(read?["txn"])
            #expect(txn["id"] == .string(id) && txn["method"] == "POST")
            #expect(txn["url"] == .string(fixture.gateway("/nods?b=2")))
            #expect(txn["body_sha256"] == .string(Base64URL.encode(SHA2.sha256(sent.body))))
        }
    }

    @Test("A client's own field never reaches a service, on any route, in any spelling")
    func spoofed() async throws {
        let key = #"identity: {audience: "https://accounts.internal", header: X-Who}"#
        for (edit, field) in [(Self.adding(Self.usual), Self.field), (Self.adding(key), "X-Who")] {
            try await ServerFixture.run(editing: edit) { fixture in
                let session = ServerFixture.session(try await fixture.session())
                let names = [field, field.lowercased(), field.uppercased(), field.replacing("-", with: "_")]
                let forged = names.map { ($0, "forged") } + [("Connection", field)]
                for path in ["/accounts", "/open/x", "/files/a"] {
                    let reply = try await fixture.send("GET", fixture.gateway(path), session + forged)
                    #expect(reply.status == 200, "\(path)")
                    let seen = try #require(fixture.upstream.requests.last)
                    #expect(!seen.head.contains("forged"), "\(path)")
                    #expect(seen.values(field).count == (path == "/open/x" ? 0 : 1))
                }
                // Nothing of the session reaches the service beside it.
                let seen = try #require(fixture.upstream.requests.last)
                #expect(!seen.head.contains(session[0].1))
            }
        }
    }

    @Test("Its key is in a set of its own; a rotation keeps the old key, discarding it ends what it signed")
    func rotation() async throws {
        try await ServerFixture.run(editing: Self.adding(Self.usual)) { fixture in
            let session = ServerFixture.session(try await fixture.session())
            func call() async throws -> String {
                #expect(try await fixture.send("GET", fixture.gateway("/accounts"), session).status == 200)
                return try token(fixture)
            }
            let other = ServerKeys(fixture.server.context)
            let old = try await call()
            let provider = try await fixture.send("GET", fixture.oauth("connect/jwk_uri")).json
            #expect(try claims(old, provider) == nil)
            #expect(try claims(old, await identityKeys(fixture)) != nil)

            #expect(try await other.purposesInUse() == ServerKeys.Purpose.allCases)
            try await other.rotate(.gatewayIdentity)
            fixture.clock.advance(by: Double(ServerKeys.staleness))
            let new = try await call()
            #expect(try UnverifiedJWS.parse(new).keyID != UnverifiedJWS.parse(old).keyID)
            for token in [old, new] { #expect(try claims(token, await identityKeys(fixture)) != nil) }

            try await other.rotate(.gatewayIdentity, discardingOld: true)
            fixture.clock.advance(by: Double(ServerKeys.staleness))
            for token in [old, new] { #expect(try claims(token, await identityKeys(fixture)) == nil) }
            let last = try await call()
            #expect(try claims(last, await identityKeys(fixture)) != nil)
        }
    }

    @Test("Where nothing can be signed, nothing is forwarded, and a transaction's record says so")
    func noKey() async throws {
        try await ServerFixture.run(editing: Self.adding(Self.usual)) { fixture in
            let token = try await fixture.session()
            let session = ServerFixture.session(token)
            #expect(try await fixture.send("GET", fixture.gateway("/accounts"), session).status == 200)
            let id = try await fixture.completedTransaction(session: token)
            _ = try await fixture.server.context.database.run(
                SQLStatement(
                    """
                    UPDATE server_keys SET sealed_key = \([UInt8](repeating: 0, count: 64))
                    WHERE purpose = 'gateway_identity'
                    """,
                    expecting: .exactly(1)))
            fixture.clock.advance(by: Double(ServerKeys.staleness))
            let plain = try await fixture.send("GET", fixture.gateway("/accounts"), session)
            #expect(plain.status == 503 && plain.json["forwarded"] == "no")
            func pay() async throws -> Answer {
                try await fixture.send(
                    "POST", fixture.gateway("/nods?_txid=" + id), ServerFixture.jsonFields + session,
                    text: FixtureBody.transfer)
            }
            let payment = try await pay()
            #expect(payment.status == 503 && payment.json["transaction"] == .string(id))
            let again = try await pay()
            #expect(again.status == 409 && again.json["outcome"]?["state"] == "notForwarded")
            #expect(fixture.upstream.requests.count == 1)
        }
    }

    @Test(
        "A key that could not hold is refused with what to do",
        arguments: [
            ("identity: {}", "audience"), ("identity: {audience: \"\"}", "audience"),
            ("identity: {audience: a, claims: [mail]}", "mail is not a claim that this server knows"),
            ("identity: {audience: a, header: Cookie}", "Cookie cannot be the field"),
            ("identity: {audience: a, header: Authorization}", "Authorization cannot be the field"),
            ("identity: {audience: a, header: X-Remote-User}", "X-Remote-User cannot be the field"),
            ("identity: {audience: a, header: X-Forwarded-User}", "X-Forwarded-User cannot be the field"),
            ("identity: {audience: a, header: Sec-Who}", "Sec-Who cannot be the field"),
            ("identity: {audience: a, header: X_Who}", "X_Who cannot be the field"),
            ("identity: {audience: a, header: \"X Who\"}", "X Who cannot be the field"),
            ("identity: {audience: a, header: X-Custom}", "passes x-custom of clients"),
            ("identity: {audience: a, seconds: 900}", "unknown key"),
        ])
    func mistakes(_ key: String, _ message: String) {
        let text = Self.adding(key)(FixtureConfiguration.yaml(upstream: 9080, refusing: 9081))
        let error = #expect(throws: ConfigurationError.self) {
            try ServerConfiguration.parse(text, file: "/etc/assent.yaml")
        }
        #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
    }

    @Test("A public route tells nobody's identity, and no route passes the usual field")
    func otherMistakes() {
        let good = FixtureConfiguration.yaml(upstream: 9080, refusing: 9081)
        for (find, replacement, message) in [
            ("public: true}", "public: true, identity: {audience: a}}", "a public route has no identity"),
            ("passHeaders: [X-Custom]", "passHeaders: [Assent-Identity]", "Assent-Identity cannot pass"),
        ] {
            let error = #expect(throws: ConfigurationError.self) {
                try ServerConfiguration.parse(good.replacing(find, with: replacement), file: "/etc/assent.yaml")
            }
            #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
        }
    }
}

/// The Python that has joserfc, where `Scripts/setup.sh` has put it.
private enum IdentityReader {
    static let interpreter = URL(filePath: #filePath).appending(path: "../../../../.build/peers/bin/python")
        .standardized.path

    static let mustRun =
        ProcessInfo.processInfo.environment["CI"] != nil || FileManager.default.isExecutableFile(atPath: interpreter)

    /// Verifies each token of the list by its key set, issuer, audience and time; the claims, or null.
    static let program = """
        import json, sys
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        def verdict(one):
            try:
                token = jwt.decode(one["token"], KeySet.import_key_set(one["keys"]), algorithms=["ES256"])
                jwt.JWTClaimsRegistry(
                    now=one["now"], leeway=0, iss={"essential": True, "value": one["iss"]},
                    aud={"essential": True, "value": one["aud"]}, exp={"essential": True}).validate(token.claims)
                return token.claims
            except (JoseError, ValueError):
                return None

        json.dump([verdict(one) for one in json.load(sys.stdin)], sys.stdout)
        """
}

@Suite(
    "The gateway's identity tokens against joserfc", .enabled(if: IdentityReader.mustRun, "joserfc is not installed"))
struct ServiceIdentityPeerTests {
    @Test("joserfc takes the token, and none that is changed, late, for another service or from another gateway")
    func peer() async throws {
        let key = #"identity: {audience: "https://accounts.internal", claims: [preferred_username]}"#
        try await ServerFixture.run(
            editing: { $0.replacing("home: /accounts\n", with: "home: /accounts\n      \(key)\n") }
        ) { fixture in
            let session = ServerFixture.session(try await fixture.session())
            #expect(try await fixture.send("GET", fixture.gateway("/accounts"), session).status == 200)
            let token = try #require(fixture.upstream.requests.last?.values("Assent-Identity").first)
            let keys = try await fixture.send("GET", fixture.oauth("connect/identity_keys")).json
            let others = try await fixture.send("GET", fixture.oauth("connect/jwk_uri")).json
            let now = fixture.server.context.clock.epochSeconds
            let parts = token.split(separator: ".").map(String.init)
            try #require(parts.count == 3)
            func flipped(_ index: Int) throws -> String {
                var bytes = try #require(Base64URL.decode(parts[index]))
                bytes[bytes.count / 2] ^= 1
                var changed = parts
                changed[index] = Base64URL.encode(bytes)
                return changed.joined(separator: ".")
            }
            func job(
                _ token: String, keys: JSONValue = keys, at time: Int64 = now, issuer: String = fixture.gateway(""),
                audience: String = "https://accounts.internal"
            ) -> JSONValue {
                [
                    "token": .string(token), "keys": keys, "now": .integer(time), "iss": .string(issuer),
                    "aud": .string(audience),
                ]
            }
            let jobs = [
                job(token), job(token, at: now + 59), job(try flipped(1)), job(try flipped(2)),
                job(parts[0] + "." + parts[1] + "."), job(token, at: now + 60),
                job(token, audience: "https://cards.internal"), job(token, issuer: fixture.endpoints.server),
                job(token, keys: others),
            ]
            let process = try FinishedProcess.run(
                "/usr/bin/timeout",
                ["\(Patience.seconds)", IdentityReader.interpreter, "-I", "-c", IdentityReader.program],
                input: JSONValue.array(jobs).serializedBytes())
            try #require(process.status == 0, "\(process.complaints)")
            let verdicts = try #require(try JSONValue.parse(process.output).array)
            #expect(verdicts.map { $0 != .null } == [true, true] + Array(repeating: false, count: 7))
            #expect(verdicts.first?["preferred_username"] == "ana")
        }
    }
}
