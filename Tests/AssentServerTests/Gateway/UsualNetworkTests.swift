import AssentCore
import AssentStore
import AssentTesting
import Foundation
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
    private static func run(_ body: (ServerFixture) async throws -> Void) async throws {
        try await ServerFixture.run(
            configuring: { configuration in
                configuration.trustedProxies.networks = ["127.0.0.1", "::1"].compactMap(TrustedProxies.Network.init)
            },
            editing: { text in
                text.replacingOccurrences(of: "          - name: note\n", with: policy + "          - name: note\n")
            }, body)
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
