import AssentCore
package import AssentSigningProtocol
import AssentStore

/// Whether the signatures of a container's key count.
package enum SigningKeyState: String, SQLConstant {
    /// It belongs to a renewal that is under way.
    case pending = "PENDING"
    case active = "ACTIVE"
    /// It was replaced, or its container has ended.
    case retired = "RETIRED"
}

/// A key of a container.
package struct SigningKeyRow: Sendable, Hashable {
    package let kid: KeyThumbprint
    package let usage: SigningKeyUsage
    package let label: String
    /// The id of the policy that protects it.
    let policy: String
    /// The password slot, if it has one.
    let slot: PasswordSlot?
    /// What the device says that holds it.
    let keystore: Keystore
    /// The public key as a JWK.
    let publicJWK: String
    package var state = SigningKeyState.active
    /// Since when it is in this state, in seconds since 1970.
    package var since: Int64 = 0

    var isActive: Bool { state == .active }

    /// Whether it approves something of a kind that has this usage, by its label if one of these is asked for.
    func approves(_ usage: SigningKeyUsage, labels: [String]) -> Bool {
        isActive && self.usage == usage && (labels.isEmpty || labels.contains(label))
    }
}

extension SigningKeyRow {
    /// A key that a device has sent.
    init(_ key: EnrolledKey) {
        self.init(
            kid: key.kid, usage: key.usage, label: key.label, policy: key.policy, slot: key.slot,
            keystore: key.keystore, publicJWK: key.jwk.json.serialized())
    }

    init(_ row: SQLRow) throws {
        self.init(
            kid: try row.value("kid"), usage: try row.value("usage"), label: try row.text("label"),
            policy: try row.text("policy"), slot: try row.optional("slot"), keystore: try row.value("keystore"),
            publicJWK: try row.text("public_jwk"), state: try row.value("state"), since: try row.integer("since"))
    }
}
