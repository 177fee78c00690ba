#if os(Linux)
import Assent
import AssentCore
import AssentServer
import AssentStore
import Foundation
import Logging
import TestSupport
import AssentTesting
import Testing

@testable import AssentCLI
@testable import AssentDemo

/// With `ASSENT_SOAK=1` ten thousand races: 300 of programs that are killed, and 9,700 of two values of the façade, in
/// one process, that share nothing but the files of a vault. Their locks belong to open files, so they keep these two
/// apart as they do processes; to start a program takes a hundred times as long.
@Suite("Two processes of one installation that race to register")
struct RegisterRaceTests {
    /// One process of the installation with this vault.
    private static func process(_ story: Story, _ vault: String, _ token: Secret) throws -> Assent {
        try story.makeAssent(vault: vault) { configuration, keys in
            configuration.client.id = InstallationScene.app
            configuration.patience = 3600
            configuration.registration = RegistrationConfiguration(keys: keys, initialAccessToken: token)
        }
    }

    /// Who is killed, by turns.
    private static let victims: [Set<Int>] = [[0], [1], [0, 1]]

    /// What the server lists: the key of each client.
    private static func listed(_ world: DemoWorld) async throws -> [String: String] {
        var keys: [String: String] = [:]
        for row in try await world.rows("SELECT id, key_thumbprint FROM client_instances") {
            keys[try row.text("id")] = try row.text("key_thumbprint")
        }
        return keys
    }

    /// Races so often, each time with a vault of its own.
    private static func race(_ rounds: Int) async throws {
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        try await World.run(logger: logger) { story in
            let operating = try story.makeAssent(vault: "operator")
            try await story.signIn(operating, forcing: false)
            // Enough for two in each race: no second one is refused for want of a use.
            let token = try await InstallationScene(story).initialAccessToken(operating, count: Int64(2 * rounds))
            for round in 1...rounds {
                let vault = "round-\(round)"
                try await story.world.forgetAttempts()
                let first = try Self.process(story, vault, token)
                let second = try Self.process(story, vault, token)
                // The one that waits for the lease looks again and again, by the story's clock.
                let (one, other) = try await story.clock.running {
                    async let one = first.registration?.register()
                    async let other = second.registration?.register()
                    return (try #require(try await one), try #require(try await other))
                }
                #expect(one.clientID == other.clientID && one.keyThumbprint == other.keyThumbprint, "round \(round)")
                let third = try Self.process(story, vault, token)
                let later = try await third.registration?.register()
                #expect(later?.clientID == one.clientID, "round \(round)")
                let listed = try await Self.listed(story.world)
                #expect(listed.count == round && listed[one.clientID] == one.keyThumbprint, "round \(round)")
                for each in [first, second, third] { await each.shutdown() }
            }
            await operating.shutdown()
        }
    }

    @Test("33: Each time they are one instance, which is all that the server lists for them")
    func raced() async throws {
        // A server of its own for each hundred: their clock runs while they wait.
        for _ in 0..<(Soak.isOn ? 97 : 1) { try await Self.race(Soak.isOn ? 100 : 25) }
    }

    @Test("33: Where one of them or both are killed, one instance has the key that is kept, and works")
    func killed() async throws {
        try await RequestKindsTests.run(count: 100_000) { newcomer in
            let (typist, place) = (newcomer.typist, newcomer.program.home)
            let killer = try await WriteKiller(in: typist.program.home)
            let yaml = try String(contentsOfFile: place + "/app.yaml", encoding: .utf8)
            let words = [
                "register", "--config", place + "/app.yaml", "--token-file", place + "/token.txt", "--json",
            ]
            var (point, kills, killsHere, left) = (1, 0, 0, 0)
            var known = try await Self.listed(typist.world)
            for round in 0..<(Soak.isOn ? 300 : 6) {
                let program = try Program(below: "\(typist.program.home)/race-\(round)", client: yaml)
                typist.catchUp()
                try await typist.world.forgetAttempts()
                let deadly = try killer.environment(point, round / 3, program)
                let victims = Self.victims[round % 3]
                let running = try (0..<2).map { index in
                    try program.start(words, environment: victims.contains(index) ? deadly : [:])
                }
                var (ids, killed): (Set<String>, Int) = ([], 0)
                for (index, each) in running.enumerated() {
                    let result = await each.result()
                    guard !(result.isKilled && victims.contains(index)) else {
                        killed += 1
                        continue
                    }
                    try #require(result.status == 0, "round \(round), point \(point): \(result.errors)")
                    let id = try JSONValue.parse(result.output)["client_id"]?.string
                    ids.insert(try #require(id, "\(result.output)"))
                }
                let next = try await program.run(words)
                try #require(next.status == 0, "round \(round), point \(point): \(next.errors)")
                let id = try #require(try JSONValue.parse(next.output)["client_id"]?.string, "\(next.output)")
                // Whoever was told anything was told of the same one.
                #expect(ids.isSubset(of: [id]), "round \(round), point \(point): \(ids) \(id)")
                let info = try await program.run("request", "--as", "device", "GET", "/app-info")
                #expect(info.status == 0, "round \(round), point \(point): \(info.errors)")

                let listed = try await Self.listed(typist.world)
                let key = try #require(listed[id], "round \(round), point \(point)")
                let owners = listed.filter { $0.value == key }
                #expect(owners.count == 1, "round \(round), point \(point): \(owners)")
                // One that was killed before it stored the answer has left a client that nobody has the key of.
                let new = Set(listed.keys).subtracting(known.keys)
                #expect(new.contains(id) && new.count <= 1 + killed, "round \(round), point \(point): \(new)")
                left += new.count - 1
                known = listed
                kills += killed
                killsHere += killed
                // Each point for the one, the other and both; past the last one from the first again.
                if round % 3 == 2 {
                    point = killsHere == 0 ? 1 : point + (Soak.isOn ? 1 : 7)
                    killsHere = 0
                }
            }
            // Before its first point neither of two has done anything.
            #expect(kills >= 2 && left < kills)
            if Soak.isOn { print("\(kills) kills in 300 races to register; \(left) clients left") }
        }
    }
}
#endif
