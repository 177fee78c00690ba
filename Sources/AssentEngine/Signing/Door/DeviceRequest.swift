import AssentCore
import AssentSigningProtocol

/// A call of a device whose proof is good, with its body opened.
struct DeviceRequest: Sendable {
    /// Who calls.
    enum Party: Sendable {
        case enrolment(SigningEnrolmentRecord)
        case container(SigningContainerRecord)

        var deviceJWK: String {
            switch self {
            case .enrolment(let enrolment): enrolment.deviceJWK
            case .container(let container): container.deviceJWK
            }
        }
    }

    /// Seconds for which a container that has ended may ask how it stands.
    static let memory: Int64 = 365 * 86400

    let party: Party
    let did: SigningID
    let plaintext: [UInt8]
    let hash: SigningHash
    let proof: SpentProof
    /// When the nonce of the proof was made, in seconds since 1970.
    let nonceMadeAt: Int64
    /// The time of the call, in seconds since 1970.
    let now: Int64
    /// Where it came from, to count wrong codes.
    let address: String
    /// The renewal whose new device key has proved the call; `nil` when the container's device key has.
    let renewal: SigningRenewalRecord?
    /// The container's keys that are or were valid, as they were read together with it; `nil` for a call that needs
    /// none of them.
    let keys: [SigningKeyRow]?

    /// The container, whatever its state.
    var container: SigningContainerRecord? { if case .container(let container) = party { container } else { nil } }

    /// The container, also one that has ended.
    ///
    /// - Throws: ``SigningRefusal`` `enrolment_void` when there is none yet.
    func known() throws -> SigningContainerRecord {
        guard let container else { throw SigningRefusal(.enrolmentVoid) }
        return container
    }

    /// The container, if it may do more than ask how it stands.
    ///
    /// - Throws: ``SigningRefusal``: why it may not.
    func active() throws -> SigningContainerRecord {
        let container = try known()
        guard container.state(at: now) != .suspect else { throw SigningRefusal(.containerSuspect) }
        if let refusal = container.refusal(approving: false, at: now) { throw refusal }
        return container
    }

    func body<Body: MessagePart>(_ type: Body.Type = Body.self) throws -> Body { try Body(plaintext: plaintext) }
}
