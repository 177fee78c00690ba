import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Usual networks in the database")
struct UsualNetworkStoreTests {
    private static func address(_ text: String) throws -> IPAddress { try #require(IPAddress(text)) }

    private static func remember(_ fixture: JourneyFixture, _ text: String, level: Int = 0) async throws {
        let user = try #require(try await Users(fixture.context).find(id: fixture.ana.id))
        _ = try await fixture.database.run(
            UsualNetworks(fixture.context).remembering(
                user, epoch: user.epoch, at: try address(text), level: level))
    }

    private static func sightings(_ fixture: JourneyFixture, _ text: String) async throws -> [NetworkSighting] {
        let user = try #require(try await Users(fixture.context).find(id: fixture.ana.id))
        return try await UsualNetworks(fixture.context).sightings(of: user, at: try address(text))
    }

    @Test("The hash depends on the key, the realm, the user and the network, and on nothing else")
    func hash() throws {
        let key = try MasterKey(Secret(bytes: SeededRandom(seed: 1).bytes(MasterKey.byteCount)))
        let other = try MasterKey(Secret(bytes: SeededRandom(seed: 2).bytes(MasterKey.byteCount)))
        func user(_ id: String, _ realm: String = "/alpha") -> User {
            User(
                id: id, realm: realm, username: "ana", isActive: true, roles: [], attributes: JSONObject(), epoch: 0)
        }
        func hash(_ text: String, _ who: User, _ key: MasterKey) throws -> String {
            NetworkHash(of: try Self.address(text), user: who, key: key).text
        }
        let first = try hash("192.0.2.7", user("1"), key)
        #expect(try hash("192.0.2.0", user("1"), key) == first)
        #expect(try hash("192.0.2.255", user("1"), key) == first)
        let others = [
            try hash("192.0.3.7", user("1"), key), try hash("192.0.2.7", user("2"), key),
            try hash("192.0.2.7", user("1", "/beta"), key), try hash("192.0.2.7", user("1"), other),
            // The same first bytes in the other family.
            try hash("c000:0200:0000::", user("1"), key), try hash("c000:0201::", user("1"), key),
            // IPv4 behind a translator, which has one /48 for all of it.
            try hash("64:ff9b::192.0.2.7", user("1"), key), try hash("64:ff9b::192.0.3.7", user("1"), key),
        ]
        #expect(try hash("64:ff9b::192.0.2.9", user("1"), key) == hash("64:ff9b::192.0.2.7", user("1"), key))
        #expect(Set(others + [first]).count == others.count + 1)
        #expect(Base64URL.decode(first)?.count == 32)
    }

    @Test("Neither an address nor anything of it is stored")
    func secrecy() async throws {
        let fixture = try await JourneyFixture()
        try await Self.remember(fixture, "192.0.2.7")
        let row = try #require(try await fixture.database.run(.read("SELECT * FROM usual_networks")).first)
        let text = try row.text("network")
        #expect(text.utf8.count == 43)
        #expect(text != Base64URL.encode(SHA2.sha256([192, 0, 2])))
        let expected = NetworkHash(
            of: try Self.address("192.0.2.9"), user: fixture.ana, key: fixture.context.masterKey)
        #expect(text == expected.text)
    }

    @Test("A network that is seen again renews its row, and a stronger proof replaces a weaker one")
    func renewed() async throws {
        let fixture = try await JourneyFixture()
        let begin = fixture.clock.epochSeconds
        try await Self.remember(fixture, "192.0.2.7")
        fixture.clock.advance(by: 60)
        try await Self.remember(fixture, "192.0.2.8")
        #expect(try await Self.sightings(fixture, "192.0.2.9") == [NetworkSighting(authLevel: 0, seenAt: begin + 60)])
        fixture.clock.advance(by: 60)
        try await Self.remember(fixture, "192.0.2.8", level: 5)
        #expect(try await Self.sightings(fixture, "192.0.2.9") == [NetworkSighting(authLevel: 5, seenAt: begin + 120)])
        // A weaker one has a row of its own.
        fixture.clock.advance(by: 60)
        for _ in 0..<2 { try await Self.remember(fixture, "192.0.2.8", level: 1) }
        #expect(
            Set(try await Self.sightings(fixture, "192.0.2.9"))
                == [
                    NetworkSighting(authLevel: 5, seenAt: begin + 120),
                    NetworkSighting(authLevel: 1, seenAt: begin + 180),
                ])
        #expect(try await fixture.count("usual_networks") == 2)
    }

