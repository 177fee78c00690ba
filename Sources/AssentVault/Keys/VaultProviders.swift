import AssentCore

/// The key providers that may guard one vault: what ``VaultKeys`` says, made for its directory.
struct VaultProviders: Sendable {
    let level: ProtectionLevel
    let hardware: [any KeyProvider]
    let software: (any KeyProvider)?

    /// The provider for a new vault.
    func providerForNewVault() async throws -> any KeyProvider {
        try check()
        var reasons: [String] = []
        for provider in hardware {
            switch await provider.availability {
            case .available: return provider
            case .unavailable(let reason): reasons.append("\(provider.kind): \(reason)")
            // It is there: somebody who locks it must not thereby choose a weaker key.
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
                "Hardware was asked for, and a provider that was given is not hardware. Give a hardware provider.")
        }
        guard software?.protection != .hardware else {
            throw SecretStoreError(
                .invalidInput, "A hardware provider was given as software. Ask for requireHardware or preferHardware.")
        }
    }
}
