public import AssentCore

/// How a guarded key keeps a data key from being read.
public enum KeyWrapping: String, Hashable, Sendable, CaseIterable {
    /// An RSA key pair wraps it (RSA-OAEP), as the vendor's `AndroidLEncryptor` does.
    case rsa
    /// A symmetric key inside the device encrypts (AES-GCM), as `AndroidMEncryptor` and its successors do.
    case aes
    /// A key agreement key opens what was sealed to it (``ECIES``), as a Secure Enclave, a TPM and a PKCS#11 token can.
    case ecies
}

/// How a user proves to be there.
public enum PresenceMethod: String, Hashable, Sendable, CaseIterable {
    /// A PIN, asked for through ``/AssentCore/UserPresence``.
    case pin
    /// A finger or a face, asked for by the system or through ``BiometricProvider``.
    case biometry
}

/// What a device can do for the keys that it guards, as it says itself.
public struct KeyCapabilities: Hashable, Sendable {
    /// How its guarded keys wrap; nothing when it guards none.
    public var wrappings: Set<KeyWrapping>

    /// Whether the keys are in a chip of their own: StrongBox, a Secure Enclave, a TPM, a token; else in a part of the
    /// processor.
    public var hasSeparateChip: Bool

    /// How the user can prove to be there: methods that are set up now.
    public var presence: Set<PresenceMethod>

    /// Whether keys can be bound to the fingers and faces that are enrolled when they are made.
    public var noticesEnrollment: Bool

    /// What a device can do.
    public init(
        wrappings: Set<KeyWrapping> = [], hasSeparateChip: Bool = false, presence: Set<PresenceMethod> = [],
        noticesEnrollment: Bool = false
    ) {
        self.wrappings = wrappings
        self.hasSeparateChip = hasSeparateChip
        self.presence = presence
        self.noticesEnrollment = noticesEnrollment
    }
}

/// What an app wants of a key. Nothing of it is ever given up silently; only ``ProtectionLevel/preferHardware`` leaves
/// a choice.
public struct KeyDemand: Hashable, Sendable {
    /// Who must prove to be there when the key is used.
    public enum Presence: Hashable, Sendable {
        /// Nobody.
        case none
        /// The user, by biometry where it is set up, else by PIN.
        case anyMethod
        /// The user, by biometry, enrolled now or at any time later.
        case biometry
        /// The user, by what is enrolled now: another finger or face loses the key
        /// (`setInvalidatedByBiometricEnrollment`, `biometryCurrentSet`).
        case biometryEnrolledNow
    }

    /// How much protection the app insists on.
    public var level: ProtectionLevel

    /// Whether the key must be in a chip of its own.
    public var separateChip: Bool

    /// Who must be there.
    public var presence: Presence

    /// A demand.
    public init(level: ProtectionLevel, separateChip: Bool = false, presence: Presence = .none) {
        self.level = level
        self.separateChip = separateChip
        self.presence = presence
    }
}

/// How a key is made: what a device's capabilities and an app's demand come to.
public struct KeyOptions: Hashable, Sendable {
    /// What guards the key.
    public let protection: KeyProtection

    /// How it wraps.
    public let wrapping: KeyWrapping

    /// Whether it is in a chip of its own.
    public let isInSeparateChip: Bool

    /// How the user proves to be there when it is used; `nil` when nobody need be.
    public let presence: PresenceMethod?

    /// Whether the key is lost when another finger or face is enrolled.
    public let isInvalidatedByBiometricEnrollment: Bool

    /// Chooses, from these two and nothing else.
    ///
    /// A guarded key is preferred to software, a chip of its own to none, and a symmetric key inside the device to
    /// key agreement to RSA. The vendor's SDKs fall back where a device lacks something; here it is an error, except
    /// that `preferHardware` may become software when the device guards no key at all.
    ///
    /// - Throws: ``/AssentCore/KeyProviderError`` with code `unsupported` when the device cannot do it, `userAbsent`
    ///   when the user would first have to set something up.
    public static func choose(
        for demand: KeyDemand, on device: KeyCapabilities
    ) throws(KeyProviderError) -> KeyOptions {
        let isGuarded = demand.level != .software && !device.wrappings.isEmpty
        guard isGuarded || demand.level != .requireHardware else {
            throw KeyProviderError(
                .unsupported,
                "Hardware was asked for, and this device guards no keys. Use another device, or say software.")
        }
        guard !demand.separateChip || isGuarded && device.hasSeparateChip else {
            throw KeyProviderError(
                .unsupported, "A chip of its own was asked for, and this device has none. Ask for hardware of any kind."
            )
        }
        let presence = try presence(demand.presence, on: device)
        let isBound = demand.presence == .biometryEnrolledNow
        guard !isBound || device.noticesEnrollment else {
            throw KeyProviderError(
                .unsupported,
                "This device cannot bind a key to what is enrolled now. Ask for biometry of any time, or for a PIN.")
        }
        let order: [KeyWrapping] = [.aes, .ecies, .rsa]
        return KeyOptions(
            protection: isGuarded ? .hardware : .software,
            wrapping: isGuarded ? order.first { device.wrappings.contains($0) } ?? .ecies : .ecies,
            isInSeparateChip: isGuarded && device.hasSeparateChip, presence: presence,
            isInvalidatedByBiometricEnrollment: isBound)
    }

    private static func presence(
        _ demand: KeyDemand.Presence, on device: KeyCapabilities
    ) throws(KeyProviderError) -> PresenceMethod? {
        switch demand {
        case .none: return nil
        case .anyMethod:
            if device.presence.contains(.biometry) { return .biometry }
            if device.presence.contains(.pin) { return .pin }
            throw KeyProviderError(
                .userAbsent, "The user has set up neither a PIN nor biometry. Let them do so, and try again.")
        case .biometry, .biometryEnrolledNow:
            if device.presence.contains(.biometry) { return .biometry }
            throw KeyProviderError(
                .userAbsent, "The user has enrolled no finger and no face. Let them do so, or ask for a PIN.")
        }
    }
}
