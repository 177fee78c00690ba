#if PostgreSQL && os(Linux)
import AssentCore
import AssentStore
import AssentTesting
import Foundation
import StoreTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite(
    "Two nodes on one database: what is single use is used once between them",
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct NodeRaceTests {
    private static let form = [("Content-Type", "application/x-www-form-urlencoded")]

    /// A payment with a transaction.
    private static func pay(_ node: ServerFixture, _ id: String, session: String) async throws -> Answer {
        try await node.send(
            "POST", node.gateway("/nods?_txid=\(id)"), ServerFixture.jsonFields + ServerFixture.session(session),
            text: FixtureBody.transfer)
    }

    @Test(
        "A payment that one node refuses is approved at the other and spent once, whatever their clocks say",
        arguments: [0.0, 30, -30])
    func story(skew: TimeInterval) async throws {
        try await TwoNodes.run { nodes in
            nodes.second.clock.advance(by: skew)
            let session = try await nodes.first.signIn()
            for (asks, approves) in [(nodes.first, nodes.second), (nodes.second, nodes.first)] {
                let refused = try await asks.send(
                    "POST", asks.gateway("/nods"), ServerFixture.jsonFields + ServerFixture.session(session),
                    text: FixtureBody.transfer)
                #expect(refused.status == 401)
                let id = try ServerFixture.transactionID(refused)
                #expect(try await Self.pay(asks, id, session: session).status == 403)
                #expect(try await approves.approve(id, session: session).status == 200)
                let before = nodes.forwarded.count
                #expect(try await Self.pay(asks, id, session: session).status == 201)
                for node in nodes.both { #expect(try await Self.pay(node, id, session: session).status == 409) }
                #expect(nodes.forwarded.count == before + 1)
            }
        }
    }

    @Test("Of a hundred requests with one transaction, half at each node, one reaches a service; the same for ten more")
    func takes() async throws {
        try await TwoNodes.run { nodes in
            let session = try await nodes.first.session()
            for round in 1...11 {
                let id = try await nodes.first.completedTransaction(session: session)
                let answers = try await nodes.race(round == 1 ? 100 : 20) { node, _ in
                    try await Self.pay(node, id, session: session)
                }
                #expect(answers.count { $0.status == 201 } == 1)
                #expect(answers.allSatisfy { [201, 409].contains($0.status) })
                #expect(nodes.forwarded.count == round)
            }
        }
    }

    @Test("One code at both nodes at once: one family of tokens at most, and in the end none")
    func codes() async throws {
        try await TwoNodes.run { nodes in
            let verifier = SystemRandom().token()
            let redirect = try await nodes.first.authorize(
                session: try await nodes.first.session(),
                [("code_challenge", Base64URL.encode(SHA2.sha256(verifier.utf8)))])
            let code = try #require(redirect.parameter("code"))
            let answers = try await nodes.race(40) { node, _ in
                try await node.send(
                    "POST", node.oauth("access_token"), Self.form,
                    text: ServerFixture.query([
                        ("grant_type", "authorization_code"), ("code", code), ("client_id", "bank-app"),
                        ("redirect_uri", "http://127.0.0.1/callback"), ("code_verifier", verifier),
                    ]))
            }
            #expect(answers.count { $0.status == 200 } <= 1)
            for answer in answers where answer.status == 200 {
                let access = ServerFixture.bearer(try #require(answer.json["access_token"]?.string))
                for node in nodes.both {
                    #expect(try await node.send("GET", node.oauth("userinfo"), access).status == 401)
                }
            }
        }
    }

    @Test("One refresh token at both nodes at once by one attempt: one successor for all, and the family lives")
    func refresh() async throws {
        try await TwoNodes.run { nodes in
            let tokens = try await nodes.first.tokens(session: try await nodes.first.session())
            let answers = try await nodes.race(40) { node, _ in
                try await node.refresh(tokens.refresh, attempt: "an-attempt-of-one-device")
            }
            #expect(answers.allSatisfy { $0.status == 200 })
            let successors = Set(answers.compactMap { $0.json["refresh_token"]?.string })
            #expect(successors.count == 1)
            let access = ServerFixture.bearer(try #require(answers.first?.json["access_token"]?.string))
            for node in nodes.both {
                #expect(try await node.send("GET", node.oauth("userinfo"), access).status == 200)
            }
        }
    }

    @Test("One answer to a step of a journey at both nodes at once signs in once")
    func steps() async throws {
        try await TwoNodes.run { nodes in
            let account = try nodes.first.account("ana")
            for round in 1...5 {
                let page = try await nodes.first.send(
                    "POST", nodes.first.json("authenticate?authIndexType=service&authIndexValue=Quick"))
                let filled = ServerFixture.filled(page.json) { type in
                    type == "NameCallback" ? "ana" : .string(account.password.reveal())
                }.serialized()
                let isAnswered: @Sendable () async throws -> Bool = {
                    try await nodes.second.rows("SELECT id FROM journey_steps WHERE answered_at IS NULL").isEmpty
                }
                let answers = try await nodes.passingTime(once: isAnswered) {
                    try await nodes.race(20) { node, _ in
                        try await node.send(
                            "POST", node.json("authenticate"), [("Content-Type", "application/json")], text: filled)
                    }
                }
                let tokens = answers.compactMap { $0.json["tokenId"]?.string }
                // Each waits for the one reply, at whichever node it is made.
                #expect(Set(tokens).count == 1 && tokens.count == answers.count)
                #expect(try await nodes.first.count("sessions") == Int64(round))
            }
        }
    }

    @Test("One one-time password at both nodes at once is good for one sign-in")
    func oneTimePasswords() async throws {
        try await TwoNodes.run { nodes in
            let account = try nodes.first.account("ana")
            for round in 1...5 {
                for node in nodes.both { node.clock.advance(by: 30) }
                let code = try nodes.first.currentCode("ana")
                let answers = try await nodes.race(6) { node, _ in
                    try await node.runJourney([("authIndexType", "service"), ("authIndexValue", "Login")]) { type in
                        switch type {
                        case "NameCallback": "ana"
                        case "PasswordCallback": .string(account.password.reveal())
                        case "TextInputCallback": .string(code)
                        default: nil
                        }
                    }
                }
                #expect(answers.count { $0.json["tokenId"] != nil } == 1)
                #expect(try await nodes.first.count("sessions") == Int64(round))
            }
        }
    }

    @Test("Approved at one node and declined at the other at once: one of both, and both nodes know which")
    func decisions() async throws {
        try await TwoNodes.run { nodes in
            let session = try await nodes.first.session()
            for _ in 1...6 {
                let refused = try await nodes.first.send(
                    "POST", nodes.first.gateway("/nods"),
                    ServerFixture.jsonFields + ServerFixture.session(session), text: FixtureBody.transfer)
                let id = try ServerFixture.transactionID(refused)
                _ = try await nodes.race(2) { node, index in
                    try await node.runJourney(
                        [("authIndexType", "transaction"), ("authIndexValue", id)], ServerFixture.session(session)
                    ) { $0 == "ConfirmationCallback" ? index == 0 ? 0 : 1 : nil }
                }
                let row = try await nodes.second.rows("SELECT state FROM transactions WHERE id = \(id)").first
                let state = try row?.text("state")
                let before = nodes.forwarded.count
                let answers = try await nodes.race(4) { node, _ in try await Self.pay(node, id, session: session) }
                let isPaid = answers.contains { $0.status == 201 }
                #expect(["COMPLETED", "DECLINED"].contains(state))
                #expect(isPaid == (state == "COMPLETED"))
                #expect(nodes.forwarded.count == before + (isPaid ? 1 : 0))
            }
        }
    }

    @Test("What ends at one node has ended at the other")
    func ends() async throws {
        try await TwoNodes.run { nodes in
            let session = try await nodes.first.session()
            let tokens = try await nodes.first.tokens(session: session)
            let (mine, bearer) = (ServerFixture.session(session), ServerFixture.bearer(tokens.access))
            let accounts = nodes.second.gateway("/accounts")
            #expect(try await nodes.second.send("GET", accounts, mine).status == 200)
            let out = nodes.first.json("sessions?_action=logout")
            #expect(try await nodes.first.send("POST", out, mine).status == 200)
            #expect(try await nodes.second.send("GET", accounts, mine).status == 401)
            #expect(try await nodes.second.send("GET", nodes.second.oauth("userinfo"), bearer).status == 401)
            #expect(try await nodes.second.refresh(tokens.refresh).error == "invalid_grant")
        }
    }
}
#endif
