import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Wrong passwords lock an address before they lock a user")
struct AddressLockTests {
    private struct World {
        let fixture: ProviderFixture
        let passwords: Passwords

        init() async throws {
            fixture = try await ProviderFixture()
            passwords = Passwords(
                fixture.context, policy: PasswordPolicy(logN: 4), limits: SignInLimits(attempts: 5, attemptsOfAll: 12))
            let hash = try await passwords.hash(Secret("right one"))
            _ = try await Users(fixture.context).create(username: "ben", realm: "/alpha", passwordHash: hash)
        }

        func check(_ password: String, from address: String?, of name: String = "ben") async throws -> String {
            switch try await passwords.check(
                username: name, password: Secret(password), realm: "/alpha", from: address)
            {
            case .right: "right"
            case .wrong: "wrong"
            case .locked: "locked"
            }
        }
    }

    @Test("However often one address guesses, the user signs in from another; the guesser is shut out")
    func oneAddress() async throws {
        let world = try await World()
        for attempt in 0..<40 {
            #expect(try await world.check("guess", from: "192.0.2.1") == (attempt < 5 ? "wrong" : "locked"))
        }
        #expect(try await world.check("right one", from: "198.51.100.7") == "right")
        // The user's success does not let the guesser go on.
        #expect(try await world.check("right one", from: "192.0.2.1") == "locked")
        world.fixture.clock.advance(by: 300)
        #expect(try await world.check("right one", from: "192.0.2.1") == "right")
    }

    @Test("Guesses from many addresses end at the bound of all of them, for names that do not exist, too")
    func manyAddresses() async throws {
        let world = try await World()
        for name in ["ben", "nobody"] {
            var results: [String] = []
            for address in 0..<10 {
                for _ in 0..<2 {
                    results.append(try await world.check("guess", from: "192.0.2.\(address)", of: name))
                }
            }
            #expect(results.count { $0 == "wrong" } == 12)
            #expect(try await world.check("right one", from: "198.51.100.7", of: name) == "locked")
        }
    }

    @Test("Letting a user in again forgets the attempts of every address")
    func unlocked() async throws {
        let world = try await World()
        for _ in 0..<6 { _ = try await world.check("guess", from: "192.0.2.1") }
        let ben = try #require(try await Users(world.fixture.context).find(username: "ben", realm: "/alpha"))
        for _ in 0..<6 { _ = try await world.check("guess", from: "192.0.2.1", of: "nobody") }
        _ = try await world.fixture.database.run(AttemptCounter.forgetting(ben))
        #expect(try await world.check("right one", from: "192.0.2.1") == "right")
        #expect(try await world.check("guess", from: "192.0.2.1", of: "nobody") == "locked")
    }
}
