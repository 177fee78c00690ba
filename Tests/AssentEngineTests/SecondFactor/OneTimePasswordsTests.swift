import AssentCore
import AssentOTP
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("OneTimePasswords")
struct OneTimePasswordsTests {
    @Test("A code is accepted once, and then no older one")
    func once() async throws {
        let fixture = try await JourneyFixture()
        let old = try fixture.code(stepsAhead: -1)
        let code = try fixture.code()
        let next = try fixture.code(stepsAhead: 1)
        let otp = fixture.oneTimePasswords
        #expect(try await otp.verify(code, user: fixture.ana) == .accepted)
        #expect(try await otp.verify(code, user: fixture.ana) == .replayed)
        #expect(try await otp.verify(old, user: fixture.ana) == .replayed)
        #expect(try await otp.verify(next, user: fixture.ana) == .accepted)
        #expect(try await otp.verify(code, user: fixture.ana) == .replayed)
    }

    @Test("Of fifty equal codes at once one is accepted")
    func race() async throws {
        let fixture = try await JourneyFixture(otp: OneTimePasswordLimits(perUser: 1000))
        let code = try fixture.code()
        let results = try await withThrowingTaskGroup(of: OneTimePasswords.Check.self) { group in
            for _ in 0..<50 {
                group.addTask { try await fixture.oneTimePasswords.verify(code, user: fixture.ana) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(results.filter { $0 == .accepted }.count == 1)
        #expect(results.filter { $0 == .replayed }.count == 49)
    }

    @Test("Codes from too far away are wrong", arguments: [-2, 2, 100])
    func far(steps: Int) async throws {
        let fixture = try await JourneyFixture()
        let code = try fixture.code(stepsAhead: steps)
        #expect(try await fixture.oneTimePasswords.verify(code, user: fixture.ana) == .wrong)
    }

    @Test("What is no code is wrong", arguments: ["", "12345", "1234567", "abcdef", "１２３４５６", " 123456"])
    func noCode(text: String) async throws {
        let fixture = try await JourneyFixture()
        #expect(try await fixture.oneTimePasswords.verify(text, user: fixture.ana) == .wrong)
    }

    @Test("A user is shut after too many guesses, until the window ends")
    func perUser() async throws {
        let fixture = try await JourneyFixture(otp: OneTimePasswordLimits(perUser: 3, window: 600))
        let otp = fixture.oneTimePasswords
        for _ in 0..<3 { #expect(try await otp.verify("000000", user: fixture.ana) == .wrong) }
        #expect(try await otp.verify(fixture.code(), user: fixture.ana) == .locked)
        fixture.clock.advance(by: 600)
        #expect(try await otp.verify(fixture.code(), user: fixture.ana) == .accepted)
        let reasons = try await AuditLog(fixture.context).newest(10).compactMap(\.reason)
        #expect(reasons.sorted() == ["locked", "wrong", "wrong", "wrong"])
    }

    @Test("A transaction is shut after too many guesses, others are not")
    func perTransaction() async throws {
        let fixture = try await JourneyFixture(otp: OneTimePasswordLimits(perUser: 100, perTransaction: 2))
        let otp = fixture.oneTimePasswords
        for _ in 0..<2 {
            #expect(try await otp.verify("000000", user: fixture.ana, transactionID: "one") == .wrong)
        }
        #expect(try await otp.verify(fixture.code(), user: fixture.ana, transactionID: "one") == .locked)
        #expect(try await otp.verify(fixture.code(), user: fixture.ana, transactionID: "other") == .accepted)
    }

    @Test("A right code forgets the wrong ones before it")
    func forgets() async throws {
        let fixture = try await JourneyFixture(otp: OneTimePasswordLimits(perUser: 3, window: 86_400))
        let otp = fixture.oneTimePasswords
        for _ in 0..<4 {
            for _ in 0..<2 { #expect(try await otp.verify("000000", user: fixture.ana) == .wrong) }
            #expect(try await otp.verify(fixture.code(), user: fixture.ana) == .accepted)
            fixture.clock.advance(by: 30)
        }
    }

    @Test("Another user's seed does not open in one's own place, and a new credential starts afresh")
    func seeds() async throws {
        let fixture = try await JourneyFixture()
        let otp = fixture.oneTimePasswords
        #expect(try await otp.verify("000000", user: fixture.ben) == .notEnrolled)
        try await otp.enrol(
            TOTP(secret: Secret("bens-seed-of-20-byte"), algorithm: .sha256, digits: 8), userID: fixture.ben.id)
        _ = try await fixture.database.run(
            SQLStatement(
                "UPDATE totp_credentials SET sealed_secret = (SELECT sealed_secret FROM totp_credentials WHERE user_id = \(fixture.ana.id)) WHERE user_id = \(fixture.ben.id)",
                expecting: .exactly(1)))
        let error = await #expect(throws: EngineError.self) { try await otp.verify("000000", user: fixture.ben) }
        #expect(error?.code == .internalFailure)
        let credential = try TOTP(secret: Secret("bens-seed-of-20-byte"), algorithm: .sha256, digits: 8, period: 60)
        try await otp.enrol(credential, userID: fixture.ben.id)
        #expect(try await otp.verify(credential.code(at: fixture.clock.now), user: fixture.ben) == .accepted)
    }
}
