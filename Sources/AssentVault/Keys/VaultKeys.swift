public import AssentCore

/// How much protection an app insists on, said when a vault is made and kept in its authenticated header.
public enum ProtectionLevel: String, Hashable, Sendable, CaseIterable {
    /// A device that never gives the key out; where there is none, the call fails.
    case requireHardware
    /// A device when there is one while the vault is made, software otherwise. Decided once: a vault made with a device
    /// never opens without it.
    case preferHardware
    /// Software.
    case software
}

/// What may guard a vault, and how much protection the app insists on. There is no default: what is weaker has to be said.
///
/// A vault is guarded by one provider, which is chosen when the vault is made and written into its header. Opening it later
/// uses that provider or fails; another one takes an explicit ``FileVault/rekey(to:)``.
public struct VaultKeys: Sendable {
    /// What the app insists on.
    public let level: ProtectionLevel

    private let hardware: [any KeyProvider]
    private let software: (any KeyProvider)?

    /// The first of `providers` that is available; the call fails when none is, or when it is no hardware.
    public static func requireHardware(_ providers: any KeyProvider...) -> VaultKeys {
        requireHardware(providers)
    }

    /// The first of `providers` that is available; the call fails when none is, or when it is no hardware.
    public static func requireHardware(_ providers: [any KeyProvider]) -> VaultKeys {
        VaultKeys(level: .requireHardware, hardware: providers, software: nil)
    }

    /// The first of `providers` that is available while the vault is made, and `otherwise` when none is. What a provider
    /// that is available cannot do is an error all the same.
    public static func preferHardware(_ providers: [any KeyProvider], otherwise: any KeyProvider) -> VaultKeys {
        VaultKeys(level: .preferHardware, hardware: providers, software: otherwise)
    }

    /// A software provider.
    public static func software(_ provider: any KeyProvider) -> VaultKeys {
        VaultKeys(level: .software, hardware: [], software: provider)
    }

    /// The provider for a new vault.
    func providerForNewVault() async throws -> any KeyProvider {
        try check()
        var reasons: [String] = []
        for provider in hardware {
            switch await provider.availability {
            case .available: return provider
            case .unavailable(let reason): reasons.append("\(provider.kind): \(reason)")
            // It is there: whoever locks it must not thereby choose a weaker key.
            case .lockedOut(let reason): throw SecretStoreError(.keyLocked, reason)
            }
        }
        if let software {
            try await Self.checkAvailability(software)
            return software
        }
        throw SecretStoreError(
            .keyUnavailable,
            "Hardware was asked for, and none is available. "
                + (reasons.isEmpty
                    ? "This build knows no hardware key; build it with one." : reasons.joined(separator: " ")))
    }

    /// The provider of a vault that exists: the one it was made with or none.
    func provider(for header: VaultHeader) async throws -> any KeyProvider {
        try check()
        let given = hardware + [software].compactMap(\.self)
        guard let provider = given.first(where: { $0.kind == header.kind && $0.protection == header.protection }) else {
            let asked = given.map { "\($0.kind) (\($0.protection.rawValue))" }.joined(separator: ", ")
            throw SecretStoreError(
                .protectionMismatch,
                "This vault is guarded by \(header.kind) (\(header.protection.rawValue)), and what was given is "
                    + "\(asked.isEmpty ? "nothing" : asked). Open it as it was made; another protection takes a change "
                    + "of key: assent vault rekey, FileVault.rekey(to:).")
        }
        try await Self.checkAvailability(provider)
        return provider
    }

    private static func checkAvailability(_ provider: any KeyProvider) async throws {
        switch await provider.availability {
        case .available: break
        case .unavailable(let reason): throw SecretStoreError(.keyUnavailable, reason)
        case .lockedOut(let reason): throw SecretStoreError(.keyLocked, reason)
        }
    }

    /// A provider must be what the app says that it is.
    private func check() throws {
        guard hardware.allSatisfy({ $0.protection == .hardware }) else {
            throw SecretStoreError(
                .keyUnavailable,
                "Hardware was asked for, and a provider that was given is none. Give a hardware provider.")
        }
        guard software?.protection != .hardware else {
            throw SecretStoreError(
                .invalidInput, "A hardware provider was given as software. Ask for requireHardware or preferHardware.")
        }
    }
}
