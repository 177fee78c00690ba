import AssentCore
import AssentEngine
import AssentPayload
import AssentStore
import AssentTesting
import Foundation

/// A node that answers handshakes of payload encryption, without TLS and HTTP. Its clock goes on with each handshake,
/// so that there are never too many in a second, and that of 100,000 sessions none has become idle.
final class HandshakeWorld: Sendable {
    private static let origin = "https://api.bank.example"
    private static let peer = PayloadPeer(
        role: .app, origin: origin, client: nil, app: "bank", version: "1.0", platform: "linux")

    private let clock: ManualClock
    private let handshakes: PayloadHandshakes
    private let sessions: PayloadSessions
    private let key: PayloadKey

    var sessionCount: Int { sessions.count }

    /// On the context's database.
    init(_ context: EngineContext) async throws {
        let clock = ManualClock(Date())
        let own = EngineContext(
            database: context.database, clock: clock, random: context.random, masterKey: context.masterKey,
            logger: context.logger)
        let keys = PayloadKeys(own)
        let now = clock.epochSeconds
        let listed = try await keys.add(notBefore: now, notAfter: now + 365 * 86_400) { _ in
            SQLStatement.read("SELECT 1 AS one")
        }
        key = try PayloadKey(Base64URL.decode(listed.publicKey) ?? [])
        sessions = PayloadSessions(own, keys: keys)
        handshakes = PayloadHandshakes(
            own, keys: keys, sessions: sessions, proofs: SenderProofs(own), versions: SealedVersions([:]))
        self.clock = clock
    }

    /// What a client sends, and what it calculates the reply's keys with.
    func request() throws -> ClientHandshake {
        try ClientHandshake(Self.peer, serverKey: key, random: SystemRandom())
    }

    /// Answers a handshake.
    @discardableResult
    func answer(_ body: [UInt8]) async throws -> HandshakeReply {
        clock.advance(by: 0.0051)
        let call = PayloadHandshakes.Call(
            body: body, proof: PresentedProof(fields: [], method: "POST", url: Self.origin, server: .gateway),
            origin: Self.origin, address: nil)
        return try await handshakes.answer(call).result.get()
    }

    /// Makes a session that has taken messages.
    func makeUsedSession() async throws {
        let handshake = try request()
        let secrets = try handshake.finish(try await answer(handshake.request.body).body).secrets
        for number: UInt64 in 1...3 {
            let head = FrameHead(.request, session: secrets.session, number: number, random: SystemRandom())
            _ = try await sessions.opener(head, origin: Self.origin)
            _ = try sessions.claim(head)
            sessions.end(head)
        }
    }
}
