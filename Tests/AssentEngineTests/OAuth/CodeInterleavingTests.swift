import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Two exchanges of one code")
struct CodeInterleavingTests {
    /// A database at which the first writes that spend a code wait for each other: both have read it as unused.
    private final class Meeting: SQLDatabase {
        private let base: any SQLDatabase
        private let state = Locked<(left: Int, waiting: [CheckedContinuation<Void, Never>])>((2, []))

        init(_ base: any SQLDatabase) { self.base = base }

        func run(_ statement: SQLStatement) async throws -> [SQLRow] { try await base.run(statement) }

        func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
            if statements.contains(where: { $0.sql.text().contains("UPDATE oauth_codes SET used_at") }) { await meet() }
            return try await base.run(statements)
        }

        func checkHealth() async throws { try await base.checkHealth() }
        func close() async throws { try await base.close() }

        private func meet() async {
            await withCheckedContinuation { continuation in
                let released = state.withLock { state -> [CheckedContinuation<Void, Never>] in
                    guard state.left > 0 else { return [continuation] }
                    state.left -= 1
                    state.waiting.append(continuation)
                    guard state.left == 0 else { return [] }
                    defer { state.waiting = [] }
                    return state.waiting
                }
                for continuation in released { continuation.resume() }
            }
        }
    }

    @Test("Of two that have both read the code as unused one gets tokens, and these end with the reuse")
    func bothPastTheRead() async throws {
        let fixture = try await ProviderFixture()
        let code = try await fixture.code()
        let context = EngineContext(
            database: Meeting(fixture.database), clock: fixture.clock, random: SystemRandom(),
            masterKey: fixture.context.masterKey, logger: fixture.context.logger)
        let provider = try OAuthProvider(
            context, keys: ServerKeys(context), configuration: fixture.grants.configuration)
        let replies = await withTaskGroup(of: IssuedTokens?.self) { group in
            for _ in 0..<2 { group.addTask { try? await fixture.exchange(code, on: provider) } }
            return await group.reduce(into: []) { $0 += $1.map { [$0] } ?? [] }
        }
        #expect(replies.count == 1)
        #expect(try await fixture.count("refresh_tokens", where: "1 = 1") == 1)
        #expect(try await fixture.count("grants", where: "revoked_because = 'code_reuse'") == 1)
        await #expect(throws: OAuthError.self) { _ = try await fixture.refresh(replies.first?.refreshToken) }
    }
}
