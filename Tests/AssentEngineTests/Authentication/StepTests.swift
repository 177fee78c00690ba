import AssentCore
import AssentStore
import AssentTesting
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentEngine

@Suite("Authentication: each step is answered once")
struct StepTests {
    private static let credentials: [JSONValue?] = [.string("ana"), .string(JourneyFixture.password)]

    @Test("The same answer within thirty seconds gets the very same reply")
    func repeated() async throws {
        let fixture = try await JourneyFixture()
        let first = try await fixture.start("Login")
        let second = try Page(await fixture.answer(first, Self.credentials))
        #expect(try Page(await fixture.answer(first, Self.credentials)).authID == second.authID)
        let code = try fixture.code()
        let token = try await fixture.answer(second, [.string(code)]).token()
        fixture.clock.advance(by: 29)
        #expect(try await fixture.answer(second, [.string(code)]).token() == token)
        #expect(try await fixture.count("sessions") == 1)
        #expect(try await fixture.audited() == ["success -"])
        fixture.clock.advance(by: 1)
        await #expect(throws: EngineError(.stepAlreadyAnswered)) {
            try await fixture.answer(second, [.string(code)])
        }
        fixture.clock.advance(by: 300)
        await #expect(throws: EngineError(.stepExpired)) {
            try await fixture.answer(second, [.string(code)])
        }
    }

    @Test("Another answer to an answered step is refused and changes nothing")
    func otherAnswer() async throws {
        let fixture = try await JourneyFixture()
        let first = try await fixture.start("Login")
        let second = try Page(await fixture.answer(first, Self.credentials))
        let before = try await fixture.count("journey_steps")
        let work = fixture.derivations.count
        await expectError(.stepAnsweredDifferently) {
            try await fixture.answer(first, [.string("ben"), .string(JourneyFixture.password)])
        }
        #expect(try await fixture.count("journey_steps") == before)
        #expect(fixture.derivations.count == work)
        _ = try await fixture.answer(second, [.string(fixture.code())]).token()
    }

    @Test("A failure is repeated as well")
    func repeatedFailure() async throws {
        let fixture = try await JourneyFixture()
        let page = try await fixture.start("Password")
        for _ in 0..<2 {
            await #expect(throws: EngineError(.loginFailed)) {
                try await fixture.answer(page, [.string("ana"), .string("wrong")])
            }
        }
        #expect(try await fixture.audited() == ["refused loginFailure"])
    }

    @Test("A step is too late at the journey's end, not before")
    func late() async throws {
        let fixture = try await JourneyFixture()
        let inTime = try await fixture.start("Password")
        let tooLate = try await fixture.start("Password")
        fixture.clock.advance(by: 299)
        _ = try await fixture.answer(inTime, Self.credentials).token()
        fixture.clock.advance(by: 1)
        await #expect(throws: EngineError(.stepExpired)) {
            try await fixture.answer(tooLate, Self.credentials)
        }
        #expect(try await fixture.count("sessions") == 1)
        // A node whose clock is a minute behind may still look for them.
        fixture.clock.advance(by: 89)
        #expect(try await fixture.authentication.purge() == 0)
        // Purged, the answer stays the same.
        fixture.clock.advance(by: 1)
        #expect(try await fixture.authentication.purge() == 2)
        await #expect(throws: EngineError(.stepExpired)) {
            try await fixture.answer(tooLate, Self.credentials)
        }
    }

    @Test("A reply with a session's token is gone when nobody gets it again, long before the journey's time is over")
    func replies() async throws {
        let fixture = try await JourneyFixture()
        let page = try await fixture.start("Password")
        let token = try await fixture.answer(page, Self.credentials).token()
        func replies() async throws -> Int64 {
            let sql: SQL = "SELECT count(*) AS n FROM journey_steps WHERE length(sealed_reply) > 0"
            return try await fixture.database.run(.read(sql)).first?.integer("n") ?? -1
        }
        fixture.clock.advance(by: 29)
        #expect(try await fixture.authentication.purge() == 0)
        #expect(try await replies() == 1)
        #expect(try await fixture.answer(page, Self.credentials).token() == token)
        fixture.clock.advance(by: 1)
        #expect(try await fixture.authentication.purge() == 0)
        #expect(try await replies() == 0)
        await #expect(throws: EngineError(.stepAlreadyAnswered)) {
            try await fixture.answer(page, Self.credentials)
        }
        #expect(try await fixture.count("journey_steps") == 1)
    }

    @Test("A reply is not given again for as long as the clock was set back, nor once it was deleted")
    func replyAhead() async throws {
        let fixture = try await JourneyFixture()
        let page = try await fixture.start("Password")
        let token = try await fixture.answer(page, Self.credentials).token()
        fixture.clock.advance(by: -30)
        #expect(try await fixture.answer(page, Self.credentials).token() == token)
        fixture.clock.advance(by: -1)
        await #expect(throws: EngineError(.stepAlreadyAnswered)) {
            try await fixture.answer(page, Self.credentials)
        }
        _ = try await fixture.authentication.purge()
        fixture.clock.advance(by: 31)
        await #expect(throws: EngineError(.stepAlreadyAnswered)) {
            try await fixture.answer(page, Self.credentials)
        }
    }

    @Test("Pages do not prolong a journey")
    func totalTime() async throws {
        let fixture = try await JourneyFixture()
        let first = try await fixture.start("Login")
        fixture.clock.advance(by: 200)
        let second = try Page(await fixture.answer(first, Self.credentials))
        fixture.clock.advance(by: 100)
        await #expect(throws: EngineError(.stepExpired)) {
            try await fixture.answer(second, [.string(fixture.code())])
        }
    }

    @Test("Fifty equal last answers at once give one session")
    func raceOfEqualAnswers() async throws {
        let fixture = try await JourneyFixture()
        let page = try await fixture.start("Password")
        let tokens = try await withThrowingTaskGroup(of: Secret.self) { group in
            for _ in 0..<50 {
                group.addTask { try await fixture.answer(page, Self.credentials).token() }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(tokens.count == 50)
        #expect(tokens.allSatisfy { $0 == tokens.first })
        #expect(try await fixture.count("sessions") == 1)
        #expect(try await fixture.audited() == ["success -"])
    }

    @Test("Fifty different answers at once: one counts, the others are refused")
    func raceOfDifferentAnswers() async throws {
        let fixture = try await JourneyFixture()
        let page = try await fixture.start("Password")
        let outcomes = await withTaskGroup(of: EngineError.Code?.self) { group in
            for index in 0..<50 {
                group.addTask {
                    var answer = page.answered(Self.credentials)
                    answer.bytes.append(UInt8(index))
                    do {
                        _ = try await fixture.send(answer).token()
                        return nil
                    } catch let error as EngineError {
                        return error.code
                    } catch {
                        return .internalFailure
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes.filter { $0 == nil }.count == 1)
        #expect(outcomes.filter { $0 == .stepAnsweredDifferently || $0 == .stepBeingAnswered }.count == 49)
        #expect(try await fixture.count("sessions") == 1)
    }

    @Test("Fifty equal last answers over two nodes give one session, and each gets it")
    func raceOverNodes() async throws {
        let fixture = try await JourneyFixture()
        // Two contexts, so that nothing but the database is common to them.
        let nodes = try (0..<2).map { _ in try Self.node(of: fixture) }
        for _ in 0..<10 {
            let before = try await fixture.count("sessions")
            let answer = try await fixture.start("Password").answered(Self.credentials)
            let tokens = try await withThrowingTaskGroup(of: String.self) { group in
                for index in 0..<50 {
                    group.addTask {
                        try await nodes[index % 2].authenticate(AuthenticateRequest(realm: "/alpha", answer: answer))
                            .token().reveal()
                    }
                }
                return try await group.reduce(into: Set<String>()) { $0.insert($1) }
            }
            #expect(tokens.count == 1)
            #expect(try await fixture.count("sessions") == before + 1)
        }
    }

    private static func node(of fixture: JourneyFixture) throws -> Authentication {
        let context = try TransactionFixture.context(fixture.database, clock: YieldingClock(base: fixture.clock))
        return try JourneyFixture.authentication(
            context, fixture.passwords, fixture.oneTimePasswords, Transactions(context))
    }

    /// A journey whose first step nobody has answered: its page, and the step's id.
    private static func opened() async throws -> (fixture: JourneyFixture, page: Page, step: String) {
        let fixture = try await JourneyFixture()
        let page = try await fixture.start("Password")
        return (fixture, page, try AuthIDSigner(fixture.context.masterKey).verify(page.authID).stepID)
    }

    @Test("What another node has begun is waited for, and then its reply is this one's")
    func waits() async throws {
        let (fixture, page, step) = try await Self.opened()
        let steps = StepStore(fixture.context)
        let answer = page.answered(Self.credentials)
        let claim = try #require(try await steps.claim(step, digest: steps.digest(of: answer.bytes, id: step)))
        let waiting = Task { try await fixture.send(answer) }
        while fixture.clock.sleeperCount == 0 { await Task.yield() }
        let reply = StoredReply(.failure(EngineError(.loginFailed)), sessionID: nil)
        _ = try await fixture.database.run([steps.finishing(claim, reply: reply)])
        fixture.clock.advance(by: 0.1)
        await #expect(throws: EngineError(.loginFailed)) { _ = try await waiting.value }
    }

    @Test("The claim of a process that died ends, and the step can be answered")
    func deadClaim() async throws {
        let (fixture, page, step) = try await Self.opened()
        #expect(try await StepStore(fixture.context).claim(step, digest: "x") != nil)
        let waiting = Task { try await fixture.answer(page, Self.credentials) }
        while fixture.clock.sleeperCount == 0 { await Task.yield() }
        fixture.clock.advance(by: 15)
        await expectError(.stepBeingAnswered) { try await waiting.value }
        fixture.clock.advance(by: 15)
        _ = try await fixture.answer(page, Self.credentials).token()
    }

    @Test("The claim of a process that died does not hold the step for as long as the clock was set back")
    func claimAhead() async throws {
        let (fixture, _, step) = try await Self.opened()
        let steps = StepStore(fixture.context)
        #expect(try await steps.claim(step, digest: "x") != nil)
        fixture.clock.advance(by: -30)
        #expect(try await steps.claim(step, digest: "y") == nil)
        fixture.clock.advance(by: -1)
        #expect(try await steps.claim(step, digest: "y") != nil)
        #expect(try await steps.claim(step, digest: "z") == nil)
    }

    @Test(
        "Nodes whose clocks differ measure a claim by the clock of the database's server",
        .enabled(if: TestDatabase.isPostgreSQL))
    func clocksApart() async throws {
        let (fixture, _, step) = try await Self.opened()
        let (slow, fast) = (Self.steps(of: fixture, ahead: -29), Self.steps(of: fixture, ahead: 29))
        let first = try await Self.inTime(fixture) {
            _ = try await fixture.database.run(
                SQLStatement("UPDATE journey_steps SET claim = NULL WHERE id = \(step)"))
            let mine = try await slow.claim(step, digest: "x")
            return (mine: mine, other: try await fast.claim(step, digest: "y"))
        }
        #expect(first.mine != nil && first.other == nil)
        let row = try await fixture.database.run(.read("SELECT claimed_at FROM journey_steps WHERE id = \(step)")).first
        let claimedAt = try #require(try row?.optionalInteger("claimed_at"))
        let served = try #require(try await fixture.database.time())
        #expect(claimedAt > served / 1000 - 1000)
        let second = try await Self.inTime(fixture) {
            // Its process has died meanwhile.
            _ = try await fixture.database.run(
                SQLStatement("UPDATE journey_steps SET claimed_at = claimed_at - 30 WHERE id = \(step)"))
            let mine = try await fast.claim(step, digest: "y")
            return (mine: mine, other: try await slow.claim(step, digest: "x"))
        }
        #expect(second.mine != nil && second.other == nil)
    }

    @Test(
        "Nodes whose clocks differ give a reply again for as long as the clock of the database's server says",
        .enabled(if: TestDatabase.isPostgreSQL))
    func repliesApart() async throws {
        let (fixture, _, step) = try await Self.opened()
        let (slow, fast) = (Self.steps(of: fixture, ahead: -29), Self.steps(of: fixture, ahead: 29))
        let reply = StoredReply(.failure(EngineError(.loginFailed)), sessionID: nil)
        let now = fixture.clock.epochSeconds
        let refusals = try await Self.inTime(fixture) {
            _ = try await fixture.database.run(
                SQLStatement("UPDATE journey_steps SET claim = NULL, answered_at = NULL WHERE id = \(step)"))
            let claim = try #require(try await slow.claim(step, digest: "x"))
            _ = try await fixture.database.run([slow.finishing(claim, reply: reply)])
            _ = try await fast.purge()
            let found = [try #require(try await slow.find(step)), try #require(try await fast.find(step))]
            return zip(found, [-29, 29] as [Int64]).map { $0.refusal(at: now + $1) }
        }
        #expect(refusals == [nil, nil])
        _ = try await fixture.database.run(
            SQLStatement("UPDATE journey_steps SET answered_at = answered_at - 30 WHERE id = \(step)"))
        for (steps, seconds) in [(slow, -29), (fast, 29)] as [(StepStore, Int64)] {
            let found = try #require(try await steps.find(step))
            #expect(found.refusal(at: now + seconds) == EngineError(.stepAlreadyAnswered))
        }
        _ = try await slow.purge()
        let kept: SQL = "SELECT id FROM journey_steps WHERE length(sealed_reply) > 0"
        #expect(try await fixture.database.run(.read(kept)).isEmpty)
    }

    /// By the clock of the database's server, a claim or a reply may have ended meanwhile.
    private struct TooLate: Error {}

    /// Does it again until it has taken less time than claims and replies last: the clock of the database's server goes
    /// on while a busy machine lets a test stand still.
    private static func inTime<Found>(
        _ fixture: JourneyFixture, _ body: () async throws -> Found
    ) async throws -> Found {
        try await Patience.retry("what must be done within thirty seconds") {
            let start = try #require(try await fixture.database.time())
            let found = try await body()
            let end = try #require(try await fixture.database.time())
            guard end - start < 29_000 else { throw TooLate() }
            return found
        } unless: {
            !($0 is TooLate)
        }
    }

    /// The steps as a node sees them whose clock differs from the others'.
    private static func steps(of fixture: JourneyFixture, ahead seconds: TimeInterval) -> StepStore {
        StepStore(
            EngineContext(
                database: fixture.database, clock: ManualClock(fixture.clock.now.addingTimeInterval(seconds)),
                random: SystemRandom(), masterKey: fixture.context.masterKey, isDatabaseTimed: true,
                logger: fixture.context.logger))
    }

    @Test("A clock that is set back lets nobody wait longer for another node")
    func setBack() async throws {
        let (fixture, page, step) = try await Self.opened()
        #expect(try await StepStore(fixture.context).claim(step, digest: "x") != nil)
        let isDone = Locked(false)
        let waiting = Task {
            defer { isDone.withLock { $0 = true } }
            return try await fixture.answer(page, Self.credentials)
        }
        while fixture.clock.sleeperCount == 0 { await Task.yield() }
        fixture.clock.put(by: -20)
        let start = fixture.clock.now
        while !isDone.withLock({ $0 }) {
            if fixture.clock.sleeperCount > 0 { fixture.clock.advance(by: 15) }
            await Task.yield()
        }
        await expectError(.stepBeingAnswered) { try await waiting.value }
        #expect(fixture.clock.now.timeIntervalSince(start) < 20)
    }

    @Test("The holder of a claim that was taken over cannot finish")
    func lostClaim() async throws {
        let (fixture, _, step) = try await Self.opened()
        let steps = StepStore(fixture.context)
        let lost = try #require(try await steps.claim(step, digest: "x"))
        fixture.clock.advance(by: 30)
        let held = try #require(try await steps.claim(step, digest: "y"))
        let reply = StoredReply(.failure(EngineError(.loginFailed)), sessionID: nil)
        await #expect(throws: StoreError(.unexpectedCount, "")) {
            try await fixture.database.run([steps.finishing(lost, reply: reply)])
        }
        _ = try await fixture.database.run([steps.finishing(held, reply: reply)])
        await #expect(throws: StoreError(.unexpectedCount, "")) {
            try await fixture.database.run([steps.finishing(held, reply: reply)])
        }
    }
}

/// A clock that stands still, and on which waiting lets others go on.
private struct YieldingClock: WallClock {
    let base: ManualClock

    var now: Date { base.now }

    func sleep(until deadline: Date) async throws { await Task.yield() }
}
