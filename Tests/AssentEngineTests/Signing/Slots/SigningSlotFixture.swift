import AssentCore
import AssentSigningProtocol
import AssentStore
import Testing

@testable import AssentEngine

extension SigningStoreFixture {
    /// Five tries, twenty evaluations that were never confirmed, no delays.
    static let lock = AssistedPasswordLock(max: 5, cap: 20, delays: [])

    /// An active container with a slot whose sealed key is this.
    func withSlot(key: [UInt8] = [7], expiresIn seconds: Int64 = 2000) async throws -> SigningContainerRecord {
        let invite = try await invited()
        let enrolment = enrolment(invite)
        let slot = SigningOfferedSlot(slot: .signing, generation: 0, publicKey: [1], sealedKey: key)
        try #require(try await enrolments.start(enrolment, slots: [slot], user: user, isAgain: false, at: now))
        _ = try await commit(enrolment)
        let container = container(enrolment, expiresIn: seconds)
        let keys = keys(container).map { key in
            key.usage != .sign
                ? key
                : SigningKeyRow(
                    kid: key.kid, usage: .sign, label: "sign", policy: "pin", slot: .signing, keystore: .software,
                    publicJWK: "{}")
        }
        try #require(
            try await enrolments.complete(
                container, SentKeys(rows: keys, slots: [.signing], digits: "12345678"), limit: 100,
                proof: proof(container.did), at: now))
        _ = try await enrolments.confirm(container, echoHash: "echo", activation: activation(), at: now)
        _ = try await invites.compare(digits: "12345678", pid: container.pid, at: now)
        try #require(try await enrolments.acceptDigits(container, activation: activation(), at: now))
        return try #require(try await devices.find(container.did))
    }

    func slot(_ container: SigningContainerRecord) async throws -> SigningSlotRow {
        try #require(try await slots.find(.signing, of: container.did))
    }

    /// A request of a device whose ratchet is at `r`.
    func attempt(
        _ container: SigningContainerRecord, r: SigningHash = "r", next: SigningHash = "next", generation: Int64 = 0,
        last: Int64 = 0, nonceMadeAt: Int64? = nil
    ) -> SlotTry {
        SlotTry(
            did: container.did, slot: .signing, generation: generation, rid: id(), element: id().text, ratchet: r,
            next: next, last: last, nonceMadeAt: nonceMadeAt ?? now)
    }

    func unlock(
        _ container: SigningContainerRecord, _ attempt: SlotTry? = nil,
        lock: AssistedPasswordLock = SigningStoreFixture.lock
    ) async throws -> CountedTry {
        try await slots.count(attempt ?? self.attempt(container), of: container, lock: lock, at: now)
    }

    /// The code that an unlock is refused with.
    func refusal(
        _ container: SigningContainerRecord, _ attempt: SlotTry? = nil,
        lock: AssistedPasswordLock = SigningStoreFixture.lock
    ) async throws -> SigningErrorCode? {
        try await signingCode { _ = try await unlock(container, attempt, lock: lock) }
    }

    func confirmed(_ container: SigningContainerRecord, _ n: Int64, generation: Int64 = 0) -> ConfirmedTry {
        ConfirmedTry(
            did: container.did, slot: .signing, generation: generation, n: n, unl: "unl \(n)", evaluatedAt: now,
            confirmedAt: now, evaluation: "eval \(n)", confirmation: "confirm \(n)")
    }

    func slotNotes(_ container: SigningContainerRecord) async throws -> [String] {
        try await base.database.run(
            .read("SELECT detail FROM audit WHERE event = 'signing.slot' ORDER BY position")
        ).compactMap { row in
            let detail = try JSONValue.parse(row.text("detail"))
            guard detail["did"]?.string == container.did.text else { return nil }
            return "\(detail["step"]?.string ?? "refused") \(detail["n"]?.integer.map { "\($0)" } ?? "-")"
        }
    }
}
