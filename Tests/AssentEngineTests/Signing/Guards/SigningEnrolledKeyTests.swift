import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("The keys that a device may enrol")
struct SigningEnrolledKeyTests {
    /// What a device that has been changed would commit to in the place of the keys that were offered.
    enum Change: CaseIterable, Sendable {
        case nothing
        case noSlot, otherPolicy, otherLabel, otherUsage, otherOrder
        case noSigningKey, anotherSigningKey
        case bareKeyBehindPIN, sealedDeviceKey

        fileprivate func applied(to keys: [EnrolledKey], more: ProtocolKey) -> [EnrolledKey] {
            var keys = keys
            switch self {
            case .nothing: break
            // The PIN would guard nothing, and no evaluation would be asked for.
            case .noSlot: keys[2] = keys[2].with(keystore: "software", hasSlot: false)
            case .otherPolicy: keys[2] = keys[2].with(policy: SigningSettings.policyID)
            case .otherLabel: keys[2] = keys[2].with(label: "refunds")
            case .otherUsage: keys[2] = keys[2].with(usage: .auth)
            case .otherOrder: keys.swapAt(0, 1)
            case .noSigningKey: keys.removeLast()
            case .anotherSigningKey:
                keys.append(
                    EnrolledKey(
                        usage: .sign, label: "more", kid: more.thumbprint, jwk: more, policy: SigningSettings.policyID,
                        keystore: .software, possession: keys[2].possession))
            case .bareKeyBehindPIN: keys[2] = keys[2].with(keystore: "software")
            case .sealedDeviceKey: keys[0] = keys[0].with(keystore: "software+software")
            }
            return keys
        }
    }

    /// A device that has committed to keys, of which `change` says how they differ from those of the offer.
    private struct Committed {
        let device: TestDevice
        let did: SigningID
        let content: Enrolment

        init(
            _ world: SigningWorld, _ device: TestDevice, keysOf owner: TestDevice? = nil,
            answering other: SigningNonce? = nil,
            _ change: ([EnrolledKey]) -> [EnrolledKey] = { $0 }
        ) async throws {
            let offer = try await device.start(try await world.invite().code)
            let nonceD = SigningNonce(random: device.random)
            func list(_ nonce: NonceReply?) async throws -> Enrolment {
                let right = try await (owner ?? device).enrolment(
                    offer.content, compact: offer.compact, nonceD: nonceD, nonce: nonce)
                return right.with(keys: change(right.keys))
            }
            let commitment = SigningHash.commitment(nonceD: nonceD, keys: try await list(nil).keyList)
            let body = CommitBody(commitment: commitment, offer: .offer(offer.compact))
            let nonce: NonceReply = try await device.ask("provision/commit", offer.content.did, body)
            content = try await list(
                other.map { NonceReply(head: nonce.head, nonceS: $0, sub: nonce.sub, user: nonce.user) } ?? nonce)
            (self.device, did) = (device, offer.content.did)
        }

        func complete(_ content: Enrolment? = nil, signer: SoftwareSigningKey? = nil) async throws -> String? {
            let message = try await SignedMessage.sign(content ?? self.content, with: signer ?? device.deviceKey)
            return try await device.code("provision/complete", did, CompleteBody(enrol: message.compact))
        }
    }

    @Test(
        "Keys that are not those of the offer are refused, although the device has committed to them",
        arguments: Change.allCases)
    func offered(change: Change) async throws {
        let world = try await SigningWorld.withPIN()
        let more = try ProtocolKey(SoftwareSigningKey.generate(.es256))
        let committed = try await Committed(world, try TestDevice(world, modes: [.device, .assisted])) {
            change.applied(to: $0, more: more)
        }
        let code = try await committed.complete()
        #expect(code == (change == .nothing ? nil : "invalid_request"))
        #expect((try await world.provider.devices.find(committed.did) == nil) == (change != .nothing))
    }

