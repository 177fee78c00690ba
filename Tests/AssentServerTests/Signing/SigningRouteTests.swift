import AssentCore
import AssentSigningProtocol
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Transaction signing over HTTP")
struct SigningRouteTests {
    @Test("A shop asks, Ana's device approves with the number, and the shop gets receipt and evidence")
    func story() async throws {
        try await ServerFixture.run { fixture in
            let issuer = SigningOverHTTP(fixture)
            let session = try await fixture.session("ana")
            let (device, container) = try await issuer.enrolled(session: session)
            let token = try await issuer.shop()
            let made = try await issuer.create(token)
            #expect(made.status == 201)
            let txn = try #require(made.json["txn"]?.string.flatMap { SigningID(text: $0) })
            let number = try #require(made.json["number"]?.string)
            #expect(try await device.list(container.did).map(\.txn) == [txn])
            let document = try await device.fetch(txn, container).content
            #expect(document.body.relyingParty.name == "Example Shop" && document.body.text == "Pay 200.00 EUR to Bob")
            #expect(try await issuer.party("GET", "transactions/\(txn)", token).json["state"] == "PENDING")
            let receipt = try await device.approve(txn, container, number: number)
            let view = try await issuer.party("GET", "transactions/\(txn)?wait=25", token)
            #expect(view.json["state"] == "APPROVED" && view.json["status"] == "accept")
            #expect(view.json["receipt"]?.string == receipt.compact)
            let bundle = try await issuer.party("GET", "transactions/\(txn)/evidence", token)
            let identity = try await device.trust().identity.thumbprint
            let report = EvidenceVerification.report(on: try EvidenceBundle(reading: bundle.bytes), trust: identity)
            #expect(report.exitStatus == 0, "\(report.contradicted)")
            let own = try await issuer.ask("GET", "transactions/\(txn)/evidence", session: session)
            #expect(own.status == 200)
            let ben = try await fixture.session("ben")
            #expect(try await issuer.ask("GET", "transactions/\(txn)/evidence", session: ben).status == 404)
            #expect(try await issuer.party("DELETE", "transactions/\(txn)", token).json["code"] == "already_decided")
        }
    }

    @Test("Every answer to a device has a fresh nonce, also an error, which is a problem document")
    func nonces() async throws {
        try await ServerFixture.run { fixture in
            let issuer = SigningOverHTTP(fixture)
            let (device, container) = try await issuer.enrolled(session: try await fixture.session("ana"))
            let body = try await device.sealed(EmptyBody().encoded(), sender: container.did.text)
            let proof = try await device.proof(container.did, path: "status", body: body)
            let good = try await issuer.raw("status", proof: proof, body: body)
            let bad = try await issuer.raw("status", proof: nil, body: body)
            #expect(good.status == 200 && bad.status == 401)
            #expect(bad["Content-Type"] == "application/problem+json" && bad.json["code"] == "bad_proof")
            let nonces = [good["TSP-Nonce"], bad["TSP-Nonce"]]
            #expect(!nonces.contains(nil) && Set(nonces).count == 2)
            fixture.clock.advance(by: 301)
            let late = try await issuer.raw("status", proof: proof, body: body)
            #expect(late.status == 401 && late.json["code"] == "use_nonce")
            let again = try await device.proof(
                container.did, path: "status", body: body, nonce: late["TSP-Nonce"])
            #expect(try await issuer.raw("status", proof: again, body: body).status == 200)
            #expect(try await issuer.raw("status", proof: again, body: body, type: "text/plain").status == 415)
            let large = try await issuer.raw("status", proof: again, body: String(repeating: "a", count: 70_000))
            #expect(large.status == 413 && large.json["code"] == "too_large")
        }
    }

    @Test("Users manage their own devices with a session, and nobody without one")
    func containers() async throws {
        try await ServerFixture.run { fixture in
            let issuer = SigningOverHTTP(fixture)
            let session = try await fixture.session("ana")
            let (device, container) = try await issuer.enrolled(session: session)
            let did = container.did.text
            let list = try await issuer.ask("GET", "containers", session: session).json["containers"]?.array
            #expect(list?.count == 1 && list?.first?["did"]?.string == did && list?.first?["state"] == "ACTIVE")
            #expect(list?.first?["keys"]?.array?.count == 4)
            let ben = try await fixture.session("ben")
            #expect(try await issuer.ask("GET", "containers?user=ana", session: ben).status == 403)
            let foreign = try await issuer.ask("POST", "containers/\(did)", session: ben, ["action": "revoke"])
            #expect(foreign.json["code"] == "unknown_container")
            func change(_ body: JSONValue) async throws -> Answer {
                try await issuer.ask("POST", "containers/\(did)", session: session, body)
            }
            #expect(try await change(["action": "rename", "name": "phone"]).json == ["state": "ACTIVE"])
            #expect(try await change(["action": "block"]).status == 403)
            #expect(try await change(["action": "explode"]).status == 400)
            #expect(try await change(["action": "revoke", "more": 1]).status == 400)
            #expect(try await change(["action": "revoke"]).json == ["state": "REVOKED"])
            #expect(try await device.status(container.did).state == .revoked)
            let nobody = try await fixture.send("GET", fixture.signing("containers"))
            #expect(nobody.status == 401 && nobody.json["code"] == "unauthorized")
        }
    }

