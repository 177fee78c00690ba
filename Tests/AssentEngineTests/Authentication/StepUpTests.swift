import AssentCore
import AssentStore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine

@Suite("Authentication: approving a transaction")
struct StepUpTests {
    private static let unreadable = EngineError.transactionUnreadable

    /// Signs Ana in and begins to approve a transaction.
    private func begin(
        _ fixture: JourneyFixture, _ journey: String = "Confirm"
    ) async throws -> (session: Secret, id: String, page: Page) {
        let session = try await fixture.signIn()
        let id = try await fixture.transaction(session, journey: journey)
        return (session, id, try await fixture.approve(id, session: session))
    }

    @Test("An approval shows what is bound, takes a code, and gives back the same token")
    func approved() async throws {
        let fixture = try await JourneyFixture()
        let session = try await fixture.signIn()
        let id = try await fixture.transaction(session)
        let first = try Page(
            await fixture.send(type: "composite_advice", value: AdviceXML.transaction(id), session: session))
        #expect(first.types == ["MetadataCallback", "TextOutputCallback", "ConfirmationCallback"])
        guard case .approval(let approval) = first.content.prompts.first else {
            Issue.record("the first callback must say what is bound")
            return
        }
        #expect(approval.id == id)
        #expect(approval.method == "POST")
        #expect(first.content.prompts.dropFirst().first == .textOutput("Amount: 200.00 EUR\nTo: Bob"))
        #expect(try await fixture.state(id) == "IN_PROGRESS")
        let second = try Page(await fixture.answer(first, [nil, nil, 0], session: session))
        #expect(second.types == ["TextInputCallback"])
        let success = try await fixture.answer(second, [.string(fixture.code())], session: session).success()
        #expect(success.token == session)
        #expect(!success.isNewSession)
        #expect(try await fixture.state(id) == "COMPLETED")
        #expect(try await fixture.count("sessions") == 1)
        let records = try await AuditLog(fixture.context).records(transactionID: id)
        #expect(records.filter { $0.event == .authenticate }.map(\.outcome) == [.success])
    }

    @Test("A journey that does not show the transaction itself has it on its first page")
    func shownAnyway() async throws {
        let fixture = try await JourneyFixture()
        let (session, id, page) = try await begin(fixture, "ConfirmByCode")
        #expect(page.types == ["MetadataCallback", "TextOutputCallback", "TextInputCallback"])
        _ = try await fixture.answer(page, [nil, nil, .string(fixture.code())], session: session).token()
        #expect(try await fixture.state(id) == "COMPLETED")
    }

    @Test("What asks nothing approves nothing")
    func silent() async throws {
        let fixture = try await JourneyFixture()
        let session = try await fixture.signIn()
        let id = try await fixture.transaction(session, journey: "Silent")
        await expectError(.loginFailed) { try await fixture.approve(id, session: session) }
        #expect(try await fixture.state(id) == "DECLINED")
    }

    @Test("A no, by default too, is a no", arguments: [nil, 1] as [JSONValue?])
    func declined(answer: JSONValue?) async throws {
        let fixture = try await JourneyFixture()
        let (session, id, page) = try await begin(fixture)
        await expectError(.declined) {
            try await fixture.answer(page, [nil, nil, answer], session: session)
        }
        #expect(try await fixture.state(id) == "DECLINED")
        #expect(try await fixture.audited() == ["refused declined", "success -"])
        #expect(try await fixture.sessions.live(token: session) != nil)
    }

    @Test("In AM's way a failed approval is a success on the wire, with the token that came, and approves nothing")
    func declinedAsAM() async throws {
        let fixture = try await JourneyFixture(failedTransaction: .success)
        let (session, id, page) = try await begin(fixture)
        let success = try await fixture.answer(page, [nil, nil, 1], session: session).success()
        #expect(success.token == session)
        #expect(!success.isNewSession)
        #expect(try await fixture.state(id) == "DECLINED")
    }

    @Test("Nobody without the session, or with another one, begins, goes on or reads the reply again")
    func foreign() async throws {
        let fixture = try await JourneyFixture()
        let session = try await fixture.signIn()
        let others: [Secret?] = [nil, try await fixture.signIn(), try await fixture.signIn("ben")]
        let id = try await fixture.transaction(session)
        for other in others {
            await #expect(throws: Self.unreadable) { try await fixture.approve(id, session: other) }
        }
        #expect(try await fixture.state(id) == "CREATED")
        let first = try await fixture.approve(id, session: session)
        for other in others {
            await #expect(throws: Self.unreadable) { try await fixture.answer(first, [nil, nil, 0], session: other) }
        }
        let second = try Page(await fixture.answer(first, [nil, nil, 0], session: session))
        let code = try fixture.code()
        for other in others {
            await #expect(throws: Self.unreadable) { try await fixture.answer(second, [.string(code)], session: other) }
        }
        _ = try await fixture.answer(second, [.string(code)], session: session).token()
        for other in others {
            await #expect(throws: Self.unreadable) { try await fixture.answer(second, [.string(code)], session: other) }
        }
    }