    @Test("The keys are signed by the device key that has begun, not by one of another device that was committed to")
    func signer() async throws {
        let world = try await SigningWorld()
        let (first, second) = (try TestDevice(world), try TestDevice(world))
        let committed = try await Committed(world, first, keysOf: second)
        #expect(try await committed.complete(signer: second.deviceKey) == "hash_mismatch")
        #expect(try await world.provider.devices.find(committed.did) == nil)
    }

    @Test("The keys answer the nonce that the server gave for their commitment, and no other one")
    func nonce() async throws {
        let world = try await SigningWorld()
        let device = try TestDevice(world)
        let committed = try await Committed(world, device, answering: SigningNonce(random: device.random))
        #expect(try await committed.complete() == "hash_mismatch")
        #expect(try await world.provider.devices.find(committed.did) == nil)
        #expect(try await Committed(world, try TestDevice(world)).complete() == nil)
    }

    @Test("A key is enrolled by somebody who has it: another key's signature, or one that was changed, does not do")
    func possession() async throws {
        let world = try await SigningWorld()
        let committed = try await Committed(world, try TestDevice(world))
        let right = committed.content
        let sign = try #require(right.keys.first { $0.usage == .sign })
        let claim = KeyPossession(
            issuer: right.issuer, did: right.did, nonceS: right.nonceS, device: right.device.kid, usage: .sign,
            label: sign.label, kid: sign.kid)
        let stranger = try SoftwareSigningKey.generate(.es256)
        let foreign = try await SignedMessage.sign(claim, with: stranger).compact
        for wrong in [foreign, try #require(sign.possession).withAnotherSignature] {
            let keys = right.keys.map { $0.kid == sign.kid ? $0.with(possession: wrong) : $0 }
            #expect(try await committed.complete(right.with(keys: keys)) == "invalid_request")
        }
        #expect(try await world.provider.devices.find(committed.did) == nil)
        #expect(try await committed.complete() == nil)
    }

    @Test("A key belongs to one container: another one cannot enrol it again, and the first goes on with it")
    func knownKeys() async throws {
        let world = try await SigningWorld()
        let (device, container) = try await world.enrolled()
        let again = try await Committed(world, device)
        #expect(try await again.complete() == "invalid_request")
        let second = try TestDevice(world)
        let payments = try device.key("payments")
        second.keys.withLock { $0["payments"] = payments }
        let shared = try await Committed(world, second)
        #expect(try await shared.complete() == "invalid_request")
        #expect(try await world.provider.devices.list(world.ana, user: nil).map(\.container.did) == [container.did])
        let (txn, _) = try await world.asked()
        #expect(try await device.approve(txn, container).content.state == .approved)
    }

    @Test("A device that was removed does not get its secrets again by repeating its last message")
    func removed() async throws {
        let world = try await SigningWorld()
        let committed = try await Committed(world, try TestDevice(world))
        let message = try await SignedMessage.sign(committed.content, with: committed.device.deviceKey)
        let body = CompleteBody(enrol: message.compact)
        for _ in 0..<2 { #expect(try await committed.device.code("provision/complete", committed.did, body) == nil) }
        #expect(
            try await world.provider.devices.change(world.ana, did: committed.did.text, .revoke) == .revoked)
        #expect(try await committed.device.code("provision/complete", committed.did, body) == "enrolment_void")
    }
}

extension EnrolledKey {
    fileprivate func with(
        usage: SigningKeyUsage? = nil, label: String? = nil, policy: String? = nil, keystore: String? = nil,
        hasSlot: Bool = true, possession: String? = nil
    ) -> EnrolledKey {
        EnrolledKey(
            usage: usage ?? self.usage, label: label ?? self.label, kid: kid, jwk: jwk, policy: policy ?? self.policy,
            keystore: keystore.flatMap { Keystore(rawValue: $0) } ?? self.keystore, slot: hasSlot ? slot : nil,
            possession: possession ?? self.possession)
    }
}

extension Enrolment {
    fileprivate func with(keys: [EnrolledKey]) -> Enrolment {
        Enrolment(
            issuer: issuer, pid: pid, did: did, sub: sub, offer: offer, nonceD: nonceD, nonceS: nonceS, keys: keys)
    }
}
