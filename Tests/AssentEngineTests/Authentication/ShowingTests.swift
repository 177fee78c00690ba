import AssentCore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Authentication: pages that are shown again")
struct ShowingTests {
    private func request(_ session: Secret? = nil, realm: String = "/alpha") -> AuthenticateRequest {
        AuthenticateRequest(realm: realm, sessionToken: session)
    }

    @Test("A page that waits is shown as it was, says when its answer was refused, and is gone once it is answered")
    func signIn() async throws {
        let fixture = try await JourneyFixture()
        let engine = fixture.authentication
        let first = try await fixture.start("Login")
        let authID = first.authID
        let shown = try await engine.page(authID: authID, request())
        #expect(shown.content == first.content && !shown.isAskedAgain && shown.typedName == nil)
        guard case .page(let second) = try await fixture.answer(first, ["ana", "wrong"]) else {
            Issue.record("a wrong password leads to the page again")
            return
        }
        #expect(second.isAskedAgain && second.content == first.content)
        let again = try await engine.page(authID: second.authID.reveal(), request())
        #expect(again.isAskedAgain && again.content == second.content)
        // The name stands there already, and the password does not.
        #expect(second.typedName == "ana" && again.typedName == "ana")
        await expectError(.stepAlreadyAnswered) { try await engine.page(authID: authID, request()) }
        await expectError(.invalidRequest) {
            try await engine.page(authID: second.authID.reveal(), request(realm: "/beta"))
        }
        await expectError(.authIDUnreadable) { try await engine.page(authID: "x", request()) }
        fixture.clock.advance(by: 3600)
        await expectError(.stepExpired) { try await engine.page(authID: second.authID.reveal(), request()) }
    }

    @Test("Its own session sees where an approval stands, at each step; nobody else sees anything")
    func approval() async throws {
        let fixture = try await JourneyFixture()
        let engine = fixture.authentication
        let session = try await fixture.signIn()
        let id = try await fixture.transaction(session)
        #expect(try await engine.stage(transactionID: id, request(session)) == .waiting)
        let first = try await fixture.approve(id, session: session)
        guard case .page(let shown) = try await engine.stage(transactionID: id, request(session)) else {
            Issue.record("the journey waits at its first page")
            return
        }
        #expect(shown.content == first.content && shown.approving?.username == "ana")
        // An answer to the page that was shown again counts as one to the page.
        let second = try Page(await fixture.answer(Page(.page(shown)), [nil, nil, 0], session: session))
        guard case .page(let later) = try await engine.stage(transactionID: id, request(session)) else {
            Issue.record("the journey waits at its second page")
            return
        }
        #expect(later.content == second.content && later.approving?.approval.display.count == 2)
        let ben = try await fixture.signIn("ben")
        let other = try await fixture.signIn()
        for stranger in [nil, ben, other] {
            await expectError(.transactionUnreadable) {
                try await engine.stage(transactionID: id, request(stranger))
            }
            await expectError(.transactionUnreadable) {
                try await engine.page(authID: later.authID.reveal(), request(stranger))
            }
        }
        await expectError(.transactionUnreadable) { try await engine.stage(transactionID: "x", request(session)) }
        _ = try await fixture.answer(second, [.string(fixture.code())], session: session).token()
        #expect(try await engine.stage(transactionID: id, request(session)) == .approved(isSafe: false))
        fixture.clock.advance(by: 3600)
        await expectError(.transactionUnreadable) { try await engine.stage(transactionID: id, request(session)) }
    }

    @Test("A page that has asked again often is shown to its session as well")
    func patient() async throws {
        let fixture = try await PatientNode.fixture(seconds: 300, transactionalOnly: true)
        let session = try await fixture.signIn()
        let id = try await fixture.transaction(session, journey: "Patient")
        var page = try await fixture.approve(id, session: session)
        for _ in 0..<70 {
            page = try Page(await fixture.answer(page, [], session: session))
            guard case .page(let shown) = try await fixture.authentication.stage(transactionID: id, request(session))
            else {
                Issue.record("the journey waits")
                return
            }
            #expect(shown.content == page.content)
            page = try Page(.page(shown))
        }
    }

    @Test("Of a request that only reads a browser is told that it can send it", arguments: ["GET", "HEAD", "PUT"])
    func safe(method: String) async throws {
        let fixture = try await JourneyFixture()
        let session = try await fixture.signIn()
        let id = try await fixture.transaction(session, method: method)
        let page = try await fixture.approve(id, session: session)
        let code = try Page(await fixture.answer(page, [nil, nil, 0], session: session))
        _ = try await fixture.answer(code, [.string(fixture.code())], session: session).token()
        let stage = try await fixture.authentication.stage(transactionID: id, request(session))
        #expect(stage == .approved(isSafe: method != "PUT"))
    }

    @Test(
        "What was declined stays to be seen as that, and what was answered wrongly as that, also when AM's 200 ends it")
    func declined() async throws {
        for failed in [FailedTransaction.failure, .success] {
            let fixture = try await JourneyFixture(failedTransaction: failed)
            let session = try await fixture.signIn()
            let id = try await fixture.transaction(session)
            let page = try await fixture.approve(id, session: session)
            _ = try? await fixture.answer(page, [nil, nil, 1], session: session)
            #expect(try await fixture.authentication.stage(transactionID: id, request(session)) == .declined)
            let other = try await fixture.transaction(session)
            let approved = try await fixture.approve(other, session: session)
            let asked = try Page(await fixture.answer(approved, [nil, nil, 0], session: session))
            _ = try? await fixture.answer(asked, ["000000"], session: session)
            #expect(try await fixture.authentication.stage(transactionID: other, request(session)) == .failed)
        }
    }
}
