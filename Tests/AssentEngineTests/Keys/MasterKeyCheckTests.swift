import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Whether the master key is the database's")
struct MasterKeyCheckTests {
    private func context(_ fixture: ProviderFixture, _ key: MasterKey) -> EngineContext {
        EngineContext(
            database: fixture.database, clock: fixture.clock, random: SystemRandom(), masterKey: key,
            logger: fixture.context.logger)
    }

    @Test("The first key stays the database's, and no other is taken for it")
    func firstKey() async throws {
        let fixture = try await ProviderFixture()
        #expect(try await MasterKeyCheck(fixture.context).isRight())
        #expect(try await MasterKeyCheck(fixture.context).isRight())
        let other = try MasterKey(Secret(bytes: SystemRandom().bytes(32)))
        #expect(try await !MasterKeyCheck(context(fixture, other)).isRight())
        #expect(try await MasterKeyCheck(fixture.context).isRight())
    }

    @Test("Of servers with different keys that start at once, those of one key go on")
    func race() async throws {
        let fixture = try await ProviderFixture()
        let keys = try (0..<4).map { _ in try MasterKey(Secret(bytes: SystemRandom().bytes(32))) }
        let right = try await withThrowingTaskGroup(of: Int?.self) { group in
            for index in 0..<16 {
                let check = MasterKeyCheck(context(fixture, keys[index % 4]))
                group.addTask { try await check.isRight() ? index % 4 : nil }
            }
            return try await group.reduce(into: []) { $0 += [$1].compactMap(\.self) }
        }
        #expect(right.count == 4 && Set(right).count == 1)
    }

    @Test("A check value that was changed is no key's", arguments: [[UInt8](), [1, 2, 3]])
    func changed(value: [UInt8]) async throws {
        let fixture = try await ProviderFixture()
        _ = try await MasterKeyCheck(fixture.context).isRight()
        _ = try await fixture.database.run(
            SQLStatement("UPDATE server_state SET value = \(value)", expecting: .exactly(1)))
        #expect(try await !MasterKeyCheck(fixture.context).isRight())
    }
}
