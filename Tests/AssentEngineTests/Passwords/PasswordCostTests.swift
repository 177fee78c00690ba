import AssentCore
import Testing

@testable import AssentEngine

@Suite("Passwords that were hashed at several costs")
struct PasswordCostTests {
    /// scrypt that notes which costs were computed.
    private final class NotingDerivation: PasswordDerivation {
        private let noted = Locked<[Int]>([])

        /// The costs since this was last asked for.
        func costs() -> [Int] {
            noted.withLock { noted in
                defer { noted = [] }
                return noted
            }
        }

        func derive(_ password: Secret, salt: [UInt8], cost: PasswordHash.Cost, byteCount: Int) throws -> [UInt8] {
            noted.withLock { $0.append(cost.logN) }
            return try ScryptDerivation().derive(password, salt: salt, cost: cost, byteCount: byteCount)
        }
    }

    private let derivation = NotingDerivation()

    private func passwords(_ fixture: JourneyFixture, logN: Int) -> Passwords {
        Passwords(
            fixture.context, policy: PasswordPolicy(logN: logN), limits: SignInLimits(attempts: 1000),
            derivation: derivation)
    }

    private func check(_ passwords: Passwords, _ name: String, _ password: String) async throws -> Passwords.Check {
        try await passwords.check(username: name, password: Secret(password), realm: "/alpha")
    }

    @Test(
        "After the cost was raised every name costs the same work, whether it exists or not, and at whatever cost it is stored"
    )
    func equalWork() async throws {
        let fixture = try await JourneyFixture()
        let hash = try await passwords(fixture, logN: 5).hash(Secret("of cy"))
        _ = try await Users(fixture.context).create(username: "cy", realm: "/alpha", passwordHash: hash)
        _ = try await Users(fixture.context).create(username: "none", realm: "/alpha", passwordHash: nil)
        _ = derivation.costs()
        let raised = passwords(fixture, logN: 6)
        for name in ["ana", "cy", "none", "nobody"] {
            #expect(try await check(raised, name, "wrong") == .wrong)
            #expect(derivation.costs() == [4, 5, 6], "\(name)")
        }
    }

    @Test(
        "The right password is hashed again at the configured cost, a wrong one changes nothing, and one cost is left in the end"
    )
    func renewed() async throws {
        let fixture = try await JourneyFixture()
        let users = Users(fixture.context)
        let old = try await users.passwordHash(userID: fixture.ana.id)
        let raised = passwords(fixture, logN: 6)
        #expect(try await check(raised, "ana", "wrong") == .wrong)
        #expect(try await users.passwordHash(userID: fixture.ana.id) == old)
        for user in [fixture.ana, fixture.ben] {
            #expect(try await check(raised, user.username, JourneyFixture.password) == .right(user))
            let text = try #require(try await users.passwordHash(userID: user.id))
            #expect(PasswordHash(text)?.cost == PasswordHash.Cost(logN: 6))
        }
        _ = derivation.costs()
        let restarted = passwords(fixture, logN: 6)
        #expect(try await check(restarted, "ana", "wrong") == .wrong)
        #expect(derivation.costs() == [6])
        #expect(try await check(restarted, "ana", JourneyFixture.password) == .right(fixture.ana))
        #expect(try await check(restarted, "nobody", JourneyFixture.password) == .wrong)
        #expect(derivation.costs() == [6, 6])
    }

    @Test("Many right passwords at once are all right, and the password stays the same")
    func concurrent() async throws {
        let fixture = try await JourneyFixture()
        let raised = passwords(fixture, logN: 5)
        let ana = fixture.ana
        try await withThrowingTaskGroup(of: Passwords.Check.self) { group in
            for _ in 0..<12 { group.addTask { try await check(raised, "ana", JourneyFixture.password) } }
            for try await result in group { #expect(result == .right(ana)) }
        }
        #expect(try await check(raised, "ana", JourneyFixture.password) == .right(ana))
        #expect(try await check(raised, "ana", "wrong") == .wrong)
    }

    @Test("A password that was set meanwhile is not undone by hashing the old one again")
    func replaced() async throws {
        let fixture = try await JourneyFixture()
        let users = Users(fixture.context)
        let new = try await fixture.passwords.hash(Secret("new"))
        try await users.replacePasswordHash("another", with: new, userID: fixture.ana.id)
        #expect(try await check(fixture.passwords, "ana", JourneyFixture.password) == .right(fixture.ana))
        #expect(try await check(fixture.passwords, "ana", "new") == .wrong)
    }
}
