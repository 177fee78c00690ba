import AssentCore
import AssentSigning
import AssentSigningProtocol
import Testing

/// Only the restored store is used; the newer one is gone, and is looked at only to see that the server has lost
/// nothing of it.
@Suite("Signing device: a store that was restored from a backup")
struct RestoredStoreTests {
    private let scene: Scene
    private let pin = Secret("271828")
    private let wrong = Secret("271829")

    init() throws { scene = try Scene() }

    private func enrolled(_ offer: ScriptedServer.PasswordOffer) async throws -> SigningContainer {
        try await scene.enrolled(scene.device(), [.signing: "271828"], by: offer)
    }

    private func password(_ scene: Scene, _ container: SigningContainer) async throws -> SigningPassword {
        try #require(await scene.device().container(container.id).password(.signing))
    }

    @Test("From before a PIN was changed: neither PIN opens it, the error says why, and refusing still works")
    func beforeChange() async throws {
        let container = try await enrolled(ScriptedServer.PasswordOffer(.assisted))
        let backup = try await scene.copy()
        let new = Secret("839201")
        try await password(scene, container).change(from: pin, to: new)
        let before = try #require(await scene.server.signingSlot)
        for text in [pin, new] {
            await #expect(throws: SigningError(.wrongGeneration)) {
                try await password(backup, container).verify(text)
            }
        }
        #expect(try await backup.sealedBlobs(.signing).allSatisfy { !$0.isEmpty })
        let after = try #require(await scene.server.signingSlot)
        #expect(after.generation == 1 && after.key != nil && after.n == before.n && after.pending == nil)
        #expect(after.unconfirmed == before.unconfirmed)
        #expect(await scene.server.state == .active)
        #expect(try await backup.fetched(container, on: backup.device()).setStatus("deny").effect == .deny)
        try await password(scene, container).verify(new)
    }

    @Test("From before wrong PINs were tried: no try comes back, and the container is taken for a copied one")
    func beforeTries() async throws {
        let container = try await enrolled(ScriptedServer.PasswordOffer(.assisted))
        try await password(scene, container).verify(pin)
        let backup = try await scene.copy()
        for _ in 1...2 {
            await #expect(throws: SigningError(.wrongPassword)) {
                try await password(scene, container).verify(wrong)
            }
        }
        let error = await #expect(throws: SigningError.self) { try await password(backup, container).verify(pin) }
        #expect(error?.code == .containerSuspect && error?.remaining == 3 && error?.spare == 18)
        #expect(try await backup.device().container(container.id).state == .suspect)
        #expect(try await backup.sealedBlobs(.signing).allSatisfy { !$0.isEmpty })
        let after = try #require(await scene.server.signingSlot)
        #expect(after.key != nil && after.n == 3 && after.unconfirmed == 2)
    }

    @Test("From before a local PIN's failures were counted: they are forgotten with the store, and the PIN opens it")
    func beforeFailures() async throws {
        let offer = ScriptedServer.PasswordOffer(.local) { $0.lock = ["type": "counter", "max": 2] }
        let container = try await enrolled(offer)
        let backup = try await scene.copy()
        await #expect(throws: SigningError(.wrongPassword)) { try await password(scene, container).verify(wrong) }
        await #expect(throws: SigningError(.credentialsLost)) { try await password(scene, container).verify(wrong) }
        let asked = await scene.server.asked.count
        #expect(try await password(backup, container).remaining == 2)
        let error = await #expect(throws: SigningError.self) { try await password(backup, container).verify(wrong) }
        #expect(error?.code == .wrongPassword && error?.remaining == 1)
        try await password(backup, container).verify(pin)
        #expect(await scene.server.asked.count == asked)
        let transaction = try await backup.fetched(container, on: backup.device())
        #expect(try await transaction.setStatus("accept", password: pin, number: "42").effect == .approve)
    }

    @Test("From before a counter gave codes: those come again, which a server takes once, and then new ones")
    func beforeCodes() async throws {
        await scene.server.offer(keys: [
            ["usage": "device", "label": "device", "policy": "device"],
            ["usage": "transport", "label": "transport", "policy": "device"],
            ["usage": "sign", "label": "payments", "policy": "device"],
            ["usage": "otp", "label": "bank", "policy": "device"],
        ])
        // The secret of RFC 4226, appendix D.
        let uri = "otpauth://hotp/Bank:ana?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Bank&digits=6&counter=0"
        await scene.server.edit("enrolled") {
            $0["otp"] = [["label": "bank", "policy": "device", "uri": .string(uri)]]
        }
        let container = try await scene.enrolled(scene.device())
        let backup = try await scene.copy()
        func codes(_ scene: Scene, _ count: Int) async throws -> [String] {
            var codes: [String] = []
            for _ in 0..<count {
                codes.append(try await scene.device().container(container.id).oneTimeCode().code.reveal())
            }
            return codes
        }
        #expect(try await codes(scene, 2) == ["755224", "287082"])
        #expect(try await codes(backup, 3) == ["755224", "287082", "359152"])
    }

    @Test("From before a decision: the same transaction cannot be decided otherwise, or a second time")
    func beforeDecision() async throws {
        let container = try await scene.enrolled(scene.device())
        let transaction = try await scene.fetched(container, on: scene.device())
        let backup = try await scene.copy()
        let txn = try #require(await scene.server.transactions.first?.txn)
        try await transaction.setStatus("accept", number: "42")
        let decided = await scene.server.transactions[0].decision
        for status in ["deny", "accept"] {
            let device = try await backup.copy().device()
            let info = try await device.retrieveTransactionInfo(scene.server.ticket(txn))
            let again = try await info.transaction()
            await #expect(throws: SigningError(.alreadyDecided), "\(status)") {
                try await again.setStatus(status, number: status == "accept" ? "42" : nil)
            }
        }
        #expect(await scene.server.transactions[0].decision == decided)
        #expect(await scene.server.transactions[0].effect == "approve")
    }
}
