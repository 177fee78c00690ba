import AssentCore
import AssentPayload
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Payload encryption: ten thousand handshakes at once")
struct HandshakeFloodTests {
    private static let origin = "https://api.bank.example"

    private let fixture: TransactionFixture
    private let sessions: PayloadSessions
    private let handshakes: PayloadHandshakes
    private let body: [UInt8]

    init() async throws {
        fixture = try await TransactionFixture()
        let keys = PayloadKeys(fixture.context)
        sessions = PayloadSessions(fixture.context, keys: keys)
        handshakes = PayloadHandshakes(
            fixture.context, keys: keys, sessions: sessions, proofs: SenderProofs(fixture.context),
            versions: SealedVersions([:]))
        let now = fixture.clock.epochSeconds
        let key = try await keys.add(notBefore: now, notAfter: now + 86_400) { _ in .read("SELECT 1 AS one") }
        let peer = PayloadPeer(
            role: .app, origin: Self.origin, client: nil, app: "bank", version: "3.2.0", platform: "linux")
        let known = try PayloadKey(try #require(Base64URL.decode(key.publicKey)))
        body = try ClientHandshake(peer, serverKey: known, random: SystemRandom()).request.body
    }

    /// How many of ten thousand are answered, and for which reasons the others are not.
    private func answered(
        by address: @escaping @Sendable (Int) -> String
    ) async -> (made: Int, refused: [PayloadRefusal: Int]) {
        await withTaskGroup(of: PayloadRefusal?.self) { group in
            for number in 0..<10_000 {
                group.addTask { [handshakes, body] in
                    let proof = PresentedProof(fields: [], method: "POST", url: Self.origin, server: .gateway)
                    let call = PayloadHandshakes.Call(
                        body: body, proof: proof, origin: Self.origin, address: address(number))
                    guard case .failure(let refusal) = await handshakes.answer(call).result else { return nil }
                    return refusal
                }
            }
            var (made, refused): (Int, [PayloadRefusal: Int]) = (0, [:])
            for await refusal in group {
                if let refusal { refused[refusal, default: 0] += 1 } else { made += 1 }
            }
            return (made, refused)
        }
    }

    @Test("36: From one address twenty get a session, the others are told to wait, and another address is served")
    func one() async {
        let flood = await answered { _ in "192.0.2.1" }
        #expect(flood.made == 20 && flood.refused == [.busy: 9_980])
        #expect(sessions.count == 20)
        let other = await answered { _ in "192.0.2.2" }
        #expect(other.made == 20 && sessions.count == 40)
    }

    @Test("36: From many addresses two hundred get a session, and a second later the next ones do")
    func many() async {
        let flood = await answered { "192.0.2.\($0)" }
        #expect(flood.made == 200 && flood.refused == [.busy: 9_800])
        #expect(sessions.count == 200)
        fixture.clock.advance(by: 1)
        let later = await answered { "198.51.100.\($0)" }
        #expect(later.made == 200 && sessions.count == 400)
    }
}
