import AssentCore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

/// What belongs to a key at the gateway and at other resources.
@Suite("Tokens that belong to a key")
struct BoundTokenTests {
    /// A request for what needs an approval, with a proof about it.
    private func pay(
        _ fixture: ServerFixture, _ transaction: String? = nil, token: String, by key: ProofKey, nonce: String?
    ) async throws -> Answer {
        let url = fixture.gateway("/nods" + (transaction.map { "?_txid=" + $0 } ?? ""))
        var subject = fixture.subject("POST", url, token: token)
        subject.nonce = nonce
        let fields = ServerFixture.jsonFields + ServerFixture.dpop(token, try await key.proof(subject))
        return try await fixture.send("POST", url, fields, text: FixtureBody.transfer)
    }

    @Test("An approved request whose proof needs another nonce has done nothing, and is executed once with a new one")
    func expiredNonce() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let key = try ProofKey()
            let token = try await fixture.boundToken(session: session, to: key)
            let old = fixture.nonce(of: .gateway)
            fixture.clock.advance(by: 120)
            let refused = try await pay(fixture, token: token, by: key, nonce: old)
            #expect(refused.status == 401, "\(refused.text)")
            let id = try ServerFixture.transactionID(refused)
            #expect(try await fixture.approve(id, session: session).status == 200)
            fixture.clock.advance(by: 130)
            let before = try await fixture.audit(id).count

            let stale = try await pay(fixture, id, token: token, by: key, nonce: old)
            #expect(stale.status == 401, "\(stale.text)")
            #expect(try stale.tokenChallenge?["error"] == "use_dpop_nonce")
            #expect(fixture.upstream.requests.isEmpty)
            #expect(try await fixture.audit(id).count == before, "nothing was looked for, taken or refused")
            let nonce = try #require(stale["DPoP-Nonce"])

