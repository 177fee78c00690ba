import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

/// Tries every combination of faults of a node that refreshes the grant of a public client with what comes to another
/// node in between, on the real engine and a real database.
@Suite("One refresh of a grant that belongs to a key, two nodes, and every way in which a write can fail")
struct BoundRefreshExplorationTests {
    /// Who comes to the second node with the same refresh token.
    private enum Second: CaseIterable {
        case nobody
        /// The owner, who repeats what was not answered yet.
        case owner
        case thief
        case withoutKey
        case otherClient
    }

    private struct Case: CustomStringConvertible {
        /// Whether the grant belongs to the key before, or gets it by this refresh.
        let isBound: Bool
        /// What happens to the first node's writes: the refresh, and its repetition.
        let first: [NodeDatabase.Fault]
        let second: Second
        /// Before which of these writes the second one comes.
        let tries: Int

        var description: String { "bound \(isBound), first \(first), \(second) before write \(tries)" }
    }

    private static let cases: [Case] = {
        let faults = NodeDatabase.Fault.allCases
        return [true, false].flatMap { isBound in
            faults.flatMap { a in faults.map { [a, $0] } }.flatMap { first in
                // Until it has a key, a grant is anybody's who has the token.
                (isBound ? Second.allCases : [.nobody, .owner]).flatMap { second in
                    (second == .nobody ? [0] : [0, 1]).map {
                        Case(isBound: isBound, first: first, second: second, tries: $0)
                    }
                }
            }
        }
    }()

    private static let key = Base64URL.encode([UInt8](repeating: 1, count: 32))
    private static let otherKey = Base64URL.encode([UInt8](repeating: 2, count: 32))

    private let fixture: ProviderFixture

    init() async throws { fixture = try await ProviderFixture() }

    @Test("Its owner always goes on, with one successor; nobody else ever gets a token, and the key stays")
    func explore() async throws {
        // Each is tried on the embedded database; a round trip takes longer.
        for index in stride(from: 0, to: Self.cases.count, by: TestDatabase.isPostgreSQL ? 11 : 1) {
            try await run(Self.cases[index])
        }
    }

    private func run(_ each: Case) async throws {
        let token = try await begun(isBound: each.isBound)
        let granted = try await fixture.grantedCount()
        let (owners, strangers) = try await race(each, for: token)
        let last = await TokenReply { try await ask(token, as: .owner) }
        let done = try await fixture.grantedCount() - granted
        let grant = try #require(try jwtClaims(last.tokens?.accessToken)[OAuthProvider.grantClaim]?.string)
        let tokens = try await fixture.database.run(
            .read("SELECT used_at FROM refresh_tokens WHERE grant_id = \(grant)"))
        let next = await TokenReply {
            try await fixture.refresh(
                last.tokens?.refreshToken, attempt: RefreshTests.otherAttempt, keyThumbprint: Self.key)
        }
        let row = try await fixture.database.run(
            .read("SELECT sender, revoked_at FROM grants WHERE id = \(grant)"))
        let late = await TokenReply { try await ask(token, as: .thief) }

        let all = owners + [last]
        var faults: [String] = []
        func expect(_ condition: Bool, _ fault: String) { if !condition { faults.append(fault) } }
        expect(done == 1, "granted \(done) times")
        expect(all.allSatisfy { $0.refusal == nil }, "the owner was refused")
        expect(Set(all.compactMap { $0.tokens?.refreshToken?.reveal() }).count == 1, "several successors")
        for reply in all {
            guard let tokens = reply.tokens else { continue }
            let key = try jwtClaims(tokens.accessToken)["cnf"]?["jkt"]?.string
            expect(tokens.tokenType == "DPoP" && key == Self.key, "a token of another key")
        }
        expect(strangers.allSatisfy { $0.refusal == .invalidGrant }, "a stranger was not refused")
        expect(late.refusal == .invalidGrant, "the used token was good for something")
        expect(try tokens.map { try $0.optionalInteger("used_at") }.count { $0 == nil } == 1, "not one that is unused")
        expect(tokens.count == (each.isBound ? 2 : 3), "\(tokens.count) refresh tokens")
        expect(next.tokens != nil, "the successor is good for nothing")
        expect(try row.first?.optionalText("sender") == "jkt:\(Self.key)", "the grant has another key")
        expect(try row.first?.optionalInteger("revoked_at") == nil, "the grant has ended")
        #expect(faults.isEmpty, "\(each): \(all)")
    }

    /// What both nodes tell the owner, who repeats the request while the first one lives, and what they tell others.
    private func race(
        _ each: Case, for token: Secret?
    ) async throws -> (owners: [TokenReply], strangers: [TokenReply]) {
        let owners = Locked<[TokenReply]>([])
        let strangers = Locked<[TokenReply]>([])
        let database = NodeDatabase(fixture.database, each.first) { write in
            guard write == each.tries, each.second != .nobody else { return }
            let reply = await TokenReply { try await ask(token, as: each.second) }
            (each.second == .owner ? owners : strangers).withLock { $0.append(reply) }
        }
        let node = try fixture.node(database)
        for _ in 0..<2 where !database.isDead {
            let reply = await TokenReply(from: database) { try await ask(token, as: .owner, at: node) }
            owners.withLock { $0.append(reply) }
        }
        return (owners.withLock { $0 }, strangers.withLock { $0 })
    }

    /// A refresh token of a new grant: its first one, or where the grant has no key one that was refreshed without.
    private func begun(isBound: Bool) async throws -> Secret? {
        let code = try await fixture.code()
        let form = try ProviderFixture.parameters([
            "grant_type": "authorization_code", "client_id": "bank-app", "code": code,
            "redirect_uri": "https://bank.example/cb", "code_verifier": ProviderFixture.verifier,
        ])
        let first = try await fixture.grants.tokens(form, keyThumbprint: isBound ? Self.key : nil)
        return isBound ? first.refreshToken : try await fixture.refresh(first.refreshToken).refreshToken
    }

    private func ask(_ token: Secret?, as who: Second, at node: OAuthProvider? = nil) async throws -> IssuedTokens {
        let key: String? =
            switch who {
            case .thief: Self.otherKey
            case .withoutKey: nil
            case .nobody, .owner, .otherClient: Self.key
            }
        return try await fixture.refresh(
            token, attempt: RefreshTests.attempt, who == .otherClient ? ["client_id": "other-app"] : [:],
            keyThumbprint: key, on: node)
    }
}