    @Test("A user has few rows: the network that was seen longest ago makes room")
    func bounded() async throws {
        let fixture = try await JourneyFixture()
        let limit = Int(UsualNetworks.perUser)
        for number in 0..<limit {
            try await Self.remember(fixture, "10.0.\(number).1")
            fixture.clock.advance(by: 1)
        }
        #expect(try await fixture.count("usual_networks") == UsualNetworks.perUser)
        // Seen again, so that the second one is the oldest.
        try await Self.remember(fixture, "10.0.0.1")
        fixture.clock.advance(by: 1)
        try await Self.remember(fixture, "10.1.0.1")
        #expect(try await fixture.count("usual_networks") == UsualNetworks.perUser)
        for (text, isKept) in [("10.0.0.1", true), ("10.0.1.1", false), ("10.0.2.1", true), ("10.1.0.1", true)] {
            #expect(try await Self.sightings(fixture, text).isEmpty != isKept, "\(text)")
        }
        // Another user has room of their own.
        let ben = try #require(try await Users(fixture.context).find(id: fixture.ben.id))
        _ = try await fixture.database.run(
            UsualNetworks(fixture.context).remembering(
                ben, epoch: ben.epoch, at: try Self.address("10.0.0.1"), level: 0))
        #expect(try await fixture.count("usual_networks") == UsualNetworks.perUser + 1)
    }

    @Test("What was proved before a lock is not remembered after it")
    func lockedMeanwhile() async throws {
        let fixture = try await JourneyFixture()
        let networks = UsualNetworks(fixture.context)
        for epoch in [fixture.ana.epoch + 1, fixture.ana.epoch - 1, nil] {
            _ = try await fixture.database.run(
                networks.remembering(fixture.ana, epoch: epoch, at: try Self.address("192.0.2.7"), level: 0))
        }
        #expect(try await fixture.count("usual_networks") == 0)
    }

    @Test("Twenty sign-ins from one network at once leave one row and no error")
    func race() async throws {
        let fixture = try await JourneyFixture()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<20 { group.addTask { try await Self.remember(fixture, "192.0.2.\(number)") } }
            try await group.waitForAll()
        }
        #expect(try await fixture.count("usual_networks") == 1)
        #expect(try await Self.sightings(fixture, "192.0.2.7").count == 1)
    }

    @Test("Housekeeping deletes what no condition looks back to, and nothing that one does")
    func purged() async throws {
        let fixture = try await JourneyFixture()
        try await Self.remember(fixture, "192.0.2.7")
        fixture.clock.advance(by: Double(UsualNetworks.longestDays * 86_400 - 1))
        try await UsualNetworks(fixture.context).purge()
        #expect(try await fixture.count("usual_networks") == 1)
        fixture.clock.advance(by: 1)
        try await Self.remember(fixture, "198.51.100.1")
        try await UsualNetworks(fixture.context).purge()
        #expect(try await fixture.count("usual_networks") == 1)
        #expect(try await Self.sightings(fixture, "192.0.2.7").isEmpty)
    }

    @Test("A user who is deleted takes the networks along")
    func deletedUser() async throws {
        let fixture = try await JourneyFixture()
        try await Self.remember(fixture, "192.0.2.7")
        let ben = fixture.ben
        _ = try await fixture.database.run(
            UsualNetworks(fixture.context).remembering(
                ben, epoch: ben.epoch, at: try Self.address("192.0.2.7"), level: 0))
        _ = try await fixture.database.run(
            SQLStatement("DELETE FROM users WHERE id = \(ben.id)", expecting: .exactly(1)))
        #expect(try await fixture.count("usual_networks") == 1)
        #expect(try await Self.sightings(fixture, "192.0.2.7").count == 1)
    }
}
