import AssentCore
import AssentStore
import AssentTesting
import TestSupport
import Testing

@testable import AssentEngine

@Suite("Two exchanges of one code")
struct CodeInterleavingTests {
    /// A database at which the first writes that spend a code wait for each other: both have read it as unused.
    private final class Meeting: SQLDatabase {
        private let base: any SQLDatabase
        private let left = Watched(2)

        init(_ base: any SQLDatabase) { self.base = base }

        func run(_ statement: SQLStatement) async throws -> [SQLRow] { try await base.run(statement) }

        func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]] {
            if statements.contains(where: { $0.sql.text().contains("UPDATE oauth_codes SET used_at") }) {
                leave()
                await left.wait { $0 <= 0 }
            }
            return try await base.run(statements)
        }

        /// One exchange less is waited for.
        func leave() { left.update { $0 -= 1 } }

        func checkHealth() async throws { try await base.checkHealth() }
        func close() async throws { try await base.close() }
    }

    @Test("Of two that have both read the code as unused one gets tokens, and these end with the reuse")
    func bothPastTheRead() async throws {
        let fixture = try await ProviderFixture()
        let code = try await fixture.code()
        let meeting = Meeting(fixture.database)
        let context = fixture.context.anotherNode(on: meeting)
        let provider = try OAuthProvider(
            context, keys: ServerKeys(context), configuration: fixture.grants.configuration)
        let replies = try await withThrowingTaskGroup(of: IssuedTokens?.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    defer { meeting.leave() }
                    do {
                        return try await fixture.exchange(code, on: provider)
                    } catch is OAuthError {
                        return nil
                    }
                }
            }
            return try await group.reduce(into: []) { $0 += $1.map { [$0] } ?? [] }
        }
        #expect(replies.count == 1)
        #expect(try await fixture.count("refresh_tokens", where: "1 = 1") == 1)
        #expect(try await fixture.count("grants", where: "revoked_because = 'code_reuse'") == 1)
        await #expect(throws: OAuthError.self) { _ = try await fixture.refresh(replies.first?.refreshToken) }
    }
}
