package import AssentCore

/// What a key of a container is for.
public enum SigningKeyUsage: String, Hashable, MemberValue, CaseIterable {
    /// Proofs of possession with each call, and refusals.
    case device
    /// Decrypting replies.
    case transport
    /// Approving transactions.
    case sign
    /// Approving sign-ins.
    case auth
    /// One-time codes; the secret comes from the server.
    case otp

    /// How many keys of this usage a container may have.
    var count: ClosedRange<Int> {
        switch self {
        case .device, .transport: 1...1
        case .sign, .otp: 0...4
        case .auth: 0...2
        }
    }

    /// Whether possession is proved by a signature of the key's own.
    package var needsPossession: Bool { self == .sign || self == .auth }

    /// The slot whose password may open a key of this usage; `nil` when no password may.
    package var passwordSlot: PasswordSlot? {
        switch self {
        case .device: nil
        case .transport: .session
        case .sign, .auth: .signing
        case .otp: .otp
        }
    }
}

/// The keys that one password opens.
public enum PasswordSlot: String, Hashable, MemberValue, CaseIterable {
    /// The transport key.
    case session
    /// `sign` and `auth` keys.
    case signing
    /// OTP keys.
    case otp
}

/// Where a guess of a password is checked.
public enum PasswordMode: String, Hashable, Sendable, CaseIterable {
    /// On the device, by opening the sealed key.
    case local
    /// By opening the sealed key, after an evaluation by the server.
    case assisted
}

extension PasswordMode: MemberValue {
    /// The mode that a message names.
    ///
    /// - Throws: ``SigningProtocolError`` with `modeUnsupported` for `silent`: a key on P-256 that opens to a wrong key
    ///   gives itself away by its public key.
    package init(_ json: JSONValue, at place: String) throws(SigningProtocolError) {
        let text = try MemberRule.ascii(1...16).read(json, place)
        if let mode = PasswordMode(rawValue: text) {
            self = mode
            return
        }
        guard StrictJSON.same(text, "silent") else { throw .invalid(place, "has a value that is not known") }
        throw SigningProtocolError(.modeUnsupported, "The mode silent is not supported.", member: place)
    }
}

/// What a device can do: a ``PasswordMode``, or keys without a password.
public enum ProtectionMode: String, Hashable, MemberValue, CaseIterable {
    /// Keys without a password.
    case device
    /// Passwords that are checked on the device.
    case local
    /// Passwords that are checked with the server's help.
    case assisted
}

/// Whether the user's digits end the enrolment.
package enum CommitMode: String, Hashable, MemberValue, CaseIterable {
    /// The user types digits that the device shows.
    case digits
    /// The exchange is enough: the invite was scanned and no key approves, or an old key endorsed the new ones.
    case exchange
}

/// What holds a private key: the kind of a `KeyProvider`, or `software+` and that kind.
package struct Keystore: RawRepresentable, Hashable, MemberValue {
    package let rawValue: String

    /// The kinds that a server takes unless its configuration says otherwise.
    package static let standardKinds: Set<String> = ["software", "pkcs11", "tpm2", "secure-enclave"]

    private static let sealed = "software+"

    /// A keystore by its name; `nil` when it cannot be one.
    package init?(rawValue: String) {
        self.rawValue = rawValue
        guard Self.isKind(kind) else { return nil }
    }

    /// Whether a provider's kind can stand in messages: 1 to 32 of a–z, 0–9 and -.
    package static func isKind(_ name: String) -> Bool { SigningLabel.isValid(name) }

    /// Whether software made the key and sealed it under a password.
    package var isSealed: Bool { rawValue.utf8.starts(with: Self.sealed.utf8) }

    /// The kind of the provider that holds the key, or what opens it.
    package var kind: String { isSealed ? String(rawValue.dropFirst(Self.sealed.count)) : rawValue }
}
