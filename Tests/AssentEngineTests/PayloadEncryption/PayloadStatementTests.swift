import AssentCore
import AssentPayload
import AssentStore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("Payload encryption: statements that a message takes beside those of its call")
struct PayloadStatementTests {
    private static let peer = PayloadPeer(
        role: .app, origin: "https://api.bank.example", client: nil, app: "bank", version: "3.2.0", platform: "linux")

    @Test("40: None, on both databases, but to read a session once at another node, and the row that makes it single")
    func messages() async throws {
        let fixture = try await TransactionFixture()
        let tally = StatementTally(fixture.database)
        let context = fixture.context.anotherNode(on: tally)
        let keys = PayloadKeys(context)
        let (node, other) = (PayloadSessions(context, keys: keys), PayloadSessions(context, keys: keys))
        try await DPoPReplays(context, isDatabaseTimed: false).begin()
        let now = fixture.clock.epochSeconds
        let kid = try await keys.add(notBefore: now, notAfter: now + 86_400) { _ in .read("SELECT 1 AS one") }.kid
        let stored = Secret(bytes: SystemRandom().bytes(PayloadSecrets.storedLength))
        let secrets = try PayloadSecrets(session: node.makeName(), stored: stored)
        try await node.keep(secrets, peer: Self.peer, kid: kid)

        /// How many statements a message takes.
        func count(_ number: UInt64, at node: PayloadSessions, once: Bool) async throws -> Int {
            let before = tally.count
            let head = FrameHead(.request, session: secrets.session, number: number, random: SystemRandom())
            _ = try await node.opener(head, origin: Self.peer.origin)
            _ = try node.claim(head)
            if once { try await node.spendOnce(head) }
            node.end(head)
            return tally.count - before
        }
        let shared = TestDatabase.isPostgreSQL ? 1 : 0
        for number: UInt64 in 1...3 {
            let safe = try await count(2 * number, at: node, once: false)
            let unsafe = try await count(2 * number + 1, at: node, once: true)
            #expect(safe == 0 && unsafe == shared)
        }
        guard TestDatabase.isPostgreSQL else { return }
        let first = try await count(20, at: other, once: false)
        let second = try await count(21, at: other, once: false)
        #expect(first == 1 && second == 0)
    }
}
