import AssentCore
import AssentStore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

/// Tries every combination of faults of a node that a client's assertion comes to, with the same assertion at another
/// node in between, on the real engine and a real database.
@Suite("One assertion of a client, two nodes, and every way in which a write can fail")
struct AssertionExplorationTests {
    /// What the client asks for with its assertion.
    private enum Use: CaseIterable { case code, refresh, own }

    private struct Case: CustomStringConvertible {
        let use: Use
        /// What happens to the first node's writes: those of the request, and of its repetition.
        let first: [NodeDatabase.Fault]
        /// Before which of these writes the second node gets the same assertion; `nil` for never.
        let secondTries: Int?
        /// What for.
        let secondUse: Use
        /// Whether the first node spends codes and refresh tokens without a look before.
        let isUnread: Bool

        var description: String {
            "\(use) \(first), second \(secondUse) before write \(secondTries ?? -1), unread \(isUnread)"
        }
    }

    /// What one who has it changes for tokens.
    private struct Goods: Sendable {
        let code: String
        let refresh: Secret?
    }

    private static let cases: [Case] = {
        let faults = NodeDatabase.Fault.allCases
        var cases: [Case] = []
        for isUnread in [false, true] {
            for use in Use.allCases {
                for first in faults.flatMap({ a in faults.map { [a, $0] } }) {
                    cases.append(
                        Case(use: use, first: first, secondTries: nil, secondUse: .own, isUnread: isUnread))
                    for (tries, second) in [0, 1].flatMap({ tries in Use.allCases.map { (tries, $0) } }) {
                        cases.append(
                            Case(use: use, first: first, secondTries: tries, secondUse: second, isUnread: isUnread))
                    }
                }
            }
        }
        return cases
    }()

    private let key: AssertionKey
    private let fixture: ProviderFixture

    init() async throws {
        key = try AssertionKey()
        fixture = try await ProviderFixture(clients: [AssertionKey.client([key])])
    }

    @Test("It is accepted once at most, together with what it was used for, and a new one goes on from there")
    func explore() async throws {
        // Each is tried on the embedded database; a round trip takes longer.
        for index in stride(from: 0, to: Self.cases.count, by: TestDatabase.isPostgreSQL ? 11 : 1) {
            try await run(Self.cases[index])
        }
    }

    private func run(_ each: Case) async throws {
        let mine = try await goods()
        let others = each.secondTries == nil ? mine : try await goods()
        let assertion = try await key.assertion(now: fixture.clock)
        let granted = try await fixture.grantedCount()
        let spent = try await fixture.count("client_assertions")
        let replies = Locked<[TokenReply]>([])
        let database = NodeDatabase(fixture.database, each.first, isShared: each.isUnread) { write in
            guard write == each.secondTries else { return }
            let reply = await TokenReply { try await ask(each.secondUse, others, assertion, at: fixture.grants) }
            replies.withLock { $0.append(reply) }
        }
        let node = try fixture.node(database)
        for _ in 0..<2 where !database.isDead {
            let reply = await TokenReply(from: database) { try await ask(each.use, mine, assertion, at: node) }
            replies.withLock { $0.append(reply) }
        }
        let done = try await fixture.grantedCount() - granted
        let rows = try await fixture.count("client_assertions") - spent
        let last = await TokenReply { try await ask(each.use, mine, assertion, at: fixture.grants) }
        let doneAtLast = try await fixture.grantedCount() - granted
        let isCodeUsed = try await isUsed(mine.code)
        let fresh = try await key.assertion(now: fixture.clock)
        let next = await TokenReply { try await ask(each.use, mine, fresh, at: fixture.grants) }

        let all = replies.withLock { $0 }
        var faults: [String] = []
        func expect(_ condition: Bool, _ fault: String) { if !condition { faults.append(fault) } }
        let given = all.count { $0.tokens != nil }
        expect(done <= 1 && doneAtLast == 1, "\(done) granted, then \(doneAtLast)")
        expect(given <= done, "\(given) given, \(done) granted")
        expect(rows == done, "spent \(rows) times")
        expect(all.compactMap(\.refusal).allSatisfy { $0 == .invalidClient }, "refused for another reason")
        expect((last.tokens != nil) == (done == 0), "lost, or accepted twice")
        expect(last.tokens != nil || last.refusal == .invalidClient, "the database is left unusable")
        // A code is used once, whatever became of the reply; a refresh is repeated.
        let goesOn = each.use != .code || !isCodeUsed
        expect((next.tokens != nil) == goesOn, "a new assertion does not go on")
        expect(goesOn || next.refusal == .invalidGrant, "a used code")
        if let tokens = next.tokens { expect(try await fixture.isLive(tokens), "given, and good for nothing") }
        #expect(faults.isEmpty, "\(each): \(all)")
    }

    // MARK: - Requests

    private func goods() async throws -> Goods {
        let first = try await exchange(try await code(), try await key.assertion(now: fixture.clock), fixture.grants)
        return Goods(code: try await code(), refresh: first.refreshToken)
    }

    private func code() async throws -> String {
        try await fixture.code(["client_id": "office", "redirect_uri": "https://office.example/cb"])
    }

    private func isUsed(_ code: String) async throws -> Bool {
        try await fixture.database.run(
            .read("SELECT id FROM oauth_codes WHERE id = \(TokenHash.of(Secret(code))) AND used_at IS NOT NULL")
        ).isEmpty == false
    }

    private func ask(
        _ use: Use, _ goods: Goods, _ assertion: String, at node: OAuthProvider
    ) async throws -> IssuedTokens {
        switch use {
        case .code: try await exchange(goods.code, assertion, node)
        case .refresh:
            try await fixture.refresh(
                goods.refresh, attempt: RefreshTests.attempt, AssertionKey.form(assertion), on: node)
        case .own: try await node.tokens(try ProviderFixture.ownToken(assertion))
        }
    }

    private func exchange(_ code: String, _ assertion: String, _ node: OAuthProvider) async throws -> IssuedTokens {
        try await node.tokens(
            try ProviderFixture.parameters(
                [
                    "grant_type": "authorization_code", "code": code, "redirect_uri": "https://office.example/cb",
                    "code_verifier": ProviderFixture.verifier,
                ], AssertionKey.form(assertion)))
    }
}
