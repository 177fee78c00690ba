import AssentCore
import AssentPayload
import AssentStore
import AssentTesting
import StoreTesting
import Testing

@testable import AssentEngine

@Suite("What keeps a session of payload encryption alive")
struct PayloadSessionUseTests {
    private static let peer = PayloadPeer(
        role: .app, origin: "https://api.bank.example", client: nil, app: "bank", version: "3.2.0", platform: "linux")

    private let fixture: TransactionFixture
    private let keys: PayloadKeys
    private let sessions: PayloadSessions
    private let kid: String

    init() async throws {
        fixture = try await TransactionFixture()
        keys = PayloadKeys(fixture.context)
        sessions = PayloadSessions(fixture.context, keys: keys)
        let now = fixture.clock.epochSeconds
        kid = try await keys.add(notBefore: now, notAfter: now + 86_400) { _ in .read("SELECT 1 AS one") }.kid
    }

    private func node() -> PayloadSessions { PayloadSessions(fixture.context, keys: keys) }

    /// The id of a session that was agreed on at a node.
    private func kept(at node: PayloadSessions) async throws -> [UInt8] {
        let stored = Secret(bytes: SystemRandom().bytes(PayloadSecrets.storedLength))
        let secrets = try PayloadSecrets(session: node.makeName(), stored: stored)
        try await node.keep(secrets, peer: Self.peer, kid: kid)
        return secrets.session
    }

    private func head(_ session: [UInt8], _ number: UInt64) -> FrameHead {
        FrameHead(.request, session: session, number: number, random: SystemRandom())
    }

    /// Whether a node would open a message, of which nothing is said yet.
    private func opens(_ session: [UInt8], at node: PayloadSessions) async throws -> Bool {
        do {
            _ = try await node.opener(head(session, 9), origin: Self.peer.origin)
            return true
        } catch is PayloadRefusal {
            return false
        }
    }

    @Test("A message that runs for long keeps its session from being idle at every node")
    func running() async throws {
        let session = try await kept(at: sessions)
        _ = try sessions.claim(head(session, 1))
        for _ in 0..<3 {
            fixture.clock.advance(by: 500)
            try await sessions.look()
            try await sessions.purge()
        }
        try await sessions.look()
        #expect(try await opens(session, at: sessions))
        if TestDatabase.isPostgreSQL { #expect(try await opens(session, at: node())) }
        sessions.end(head(session, 1))
        fixture.clock.advance(by: 700)
        #expect(try await !opens(session, at: sessions))
    }

    @Test(
        "Bytes that do not open keep no session alive, whichever nodes they are sent to",
        .enabled(if: TestDatabase.isPostgreSQL))
    func junk() async throws {
        let session = try await kept(at: sessions)
        fixture.clock.advance(by: 630)
        let other = node()
        #expect(try await opens(session, at: other))
        try await other.look()
        fixture.clock.advance(by: 70)
        #expect(try await !opens(session, at: node()))
    }

    @Test("Where there are too many, those are kept that a message runs in", .enabled(if: TestDatabase.isPostgreSQL))
    func full() async throws {
        let small = PayloadSessions(fixture.context, keys: keys, limit: 4)
        let session = try await kept(at: small)
        _ = try small.claim(head(session, 1))
        for _ in 0..<32 { _ = try await kept(at: small) }
        #expect(small.count <= 4)
        _ = try small.claim(head(session, 2))
        #expect(throws: PayloadRefusal.repeated) { try small.claim(head(session, 1)) }
    }
}