            let paid = try await pay(fixture, id, token: token, by: key, nonce: nonce)
            #expect(paid.status == 201, "\(paid.text)")
            #expect(fixture.upstream.requests.count == 1)
            let again = try await pay(fixture, id, token: token, by: key, nonce: nonce)
            #expect(again.status == 409 && fixture.upstream.requests.count == 1)
        }
    }

    @Test("What was approved for one key is not executed for another key of the same session")
    func transactionOfAnotherKey() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let (mine, other) = (try ProofKey(), try ProofKey())
            let token = try await fixture.boundToken(session: session, to: mine)
            let another = try await fixture.boundToken(session: session, to: other)
            let nonce = fixture.nonce(of: .gateway)
            let id = try ServerFixture.transactionID(
                try await pay(fixture, token: token, by: mine, nonce: nonce))
            #expect(try await fixture.approve(id, session: session).status == 200)
            let fresh = fixture.nonce(of: .gateway)
            let stolen = try await pay(fixture, id, token: another, by: other, nonce: fresh)
            #expect(stolen.status == 403 && fixture.upstream.requests.isEmpty, "\(stolen.text)")
            #expect(try await pay(fixture, id, token: token, by: mine, nonce: fresh).status == 201)
        }
    }

    @Test(
        "A stolen access token is refused from another key, at every door, and its owner goes on",
        arguments: ResourceDoor.allCases)
    func theft(_ door: ResourceDoor) async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let (owner, thief) = (try ProofKey(), try ProofKey())
            let token = try await door.boundToken(fixture, session: session, to: owner)
            let url = door.url(fixture)
            let seen = try await fixture.proved("GET", url, token: token, by: owner)
            #expect(door.accepts(try await fixture.send("GET", url, seen)))
            // What the thief can do: use what was seen again, as it is or as a bearer, and prove a key of their own.
            for (fields, error) in [
                (seen, "invalid_dpop_proof"), (ServerFixture.bearer(token), "invalid_token"),
                (ServerFixture.dpop(token), "invalid_dpop_proof"),
                (try await fixture.proved("GET", url, token: token, by: thief), "invalid_token"),
                (ServerFixture.session(token), nil), (seen + ServerFixture.bearer(token), "invalid_token"),
            ] as [([(String, String)], String?)] {
                let answer = try await fixture.send("GET", url, fields)
                let status = door == .userInfo && fields.filter { $0.0 == "Authorization" }.count > 1 ? 400 : 401
                #expect(answer.status == status, "\(answer.text)")
                if status == 401 { #expect(try answer.tokenChallenge?["error"] == error, "\(answer.text)") }
            }
            let mine = try await fixture.proved("GET", url, token: token, by: owner)
            #expect(door.accepts(try await fixture.send("GET", url, mine)))
        }
    }

    @Test("A service sees neither the proof nor the token, and its own nonces and challenges reach nobody")
    func service() async throws {
        try await ServerFixture.run { fixture in
            let key = try ProofKey()
            let token = try await fixture.boundToken(session: try await fixture.session(), to: key)
            fixture.upstream.answer { _, peer in
                peer.answer(
                    "401 Unauthorized",
                    fields: ["DPoP-Nonce: of-the-service", #"WWW-Authenticate: Basic realm="x", DPoP algs="ES256""#])
            }
            let url = fixture.gateway("/accounts")
            let answer = try await fixture.send("GET", url, try await fixture.proved("GET", url, token: token, by: key))
            #expect(answer.status == 401)
            #expect(answer.all("WWW-Authenticate") == [#"Basic realm="x""#])
            #expect(answer["DPoP-Nonce"] != "of-the-service")
            let seen = try #require(fixture.upstream.requests.last)
            #expect(seen.values("DPoP").isEmpty && seen.values("Authorization").isEmpty)
            #expect(seen.values("X-Remote-User") == ["ana"])
        }
    }

    @Test("A new nonce rides on a reply when the last one is half used up, also where a page reads it")
    func newNonces() async throws {
        try await ServerFixture.run { fixture in
            let key = try ProofKey()
            let session = try await fixture.session()
            for door in ResourceDoor.allCases {
                let token = try await door.boundToken(fixture, session: session, to: key)
                let url = door.url(fixture)
                let fields = try await fixture.proved("GET", url, token: token, by: key)
                var old = fixture.subject("GET", url, token: token)
                #expect(try await fixture.send("GET", url, fields)["DPoP-Nonce"] == nil, "\(door)")
                fixture.clock.advance(by: 150)
                old.issuedAt += 150
                let aging = ServerFixture.dpop(token, try await key.proof(old))
                let answer = try await fixture.send("GET", url, aging + [("Origin", "https://app.bank.example")])
                #expect(door.accepts(answer), "\(door): \(answer.text)")
                let nonce = try #require(answer["DPoP-Nonce"], "\(door)")
                if door != .constrained {
                    #expect(answer.all("Access-Control-Expose-Headers").contains { $0.contains("DPoP-Nonce") })
                }
                var next = fixture.subject("GET", url, token: token)
                next.nonce = nonce
                let again = try await fixture.send("GET", url, ServerFixture.dpop(token, try await key.proof(next)))
                #expect(door.accepts(again), "\(door): \(again.text)")
            }
        }
    }

    @Test("No cache may keep a reply with a new nonce, whatever the service says of it; others are as the service says")
    func uncacheable() async throws {
        try await ServerFixture.run { fixture in
            let key = try ProofKey()
            let session = try await fixture.session()
            let url = fixture.gateway("/accounts")
            // Caches that know one of them obey it, and not Cache-Control.
            let ofSomeCaches = [
                "CDN-Cache-Control", "Example-CDN-Cache-Control", "Surrogate-Control", "Edge-Control",
                "X-Accel-Expires",
            ]
            for (said, told) in [
                ([], ["no-store"]), (["public, max-age=60"], ["no-store"]),
                (["public", "max-age=60"], ["no-store"]), (["private, No-Store"], ["private, No-Store"]),
            ] as [([String], [String])] {
                let fields = said.map { "Cache-Control: \($0)" } + ofSomeCaches.map { "\($0): max-age=60" }
                fixture.upstream.answer { _, peer in peer.answer(fields: fields) }
                let token = try await fixture.boundToken(session: session, to: key)
                let first = try await fixture.send(
                    "GET", url, try await fixture.proved("GET", url, token: token, by: key))
                #expect(first.status == 200 && first["DPoP-Nonce"] == nil, "\(first.text)")
                #expect(first.all("Cache-Control") == said)
                for name in ofSomeCaches { #expect(first.all(name) == ["max-age=60"], "\(name)") }
                var old = fixture.subject("GET", url, token: token)
                fixture.clock.advance(by: 150)
                old.issuedAt += 150
                let second = try await fixture.send("GET", url, ServerFixture.dpop(token, try await key.proof(old)))
                #expect(second.status == 200 && second["DPoP-Nonce"] != nil, "\(second.text)")
                #expect(second.all("Cache-Control") == told)
                for name in ofSomeCaches { #expect(second.all(name).isEmpty, "\(name)") }
            }
        }
    }

    @Test("A client with a bound token hears in its own scheme that the user must have signed in more strongly")
    func strongerSignIn() async throws {
        try await ServerFixture.run { fixture in
            let key = try ProofKey()
            let token = try await fixture.boundToken(session: try await fixture.session(), to: key)
            let url = fixture.gateway("/level")
            let answer = try await fixture.send("GET", url, try await fixture.proved("GET", url, token: token, by: key))
            #expect(answer.status == 401 && answer.all("WWW-Authenticate").count == 1)
            let field = try #require(answer["WWW-Authenticate"])
            #expect(field.hasPrefix("SSOADVICE "))
            for part in field.split(separator: ",") { #expect(part.contains("=") && part.first != " ") }
            let challenge = try #require(try answer.tokenChallenge)
            #expect(challenge.isScheme("DPoP") && challenge["error"] == "insufficient_user_authentication")
            #expect(challenge["acr_values"] == "urn:bank:level1 urn:bank:code")
            #expect(challenge["algs"] == "ES256 ES384 PS256 EdDSA")
        }
    }
}
