import AssentCore
import AssentJOSE
import AssentTesting
import Crypto
import Foundation
import Testing
import TestSupport

@testable import AssentServer

@Suite("A gateway elsewhere lets through what its engine lets through, and keeps the promises of the one beside it")
struct GatewayElsewhereTests {
    @Test("A plain request is one question, and the service gets the user's name and no credential")
    func plain() async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let before = alone.relay.count("decide")
            let reply = try await alone.get("/accounts", ServerFixture.session(session))
            #expect(reply.status == 200)
            #expect(alone.relay.count("decide") == before + 1)
            let request = try #require(alone.upstream.requests.first)
            #expect(request.values("X-Remote-User") == ["ana"])
            #expect(!request.head.contains(session))
            #expect(try await alone.get("/accounts", []).status == 401)
            #expect(try await alone.get("/accounts", ServerFixture.session("x")).status == 401)
            #expect(try await alone.get("/unknown", ServerFixture.session(session)).status == 403)
            #expect(try await alone.get("/outside", ServerFixture.session(session)).status == 403)
            #expect(try await alone.get("/inside", ServerFixture.session(session)).status == 200)
            let questions = alone.relay.count("decide")
            #expect(try await alone.get("/open", []).status == 200)
            #expect(alone.relay.count("decide") == questions)
        }
    }

    @Test("A payment is two questions, an approval, a question and a report: the service gets it once")
    func payment() async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let mine = ServerFixture.session(session)
            _ = try await alone.get("/accounts", mine)
            let start = alone.relay.calls.value.count
            let id = try await alone.approved(session: session)
            #expect(alone.relay.calls.value.dropFirst(start) == ["decide", "decide"])
            let asked = alone.relay.calls.value.count
            let paid = try await alone.post(mine, transaction: id)
            #expect(paid.status == 201)
            await alone.relay.calls.wait { $0.last == "outcome" }
            await alone.waitUntilHeard()
            #expect(alone.relay.calls.value.dropFirst(asked) == ["decide", "outcome"])
            let requests = alone.upstream.requests.filter { $0.line.hasPrefix("POST") }
            #expect(requests.count == 1)
            #expect(requests.first?.values("Idempotency-Key") == [id])
            #expect(requests.first.map { String(decoding: $0.body, as: UTF8.self) } == FixtureBody.transfer)
            #expect(try await alone.outcome(id, session: session) == ["state": "answered", "status": 201])
            #expect(alone.upstream.requests.count { $0.line.hasPrefix("POST") } == 1)
        }
    }

    @Test("Another body, method or query at the take is refused, and the transaction stays good for what was approved")
    func otherRequest() async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let mine = ServerFixture.session(session)
            let id = try await alone.approved(session: session)
            let other = FixtureBody.transfer.replacing("200.00", with: "900.00")
            #expect(try await alone.post(mine, transaction: id, body: other).status == 403)
            #expect(try await alone.post(mine, transaction: id, body: FixtureBody.transfer + " ").status == 403)
            #expect(try await alone.post("/nods?x=1", mine, transaction: id).status == 403)
            let thief = ServerFixture.session(try await alone.engine.session())
            #expect(try await alone.post(thief, transaction: id).status == 403)
            #expect(alone.upstream.requests.isEmpty)
            #expect(try await alone.post(mine, transaction: id).status == 201)
            #expect(alone.upstream.requests.count == 1)
        }
    }

    @Test("A service that is down, or gives no answer, leaves the outcome that it leaves beside the engine")
    func serviceFails() async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let id = try await alone.approved(session: session)
            alone.upstream.answer(with: TestUpstream.closing)
            let reply = try await alone.post(ServerFixture.session(session), transaction: id)
            #expect(reply.status == 504 && reply.json["forwarded"] == "unknown")
            await alone.waitUntilHeard()
            #expect(try await alone.outcome(id, session: session) == ["state": "unknown"])
            #expect(alone.upstream.requests.count == 1)

            let unsent = try await alone.approved(session: session)
            await alone.upstream.stop()
            let down = try await alone.post(ServerFixture.session(session), transaction: unsent)
            #expect(down.status == 502 && down.json["forwarded"] == "no")
            await alone.waitUntilHeard()
            #expect(try await alone.outcome(unsent, session: session) == ["state": "notForwarded"])
        }
    }

    @Test("A client that leaves while the service works changes nothing: the engine hears of the answer")
    func clientLeaves() async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let id = try await alone.approved(session: session)
            alone.upstream.hold()
            let connection = try await RawConnection.open(port: alone.port)
            let body = FixtureBody.transfer
            try await connection.send(
                "POST /nods HTTP/1.1\r\nHost: localhost\r\niPlanetDirectoryPro: \(session)\r\nX-TxID: \(id)\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
            )
            await alone.upstream.waitUntilHeld()
            #expect(try await alone.outcome(id, session: session) == ["state": "forwarded"])
            await connection.close()
            await alone.upstream.release()
            await alone.relay.calls.wait { $0.contains("outcome") }
            await alone.waitUntilHeard()
            #expect(try await alone.outcome(id, session: session) == ["state": "answered", "status": 201])
            #expect(alone.upstream.requests.count == 1)
        }
    }

    @Test("A page of a foreign origin cannot use the cookie, and a listed one can")
    func cookie() async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let cookie = ("Cookie", "\(ServerFixture.cookieName)=\(session)")
            let foreign = [cookie, ("Origin", "https://evil.example"), ("Sec-Fetch-Site", "cross-site")]
            #expect(try await alone.post(foreign).status == 403)
            #expect(try await alone.get("/accounts", foreign).status == 403)
            let listed = [cookie, ("Origin", "https://app.bank.example")]
            #expect(try await alone.get("/accounts", listed).status == 200)
            #expect(try await alone.post(listed).status == 401)
        }
    }

    @Test("An access token is challenged here as it is beside the engine")
    func tokens() async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let profile = try await alone.engine.tokens(session: session, scope: "openid profile").access
            let accounts = try await alone.engine.tokens(session: session, scope: "openid accounts").access
            for (token, target) in [(profile, "/scoped"), ("x", "/accounts"), (accounts, "/scoped")] {
                let here = try await alone.get(target, ServerFixture.bearer(token))
                let beside = try await alone.engine.send(
                    "GET", alone.engine.gateway(target), ServerFixture.bearer(token))
                #expect(here.status == beside.status)
                #expect(here["WWW-Authenticate"] == beside["WWW-Authenticate"])
            }
            #expect(try await alone.get("/scoped", ServerFixture.bearer(accounts)).status == 200)
        }
    }

    @Test("With a key for proofs the gateway's own token belongs to that key, and is worth nothing without it")
    func proven() async throws {
        try await ServerFixture.run { engine in
            try PrivateFile.create(
                engine.directory + "/proof.pem", Array((P256.Signing.PrivateKey().pemRepresentation + "\n").utf8))
            let file = { (text: String) in
                text.replacing("secretFile: edge-secret}", with: "secretFile: edge-secret, proofKey: proof.pem}")
            }
            try await GatewayAlone.run(at: engine, editing: file) { alone in
                let session = try await engine.session()
                let mine = ServerFixture.session(session)
                let id = try await alone.approved(session: session)
                #expect(try await alone.post(mine, transaction: id).status == 201)
                await alone.waitUntilHeard()
                let asked = alone.relay.requests("decide") + alone.relay.requests("outcome")
                // Two questions, the take and the report, and again what was refused for want of a nonce.
                #expect(asked.count >= 4)
                #expect(asked.allSatisfy { $0.values("DPoP").count == 1 })
                let field = try #require(asked.last?.values("Authorization").first)
                #expect(field.hasPrefix("DPoP "))
                let stolen = ServerFixture.bearer(String(field.dropFirst("DPoP ".count)))
                let target = try #require(asked.last?.line.split(separator: " ").dropFirst().first)
                let refused = try await engine.send(
                    "POST", engine.root(String(target)), ServerFixture.jsonFields + stolen)
                #expect(refused.status == 401)
                // A nonce that is over is replaced by the one that comes with the refusal.
                engine.clock.advance(by: 300)
                let before = alone.relay.count("decide")
                #expect(try await alone.get("/accounts", mine).status == 200)
                #expect(alone.relay.count("decide") == before + 2)
            }
        }
    }

    @Test("A gateway whose client has a key instead of a secret is answered, and one with another key is not")
    func keyed() async throws {
        let (own, other) = (try ProofKey(), try ProofKey())
        let set = JSONValue.object(["keys": [own.jwk.json]]).serialized()
        let listed = { (text: String) in
            text.replacing(/\n      edge:\n        secretHash: [^\n]+\n/, with: "\n      edge:\n        jwks: \(set)\n")
        }
        try await ServerFixture.run(editing: listed) { engine in
            for (name, key) in [("own", own), ("other", other)] {
                let der = Data(key.key.privateKey.revealBytes()).base64EncodedString(
                    options: [.lineLength64Characters, .endLineWithLineFeed])
                try PrivateFile.create(
                    engine.directory + "/\(name).pem",
                    Array("-----BEGIN PRIVATE KEY-----\n\(der)\n-----END PRIVATE KEY-----\n".utf8))
                let file = { (text: String) in
                    text.replacing("secretFile: edge-secret}", with: "privateKey: \(name).pem}")
                }
                try await GatewayAlone.run(at: engine, editing: file) { alone in
                    let mine = ServerFixture.session(try await engine.session())
                    let reply = try await alone.get("/accounts", mine)
                    #expect(reply.status == (name == "own" ? 200 : 503), "\(name): \(reply.text)")
                    #expect(alone.upstream.requests.count == (name == "own" ? 1 : 0), "\(name)")
                    let asked = try #require(alone.relay.requests("access_token").first)
                    let form = String(decoding: asked.body, as: UTF8.self)
                    #expect(form.contains("client_assertion=") && asked.values("Authorization").isEmpty)
                }
            }
        }
    }

    @Test("A body that no policy binds streams through unread, and is one question")
    func upload() async throws {
        try await GatewayAlone.run { alone in
            let session = try await alone.engine.session()
            let body = [UInt8](repeating: 7, count: 1 << 20)
            let before = alone.relay.count("decide")
            let fields = ServerFixture.session(session) + [("Content-Type", "image/png")]
            let reply = try await alone.send("PUT", "/files/a", fields, body: body)
            #expect(reply.status == 200)
            #expect(alone.relay.count("decide") == before + 1)
            #expect(alone.upstream.requests.last?.body == body)
            let bound = try await alone.post(
                ServerFixture.session(session), body: String(repeating: " ", count: 5000) + FixtureBody.transfer)
            #expect(bound.status == 413)
        }
    }
}