    @Test("A cookie alone, which a browser adds to other sites' requests, changes nothing")
    func forgery() async throws {
        try await ServerFixture.run { fixture in
            let cookie = [("Cookie", "\(ServerFixture.cookieName)=\(try await fixture.session("ana"))")]
            let url = fixture.signing("invites")
            #expect(try await fixture.send("POST", url, cookie).status == 403)
            let meant = cookie + [("X-Requested-With", "page")]
            #expect(try await fixture.send("POST", url, meant).status == 201)
            let foreign = meant + [("Origin", "https://evil.example")]
            #expect(try await fixture.send("POST", url, foreign).status == 403)
            fixture.clock.advance(by: 301)
            let old = try await fixture.send("POST", url, meant)
            #expect(old.status == 403 && old.json["code"] == "fresh_authentication_required")
        }
    }

    @Test("An invite is known to its user only, and counts no more when it was withdrawn")
    func invites() async throws {
        try await ServerFixture.run { fixture in
            let issuer = SigningOverHTTP(fixture)
            let session = try await fixture.session("ana")
            let invite = try await issuer.invite(session: session)
            let path = "invites/\(invite.pid)"
            #expect(try await issuer.ask("GET", path, session: session).json == ["state": "OPEN"])
            let ben = try await fixture.session("ben")
            #expect(try await issuer.ask("GET", path, session: ben).status == 404)
            #expect(try await issuer.ask("DELETE", path, session: ben).status == 404)
            let digits = try await issuer.ask("POST", path + "/digits", session: session, ["digits": "1234 5678"])
            #expect(digits.status == 410 && digits.json["code"] == "enrolment_void")
            #expect(digits.json["title"] == "Gone" && digits.json["status"] == 410)
            let device = try TestDevice(issuer)
            let container = try await device.enrol(invite.code)
            let wrong: JSONValue = ["digits": container.digits == "00000000" ? "00000001" : "00000000"]
            let refused = try await issuer.ask("POST", path + "/digits", session: session, wrong)
            #expect(refused.status == 403 && refused.json["code"] == "digits_wrong")
            #expect(refused.json["remaining"] == 2)
            #expect(try await issuer.ask("DELETE", path, session: session).status == 204)
            #expect(try await device.status(container.did).state == .void)
        }
    }

    @Test("Only a confidential client with the scope asks, with a key for repetitions, and sees its own")
    func relyingParties() async throws {
        try await ServerFixture.run { fixture in
            let issuer = SigningOverHTTP(fixture)
            let token = try await issuer.shop()
            let first = try await issuer.create(token, key: "one")
            #expect(try await issuer.create(token, key: "one").json == first.json)
            let other = try await issuer.create(token, key: "one") { $0["ttl"] = 60 }
            #expect(other.status == 400 && other.json["code"] == "invalid_request")
            #expect(try await issuer.create(try await issuer.shop(scope: "accounts")).status == 401)
            let session = try await fixture.session("ana")
            let app = try await fixture.tokens(session: session).access
            #expect(try await issuer.create(app).status == 403)
            #expect(try await issuer.create("x").status == 401)
            let kiosk = try await fixture.tokens(session: session, scope: "openid signing", client: "kiosk").access
            let refused = try await issuer.create(kiosk)
            #expect(refused.status == 403 && refused.json["code"] == "token_kind")
            #expect(refused["WWW-Authenticate"] == nil)
            #expect(try await issuer.create(token) { $0["user"] = "nobody" }.status == 404)
            #expect(try await issuer.create(token) { $0["more"] = 1 }.status == 400)
            #expect(try await issuer.create(token) { $0["ttl"] = 5 }.status == 400)
            let txn = try #require(first.json["txn"]?.string)
            #expect(try await issuer.party("GET", "transactions/\(txn)?wait=26", token).status == 400)
            #expect(try await issuer.party("DELETE", "transactions/\(txn)", token).status == 204)
            let view = try await issuer.party("GET", "transactions/\(txn)", token)
            #expect(view.json["state"] == "CANCELED" && view.json["reason"] == "client")
            #expect(try await issuer.party("GET", "transactions/none", token).json["code"] == "tx_unknown")
        }
    }

    @Test("A realm without transaction signing has no issuer")
    func otherRealm() async throws {
        try await ServerFixture.run { fixture in
            for url in [
                fixture.signing("configuration", realm: "beta"), fixture.signing("configuration", realm: "none"),
                fixture.signing("elsewhere"),
            ] {
                let reply = try await fixture.send("GET", url)
                #expect(reply.status == 404 && reply.json["code"] == "not_found")
            }
        }
    }

    @Test("Every error of the protocol has the status of the page")
    func statuses() throws {
        for code in SigningErrorCode.sent {
            #expect(
                SigningRefusal(code).status != 400
                    || [
                        .invalidRequest, .versionUnsupported, .unknownKey,
                    ].contains(code), "\(code)")
        }
    }
}