    @Test("An approval is begun once, and an unknown one never")
    func begunOnce() async throws {
        let fixture = try await JourneyFixture()
        let (session, id, _) = try await begin(fixture)
        await #expect(throws: Self.unreadable) { try await fixture.approve(id, session: session) }
        await #expect(throws: Self.unreadable) { try await fixture.approve("unknown", session: session) }
    }

    @Test("A query that is bound is in the text that the user approves, also beside lines of the body")
    func query() {
        func text(_ resource: String, _ display: [DisplayField]) -> CallbackPrompt? {
            PendingApproval(
                id: "t", journey: "Confirm", method: "POST", resource: resource, contentType: nil, bodySHA256: nil,
                display: display, expiresAt: 0
            ).prompts.last
        }
        let lines = [DisplayField(label: "To", value: "Bob")]
        #expect(text("https://a/b?to=Eve", lines) == .textOutput("To: Bob\nPOST https://a/b?to=Eve"))
        #expect(text("https://a/b", lines) == .textOutput("To: Bob"))
        #expect(text("https://a/b?to=Eve", []) == .textOutput("POST https://a/b?to=Eve"))
    }

    @Test("A last answer that comes twice at once is not refused because the other one has approved")
    func twiceAtOnce() async throws {
        let fixture = try await JourneyFixture()
        let (session, id, page) = try await begin(fixture, "ConfirmByCode")
        let answer = page.answered([nil, nil, .string(try fixture.code())])
        // The other one comes to its end after this one has found its step open.
        let database = InterruptedDatabase(fixture.database) { statement in
            guard statement.isRead, "\(statement.sql)".contains("FROM transactions") else { return false }
            _ = try await fixture.send(answer, session: session).token()
            return true
        }
        let context = try TransactionFixture.context(database, clock: fixture.clock)
        let slow = try JourneyFixture.authentication(
            context, fixture.passwords, fixture.oneTimePasswords, Transactions(context))
        let token = try await slow.authenticate(
            AuthenticateRequest(
                realm: "/alpha", authIndexType: nil, authIndexValue: nil, forceAuth: false, noSession: false,
                sessionToken: session, answer: answer, header: { _ in nil })
        ).token()
        #expect(token == session)
        #expect(database.wasInterrupted)
        #expect(try await fixture.state(id) == "COMPLETED")
    }

