package import AssentCore
package import AssentJOSE
package import AssentSigningProtocol
import Crypto
import Foundation

/// The PIN of a ``TestDevice``: the slot `signing`, and the key that it seals, `payments` unless it is another one. A
/// try costs nothing, which the server cannot see.
package final class TestPIN: Sendable {
    /// What the device's file has of the slot.
    package struct Kept: Sendable {
        /// Counts the keys.
        package var generation: Int
        /// The pinned key.
        package var publicKey: [UInt8]
        /// The salt.
        package var salt: [UInt8]
        /// The key, sealed.
        package var blob: [UInt8]
        /// The ratchet's value.
        package var r: Secret
        /// The value after it, if a request may have left with it.
        package var next: Secret?
        /// The newest evaluation.
        package var last: String?
    }

    /// A key that is open.
    package struct Opened: Sendable {
        /// The evaluation as it was sent.
        package let evaluation: SignedMessage<Evaluation>
        /// The key.
        package let key: SoftwareSigningKey

        /// An evaluation with the key that signs what follows from it.
        package init(evaluation: SignedMessage<Evaluation>, key: SoftwareSigningKey) {
            self.evaluation = evaluation
            self.key = key
        }

        /// The evaluation's id.
        package var unl: SigningID {
            get throws {
                guard let unl = evaluation.content.unl else { throw TestRefusal("no unl") }
                return unl
            }
        }
    }

    /// The device.
    package let device: TestDevice
    /// The container.
    package let did: SigningID
    /// What is kept; a test may copy it.
    package let kept: Locked<Kept>
    /// The key by which a change had the new PIN evaluated.
    package let pending = Locked<[UInt8]?>(nil)
    private let label: String

    /// Sets a PIN at enrolment.
    package init(_ pin: String, device: TestDevice, offer: Offer, label: String = "payments") async throws {
        self.label = label
        guard let slot = offer.slots.first(where: { $0.slot == .signing }), let publicKey = slot.publicKey else {
            throw TestRefusal("no assisted slot")
        }
        self.device = device
        did = offer.did
        let random = device.random
        var made = Kept(
            generation: slot.generation, publicKey: publicKey, salt: random.bytes(16), blob: [],
            r: Secret(bytes: random.bytes(32)))
        let key = try SoftwareSigningKey.generate(.es256)
        device.keys.withLock { $0[label] = key }
        let (s, input) = try Self.blinded(pin, made, device, did)
        let reply: Evaluation = try await device.ask(
            "provision/evaluate", did,
            EvaluateBody(
                slot: .signing, generation: made.generation, rid: SigningID(random: random),
                blinded: input.element.bytes))
        let o = try Self.output(reply, input, publicKey)
        made.blob = try Self.seal(key, made, s: s, o: o, device, did)
        kept = Locked(made)
    }

    /// The PIN of another device, at its copy.
    package init(copying other: TestPIN, device: TestDevice) {
        self.device = device
        did = other.did
        kept = Locked(other.kept.withLock { $0 })
        label = other.label
    }

    private static func blinded(_ pin: String, _ kept: Kept, _ device: TestDevice, _ did: SigningID) throws
        -> (s: Secret, input: ObliviousInput)
    {
        let s = Secret(bytes: SHA256.hash(data: Array(pin.utf8) + kept.salt))
        let input = PasswordKeys.oprfInput(
            issuer: device.issuer.name, did: did, slot: .signing, generation: UInt64(kept.generation), s: s)
        return (s, try ObliviousInput(input))
    }

    private static func output(_ reply: Evaluation, _ input: ObliviousInput, _ publicKey: [UInt8]) throws -> Secret {
        guard reply.publicKey == publicKey else { throw TestRefusal("another key") }
        return try input.output(by: ObliviousElement(publicKey), evaluated: reply.evaluated, proof: reply.proof)
    }

    private static func kek(
        _ kept: Kept, _ kid: KeyThumbprint, s: Secret, o: Secret, _ device: TestDevice, _ did: SigningID
    ) throws -> SymmetricKey {
        guard let cost = PasswordCost(logN: 14, r: 8, p: 1) else { throw TestRefusal("no cost") }
        let context = SealedKeyContext(
            mode: .assisted, issuer: device.issuer.name, did: did, slot: .signing, kid: kid,
            generation: kept.generation, cost: cost, salt: kept.salt)
        return try context.key(s: s, output: o).symmetricKey
    }

    private static func seal(
        _ key: SoftwareSigningKey, _ kept: Kept, s: Secret, o: Secret, _ device: TestDevice, _ did: SigningID
    ) throws -> [UInt8] {
        let kek = try kek(kept, ProtocolKey(key).thumbprint, s: s, o: o, device, did)
        guard let sealed = try AES.GCM.seal(key.privateKey.revealBytes(), using: kek).combined else {
            throw TestRefusal("not sealed")
        }
        return Array(sealed)
    }

    /// The thumbprint of the key that the PIN opens.
    package var kid: KeyThumbprint {
        get throws {
            guard let key = device.keys.withLock({ $0[label] }) else { throw TestRefusal("no key") }
            return try ProtocolKey(key).thumbprint
        }
    }

    /// One try: `nil` when the PIN does not open the key. Nothing is confirmed.
    package func unlock(_ pin: String) async throws -> Opened? {
        let (kept, next) = kept.withLock { kept in
            let next = kept.next ?? Secret(bytes: device.random.bytes(32))
            kept.next = next
            return (kept, next)
        }
        let (s, input) = try Self.blinded(pin, kept, device, did)
        let (reply, request) = try await device.call(
            "slots/unlock", did, body(kept, next: next, element: input.element.bytes))
        let evaluation = try await device.trust().reply(
            reply, as: Evaluation.self, audience: did.text, request: request)
        self.kept.withLock { mine in
            mine.r = next
            mine.next = nil
            mine.last = evaluation.compact
        }
        let o = try Self.output(evaluation.content, input, kept.publicKey)
        let kek = try Self.kek(kept, kid, s: s, o: o, device, did)
        guard let opened = try? AES.GCM.open(AES.GCM.SealedBox(combined: kept.blob), using: kek) else { return nil }
        return Opened(
            evaluation: evaluation,
            key: try SoftwareSigningKey(algorithm: .es256, privateKey: Secret(bytes: Array(opened))))
    }

    /// A request for an evaluation.
    package func body(_ kept: Kept, next: Secret, rid: SigningID? = nil, element: [UInt8]) -> UnlockBody {
        UnlockBody(
            slot: .signing, generation: kept.generation, rid: rid ?? SigningID(random: device.random),
            blinded: element, r: kept.r, next: .ratchet(next), last: kept.last)
    }

    /// What says that the PIN was right.
    package func confirmation(_ opened: Opened) async throws -> ConfirmEvaluationBody {
        let content = EvaluationConfirmation(
            issuer: device.issuer.name, did: did, slot: .signing, generation: opened.evaluation.content.generation,
            n: opened.evaluation.content.n ?? 0, unl: try opened.unl,
            evaluation: .evaluation(opened.evaluation.compact))
        return ConfirmEvaluationBody(
            confirmation: try await SignedMessage.sign(content, with: opened.key).compact,
            evaluation: opened.evaluation.compact)
    }

    /// Opens the key and confirms it.
    package func open(_ pin: String) async throws -> Opened? {
        guard let opened = try await unlock(pin) else { return nil }
        let _: ContainerStatus = try await device.ask("slots/confirm", did, try await confirmation(opened))
        return opened
    }

    /// A step of a change. Its end names the key by which ``begin(_:_:)`` had the new PIN evaluated last.
    package func change(_ step: PasswordChangeStep, _ opened: Opened, from: Int, key: SoftwareSigningKey? = nil)
        async throws -> String
    {
        try await SignedMessage.sign(
            PasswordChange(
                issuer: device.issuer.name, did: did, slot: .signing, from: from, to: from + 1, step: step,
                unl: step == .start ? try opened.unl : nil,
                publicKey: step == .commit ? pending.withLock { $0 } : nil, jti: SigningID(random: device.random)),
            with: key ?? opened.key
        ).compact
    }

    /// Begins a change to another PIN, and gives what the file has of it.
    package func begin(_ opened: Opened, _ pin: String) async throws -> Kept {
        var fresh = kept.withLock { $0 }
        let from = fresh.generation
        fresh.generation += 1
        fresh.salt = device.random.bytes(16)
        let (s, input) = try Self.blinded(pin, fresh, device, did)
        let reply: Evaluation = try await device.ask(
            "slots/change-start", did,
            ChangeStartBody(
                change: try await change(.start, opened, from: from), rid: SigningID(random: device.random),
                blinded: input.element.bytes))
        fresh.publicKey = reply.publicKey
        pending.withLock { $0 = reply.publicKey }
        let o = try Self.output(reply, input, reply.publicKey)
        fresh.blob = try Self.seal(opened.key, fresh, s: s, o: o, device, did)
        return fresh
    }

    /// Ends a change.
    package func commit(_ opened: Opened, from: Int) async throws -> ContainerStatus {
        try await device.ask(
            "slots/change-commit", did, ChangeCommitBody(change: try await change(.commit, opened, from: from)))
    }
}

extension TestDevice {
    /// Enrols with a PIN for a key, as far as the digits.
    package func enrol(_ code: InviteCode, pin: String, for label: String = "payments") async throws -> (
        Enrolled, TestPIN
    ) {
        let made = Locked<TestPIN?>(nil)
        let enrolled = try await enrol(code) { offer in
            let pin = try await TestPIN(pin, device: self, offer: offer, label: label)
            made.withLock { $0 = pin }
        }
        guard let pin = made.withLock({ $0 }) else { throw TestRefusal("no PIN") }
        return (enrolled, pin)
    }

    /// Fetches, opens the key with the PIN, and approves.
    package func approve(_ txn: SigningID, _ enrolled: Enrolled, _ pin: TestPIN, typing text: String)
        async throws -> SignedMessage<Receipt>
    {
        let document = try await fetch(txn, enrolled)
        guard let opened = try await pin.open(text) else { throw TestRefusal("wrong PIN") }
        let body = try await signed(
            try decision(document, status: "accept", unl: try opened.unl), label: "payments")
        return try await decide(body, enrolled)
    }
}
