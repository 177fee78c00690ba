import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Users")
struct UsersTests {
    @Test("A name is taken once in a realm, also when many want it at once")
    func uniqueNames() async throws {
        let fixture = try await ProviderFixture()
        let users = Users(fixture.context)
        let made = try await withThrowingTaskGroup(of: User?.self) { group in
            for _ in 0..<30 {
                group.addTask { try await users.create(username: "bob", realm: "/alpha", passwordHash: nil) }
            }
            return try await group.reduce(into: []) { $0 += $1.map { [$0] } ?? [] }
        }
        #expect(made.count == 1)
        #expect(try await users.create(username: "bob", realm: "/beta", passwordHash: nil) != nil)
        #expect(try await users.find(username: "bob", realm: "/alpha") == made.first)
        #expect(try await users.find(username: "bob", realm: "/gamma") == nil)
        #expect(try await users.find(id: fixture.user.id) == fixture.user)
    }

    @Test("Roles, attributes and the password hash come back as they went in")
    func content() async throws {
        let fixture = try await ProviderFixture()
        let users = Users(fixture.context)
        let attributes = JSONObject([.init(name: "mail", value: "ü@example.org"), .init(name: "n", value: 7)])
        let user = try #require(
            await users.create(
                username: "admin", realm: "/", passwordHash: "scrypt$…", roles: [.admin, .pep], attributes: attributes))
        let found = try #require(await users.find(id: user.id))
        #expect(found.roles == [.admin, .pep])
        #expect(found.attributes == attributes)
        #expect(found.isActive)
        #expect(found.universalID == "id=admin,ou=user,o=root")
        #expect(fixture.user.universalID == "id=ana,ou=user,o=alpha")
        #expect(try await users.passwordHash(userID: user.id) == "scrypt$…")
        #expect(try await users.passwordHash(userID: fixture.user.id) == nil)
        #expect(try await users.passwordHash(userID: "nobody") == nil)
    }

    @Test("Shutting out somebody who does not exist is an error")
    func unknown() async throws {
        let fixture = try await ProviderFixture()
        await #expect(throws: StoreError(.unexpectedCount, "")) {
            try await Users(fixture.context).setActive(false, userID: "nobody")
        }
    }
}
