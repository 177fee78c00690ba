import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import Foundation
import SigningTesting
import Testing

@testable import AssentServer

@Suite("Networks from which users come, at the doors of the server")
struct UsualNetworkTests {
    private static let field = "X-Forwarded-For"

    private static let policy = """
                  - name: usual
                    resources: ["https://localhost:*/usual"]
                    actionValues: {POST: true}
                    subject: {type: AuthenticatedUsers}
                    condition:
                      type: OR
                      conditions:
                        - {type: UsualNetwork, days: 30, level: 0}
                        - {type: Transaction, strategySpecifier: Nod, ttl: 180}
                    bind: [method, query, body]

        """

    /// A server behind a proxy, with a policy that asks from networks that are not usual.
    static func run(
        editing change: (String) -> String = { $0 }, _ body: (ServerFixture) async throws -> Void
    ) async throws {
        try await ServerFixture.run(
            configuring: { configuration in
                configuration.trustedProxies.networks = ["127.0.0.1", "::1"].compactMap(TrustedProxies.Network.init)
            },
            editing: { text in
                change(
                    text.replacingOccurrences(
                        of: "          - name: note\n", with: policy + "          - name: note\n"))
            }, body)
    }

    /// A file whose policy has the user sign on a device, and not nod.
    private static func signing(_ text: String) -> String {
        let journey = """
                  Sign:
                    entry: sign
                    transactionalOnly: true
                    nodes:
                      sign:
                        type: SignTransactionNode
                        config: {template: confirm}
                        outcomes: {approve: success, decline: failure, expired: failure, noDevice: failure}

            """
        return text.replacing("      Nod:\n", with: journey + "      Nod:\n", maxReplacements: 1)
            .replacing(
                "        login:\n", with: "        confirm: {title: Confirm}\n        login:\n", maxReplacements: 1
            )
            .replacing(policy, with: policy.replacing("strategySpecifier: Nod", with: "strategySpecifier: Sign"))
    }

    private static func signIn(_ fixture: ServerFixture, from address: String) async throws -> String {
        let password = try fixture.account("ana").password.reveal()
        let reply = try await fixture.runJourney(
            [("authIndexType", "service"), ("authIndexValue", "Quick")], [(field, address)]
        ) { type in
            switch type {
            case "NameCallback": "ana"
            case "PasswordCallback": .string(password)
            default: nil
            }
        }
        return try #require(reply.json["tokenId"]?.string)
    }

    private static func pay(
        _ fixture: ServerFixture, _ session: String, from address: String, id: String? = nil
    ) async throws -> Answer {
        try await fixture.send(
            "POST", fixture.gateway("/usual" + (id.map { "?_txid=\($0)" } ?? "")),
            ServerFixture.jsonFields + ServerFixture.session(session) + [(field, address)],
            text: FixtureBody.transfer)
    }

    @Test("A sign-in and an approval over REST make their network usual, seen from behind the proxy")
    func story() async throws {
        try await Self.run { fixture in
            let session = try await Self.signIn(fixture, from: "192.0.2.7")
            #expect(try await Self.pay(fixture, session, from: "192.0.2.200").status == 201)
            let refused = try await Self.pay(fixture, session, from: "198.51.100.1")
            #expect(refused.status == 401)
            // What a client writes stands before what the proxy adds, and is not believed.
            #expect(try await Self.pay(fixture, session, from: "192.0.2.7, 198.51.100.1").status == 401)
            let id = try ServerFixture.transactionID(refused)
            let approved = try await fixture.runJourney(
                [("authIndexType", "transaction"), ("authIndexValue", id)],
                ServerFixture.session(session) + [(Self.field, "198.51.100.1")]
            ) { $0 == "ConfirmationCallback" ? 0 : nil }
            #expect(approved.json["tokenId"]?.string == session)
            // What was approved happens once, and the next request is not asked about.
            #expect(try await Self.pay(fixture, session, from: "198.51.100.1", id: id).status == 201)
            #expect(try await Self.pay(fixture, session, from: "198.51.100.1", id: id).status == 409)
            #expect(try await Self.pay(fixture, session, from: "198.51.100.1").status == 201)
            #expect(try await Self.pay(fixture, session, from: "203.0.113.1").status == 401)
            #expect(fixture.upstream.requests.count == 3)
        }
    }

    @Test("What the user's device approves from another network is done, and makes that network usual")
    func device() async throws {
        try await Self.run(editing: Self.signing) { fixture in
            let away = "198.51.100.1"
            let session = try await Self.signIn(fixture, from: "192.0.2.7")
            let issuer = SigningOverHTTP(fixture)
            let (device, container) = try await issuer.enrolled(session: session)
            #expect(try await Self.pay(fixture, session, from: "192.0.2.7").status == 201)
            let refused = try await Self.pay(fixture, session, from: away)
            #expect(refused.status == 401)
            let id = try ServerFixture.transactionID(refused)
            let url = fixture.json("authenticate")
            let fields = ServerFixture.session(session) + [(Self.field, away)]
            let query = ServerFixture.query([("authIndexType", "transaction"), ("authIndexValue", id)])
            let page = try await fixture.send("POST", url + "?" + query, fields)
            #expect(page.json["authId"] != nil, "\(page.text)")
            let txn = try #require(try await device.list(container.did).first).txn
            _ = try await device.approve(txn, container)
            // It counts when the journey ends, and not before.
            #expect(try await Self.pay(fixture, session, from: away).status == 401)
            let approved = try await fixture.send(
                "POST", url, fields + [("Content-Type", "application/json")], body: page.json.serializedBytes())
            #expect(approved.json["tokenId"]?.string == session, "\(approved.text)")
            #expect(try await Self.pay(fixture, session, from: away, id: id).status == 201)
            #expect(try await Self.pay(fixture, session, from: away).status == 201)
            #expect(try await Self.pay(fixture, session, from: "203.0.113.1").status == 401)
            #expect(fixture.upstream.requests.count == 3)
        }
    }

    @Test("A sign-in on the server's page makes its network usual too")
    func page() async throws {
        try await Self.run { fixture in
            let browser = Browser(fixture)
            let sent = try await browser.open(fixture.authorizationURL())
            let first = try await browser.open(try #require(sent.answer["Location"]))
            let password = try fixture.account("ana").password.reveal()
            let second = try await browser.submit(first, [("IDToken1", "ana"), ("IDToken2", password)])
            _ = try await browser.submit(second, [("IDToken1", try fixture.freshCode("ana"))])
            let session = try #require(browser.session)
            #expect(try await fixture.count("usual_networks") == 1)
            // It has come from here, without a proxy.
            #expect(try await Self.pay(fixture, session, from: "127.0.0.77").status == 201)
            #expect(try await Self.pay(fixture, session, from: "198.51.100.1").status == 401)
        }
    }

    @Test("Without a policy that asks for it, nothing is remembered")
    func unasked() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.signIn()
            _ = try await fixture.completedTransaction(session: session)
            #expect(try await fixture.count("usual_networks") == 0)
        }
    }
}
