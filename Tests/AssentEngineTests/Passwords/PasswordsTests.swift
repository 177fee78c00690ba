import AssentCore
import AssentStore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine

@Suite("Passwords")
struct PasswordsTests {
    @Test("A hash says its cost, reads back, and has a salt of its own")
    func hash() async throws {
        let fixture = try await JourneyFixture()
        let one = try await fixture.passwords.hash(Secret("x"))
        let other = try await fixture.passwords.hash(Secret("x"))
        #expect(one != other)
        #expect(one.hasPrefix("$scrypt$ln=4,r=8,p=1$"))
        #expect(PasswordHash(one)?.text == one)
    }

    @Test("scrypt gives what RFC 7914 §12 says")
    func vector() throws {
        let derived = try ScryptDerivation().derive(
            Secret("password"), salt: Array("NaCl".utf8), cost: .init(logN: 10, r: 8, p: 16), byteCount: 64)
        #expect(
            Hex.encode(derived)
                == "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b3731622eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640"
        )
    }

    @Test("The cost of production works")
    func production() async throws {
        let fixture = try await JourneyFixture()
        let passwords = Passwords(fixture.context)
        let hash = try await passwords.hash(Secret("x"))
        #expect(hash.hasPrefix("$scrypt$ln=17,r=8,p=1$"))
        let user = try await Users(fixture.context).create(username: "cy", realm: "/alpha", passwordHash: hash)
        let made = try #require(user)
        #expect(try await passwords.check(username: "cy", password: Secret("x"), realm: "/alpha") == .right(made))
    }

    @Test(
        "What is no hash, or costs too much, is not read",
        arguments: [
            "", "x", "$scrypt$", "$argon2id$ln=4,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
            "$scrypt$ln=40,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
            "$scrypt$ln=4,r=1000,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
            "$scrypt$ln=4,r=8,p=-1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
            "$scrypt$ln=4,r=8,p=1$AAAA$AAAAAAAAAAAAAAAAAAAAAA", "$scrypt$ln=4,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA$",
            "$scrypt$ln=4,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA==$AAAAAAAAAAAAAAAAAAAAAA",
        ])
    func notRead(text: String) {
        #expect(PasswordHash(text) == nil)
    }

    @Test("A user without a password costs the same and never gets in")
    func noPassword() async throws {
        let fixture = try await JourneyFixture()
        _ = try await Users(fixture.context).create(username: "none", realm: "/alpha", passwordHash: nil)
        _ = try await Users(fixture.context).create(username: "odd", realm: "/alpha", passwordHash: "plain")
        let before = fixture.derivations.count
        for name in ["none", "odd"] {
            #expect(
                try await fixture.passwords.check(username: name, password: Secret("plain"), realm: "/alpha") == .wrong)
        }
        #expect(fixture.derivations.count == before + 2)
    }

    @Test("A password is good in its user's realm only")
    func realm() async throws {
        let fixture = try await JourneyFixture()
        let password = Secret(JourneyFixture.password)
        #expect(try await fixture.passwords.check(username: "ana", password: password, realm: "/beta") == .wrong)
        #expect(
            try await fixture.passwords.check(username: "ana", password: password, realm: "/alpha")
                == .right(fixture.ana))
    }

    @Test("When too many checks wait the server says that it is busy")
    func busy() async throws {
        let fixture = try await JourneyFixture()
        let gate = Gate()
        let passwords = Passwords(
            fixture.context,
            policy: PasswordPolicy(
                logN: 4, parallelChecks: 1, waitingChecks: 2, checksPerAddress: 3),
            limits: SignInLimits(attempts: 1000), derivation: gate)
        let results = await withTaskGroup(of: String.self) { group in
            for user in 0..<20 {
                group.addTask {
                    do {
                        return
                            "\(try await passwords.check(username: "\(user)", password: Secret("y"), realm: "/alpha"))"
                    } catch {
                        return "\(error)"
                    }
                }
            }
            var results: [String] = []
            for await result in group {
                results.append(result)
                // The three that were taken wait at the gate until all others have been refused.
                if results.count == 17 { gate.open() }
            }
            return results
        }
        #expect(results.prefix(17).allSatisfy { $0.hasPrefix("busy: ") })
        #expect(results.suffix(3).allSatisfy { $0 == "wrong" })
    }

    @Test("Twenty right sign-ins of one user at once wait for each other, and none is refused")
    func oneUserOften() async throws {
        let fixture = try await JourneyFixture()
        let passwords = Passwords(
            fixture.context, policy: PasswordPolicy(logN: 4, parallelChecks: 1), derivation: fixture.derivations)
        let results = try await withThrowingTaskGroup(of: Passwords.Check.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    try await passwords.check(
                        username: "ana", password: Secret(JourneyFixture.password), realm: "/alpha", from: "192.0.2.1")
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(results == Array(repeating: .right(fixture.ana), count: 20))
    }

    @Test("Parallel sign-ins with the right password, more than the limit of wrong ones, all get in")
    func parallelRight() async throws {
        let fixture = try await JourneyFixture()
        let hash = try await fixture.passwords.hash(Secret("right"))
        let made = try await Users(fixture.context).create(username: "cy", realm: "/alpha", passwordHash: hash)
        let cy = try #require(made)
        for round in 0..<20 {
            let results = try await results(of: Array(repeating: "right", count: 12 + round), fixture)
            #expect(results.allSatisfy { $0 == .right(cy) }, "\(results)")
        }
    }

    @Test("Of parallel wrong passwords no more than the limit are looked at, and then the name is locked")
    func parallelWrong() async throws {
        let fixture = try await JourneyFixture()
        let before = fixture.derivations.count
        let results = try await results(of: Array(repeating: "wrong", count: 40), fixture)
        #expect(results.count { $0 == .wrong } == 10)
        #expect(results.count { $0 == .locked } == 30)
        #expect(fixture.derivations.count == before + 10)
    }

    /// What parallel checks of these passwords find, where ten wrong ones are allowed.
    private func results(of guesses: [String], _ fixture: JourneyFixture) async throws -> [Passwords.Check] {
        let passwords = Passwords(
            fixture.context, policy: PasswordPolicy(logN: 4, parallelChecks: 2, waitingChecks: 500),
            derivation: fixture.derivations)
        return try await withThrowingTaskGroup(of: Passwords.Check.self) { group in
            for guess in guesses {
                group.addTask {
                    try await passwords.check(username: "cy", password: Secret(guess), realm: "/alpha")
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }

    @Test("A low cost is refused outside of development")
    func policy() {
        #expect(PasswordPolicy().issues(development: false).isEmpty)
        #expect(PasswordPolicy(logN: 16).issues(development: false).count == 1)
        #expect(PasswordPolicy(logN: 4).issues(development: true).isEmpty)
        #expect(PasswordPolicy(logN: 40).issues(development: true).count == 1)
        #expect(PasswordPolicy(parallelChecks: 0, waitingChecks: -1).issues(development: true).count == 2)
    }
}

/// Holds every derivation up until it is opened.
private final class Gate: PasswordDerivation {
    private let condition = NSCondition()
    private let isOpen = Locked(false)

    func open() {
        condition.lock()
        isOpen.withLock { $0 = true }
        condition.broadcast()
        condition.unlock()
    }

    func derive(_ password: Secret, salt: [UInt8], cost: PasswordHash.Cost, byteCount: Int) throws -> [UInt8] {
        condition.lock()
        while !isOpen.withLock({ $0 }) { condition.wait() }
        condition.unlock()
        return [UInt8](repeating: 0, count: byteCount)
    }
}