    @Test("A session that ends before the last answer takes the approval with it")
    func endedSession() async throws {
        let fixture = try await JourneyFixture()
        let (session, id, page) = try await begin(fixture, "ConfirmByCode")
        let live = try #require(try await fixture.sessions.live(token: session))
        _ = try await fixture.sessions.end(id: live.id)
        await #expect(throws: Self.unreadable) {
            try await fixture.answer(page, [nil, nil, .string(fixture.code())], session: session)
        }
        #expect(try await fixture.state(id) != "COMPLETED")
    }

    @Test("The transaction's time ends its journey")
    func expired() async throws {
        let fixture = try await JourneyFixture()
        let (session, id, page) = try await begin(fixture, "ConfirmByCode")
        fixture.clock.advance(by: 180)
        await #expect(throws: EngineError(.stepExpired)) {
            try await fixture.answer(page, [nil, nil, .string(fixture.code())], session: session)
        }
        #expect(try await fixture.state(id) != "COMPLETED")
    }

    @Test("Another user's password approves nothing")
    func otherUser() async throws {
        let fixture = try await JourneyFixture()
        let (session, id, page) = try await begin(fixture, "ConfirmByPassword")
        await expectError(.loginFailed) {
            try await fixture.answer(
                page, [nil, nil, .string("ben"), .string(JourneyFixture.password)], session: session)
        }
        #expect(try await fixture.state(id) == "DECLINED")
        #expect(try await fixture.audited() == ["refused differentUser", "success -"])
    }

    @Test("The code of the sign-in does not approve a transfer")
    func replayedCode() async throws {
        let fixture = try await JourneyFixture()
        let first = try await fixture.start("Login")
        let second = try Page(await fixture.answer(first, [.string("ana"), .string(JourneyFixture.password)]))
        let code = try fixture.code()
        let session = try await fixture.answer(second, [.string(code)]).token()
        let id = try await fixture.transaction(session, journey: "ConfirmByCode")
        let page = try await fixture.approve(id, session: session)
        await expectError(.loginFailed) {
            try await fixture.answer(page, [nil, nil, .string(code)], session: session)
        }
        #expect(try await fixture.state(id) == "DECLINED")
        fixture.clock.advance(by: 30)
        let again = try await fixture.transaction(session, journey: "ConfirmByCode")
        let fresh = try await fixture.approve(again, session: session)
        _ = try await fixture.answer(fresh, [nil, nil, .string(fixture.code())], session: session).token()
        #expect(try await fixture.state(again) == "COMPLETED")
    }

    @Test("An approval that is withdrawn while its journey runs is not completed, and nothing of the step is stored")
    func withdrawn() async throws {
        let journey = JourneyDefinition(
            name: "Withdrawn", entry: "credentials",
            nodes: [
                "credentials": JourneyFixture.credentials,
                "check": NodeDefinition(
                    "DataStoreDecisionNode", outcomes: ["true": .node("withdraw"), "false": .failure]),
                "withdraw": NodeDefinition("LastMomentNode", outcomes: ["outcome": .success]),
            ], transactionalOnly: true)
        let fixture = try await JourneyFixture(
            more: [journey],
            catalog: NodeCatalog([
                UsernameCollectorNode.self, PasswordCollectorNode.self, PageNode.self, DataStoreDecisionNode.self,
                RetryLimitDecisionNode.self, MessageNode.self, OathTokenVerifierNode.self, ZeroPageLoginNode.self,
                TransactionApprovalNode.self, ModifyAuthLevelNode.self, LastMomentNode.self,
            ]))
        let (session, id, page) = try await begin(fixture, "Withdrawn")
        let live = try #require(try await fixture.sessions.live(token: session))
        let work = fixture.derivations.count
        await LastMomentNode.$action.withValue({
            _ = try await fixture.transactions.decline(id: id, session: live)
        }) {
            for _ in 0..<2 {
                await #expect(throws: Self.unreadable) {
                    try await fixture.answer(
                        page, [nil, nil, .string("ana"), .string(JourneyFixture.password)], session: session)
                }
            }
        }
        // The first answer was refused at the end of its journey, when it was to be stored.
        #expect(fixture.derivations.count == work + 1)
        #expect(try await fixture.state(id) == "DECLINED")
        #expect(try await fixture.audited() == ["success -"])
    }

    @Test("A no stays a no when the journey leads on to success")
    func declinedButSuccessful() async throws {
        let fixture = try await JourneyFixture()
        let (session, id, page) = try await begin(fixture, "Lenient")
        await expectError(.declined) {
            try await fixture.answer(page, [nil, nil, 1], session: session)
        }
        #expect(try await fixture.state(id) == "DECLINED")
        #expect(try await fixture.audited() == ["refused declined", "success -"])
        let (again, other, second) = try await begin(fixture, "Lenient")
        #expect(try await fixture.answer(second, [nil, nil, 0], session: again).token() == again)
        #expect(try await fixture.state(other) == "COMPLETED")
    }

    @Test("Fifty equal last answers complete one approval once")
    func race() async throws {
        let fixture = try await JourneyFixture()
        let (session, id, page) = try await begin(fixture, "ConfirmByCode")
        let code = try fixture.code()
        let tokens = try await withThrowingTaskGroup(of: Secret.self) { group in
            for _ in 0..<50 {
                group.addTask {
                    try await fixture.answer(page, [nil, nil, .string(code)], session: session).token()
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(tokens.allSatisfy { $0 == session })
        let records = try await AuditLog(fixture.context).records(transactionID: id)
        #expect(records.filter { $0.event == .transactionComplete }.count == 1)
        #expect(records.filter { $0.event == .authenticate }.count == 1)
    }

    @Test("A thousand guesses over a thousand transactions: ten are looked at")
    func guesses() async throws {
        // Some ten thousand commits: too many to wait for a disk each time.
        let fixture = try await JourneyFixture(syncsToDisk: false)
        let session = try await fixture.signIn()
        let right = try fixture.code()
        for guess in 0..<1000 {
            let id = try await fixture.transaction(session, journey: "ConfirmByCode")
            let page = try await fixture.approve(id, session: session)
            // The right code comes late among the guesses, and is not looked at.
            let code = guess == 500 ? right : String(format: "%06d", guess)
            let expected: EngineError.Code = guess < 10 ? .loginFailed : .accountLocked
            await expectError(expected) {
                try await fixture.answer(page, [nil, nil, .string(code)], session: session)
            }
        }
        let reasons = try await AuditLog(fixture.context).newest(10_000).filter { $0.event == .otpVerify }
            .compactMap(\.reason)
        #expect(reasons.filter { $0 == "wrong" }.count == 10)
        #expect(reasons.filter { $0 == "locked" }.count == 990)
    }
}

/// Does what a test wants at this place of a journey.
private struct LastMomentNode: RunnableNode {
    static let name = "LastMomentNode"
    let outcomes = ["outcome"]

    @TaskLocal static var action: @Sendable () async throws -> Void = {}

    init(_ settings: NodeSettings) {}

    func process(_ context: inout NodeContext) async throws -> NodeResult {
        try await Self.action()
        return .outcome("outcome")
    }
}
