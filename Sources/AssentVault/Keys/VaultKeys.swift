public import AssentCore
public import Foundation

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

/// What may guard a vault, and how much protection the app insists on. There is no default: what is weaker has to be
/// said.
///
/// ```swift
/// let vault = try await FileVault.open(directory, keys: .passphrase(Secret("correct horse")))
/// ```
///
/// A vault is guarded by one provider, which is chosen when the vault is made and written into its header. Opening it
/// later uses that provider or fails; another one takes an explicit ``FileVault/rekey(to:)``.
public struct VaultKeys: Sendable {
    /// What the app insists on.
    public let level: ProtectionLevel

    private let hardware: @Sendable (VaultSurroundings) -> [any KeyProvider]
    private let software: (@Sendable (VaultSurroundings) -> any KeyProvider)?

    /// Providers that are made when it is known where the vault is.
    package init(
        _ level: ProtectionLevel, hardware: @escaping @Sendable (VaultSurroundings) -> [any KeyProvider],
        otherwise software: Software? = nil
    ) {
        self.level = level
        self.hardware = hardware
        if let software {
            self.software = { vault in software.provider(vault) }
        } else {
            self.software = nil
        }
    }

    // MARK: - Hardware

    /// The first of `providers` that is available; the call fails when none is, or when it is not hardware.
    public static func requireHardware(_ providers: any KeyProvider...) -> VaultKeys {
        requireHardware(providers)
    }

    /// The first of `providers` that is available; the call fails when none is, or when it is not hardware.
    public static func requireHardware(_ providers: [any KeyProvider]) -> VaultKeys {
        VaultKeys(.requireHardware, hardware: { _ in providers })
    }

    /// The first of `providers` that is available while the vault is made, and `otherwise` when none is. What a
    /// provider that is available cannot do is an error all the same.
    public static func preferHardware(_ providers: [any KeyProvider], otherwise: Software) -> VaultKeys {
        VaultKeys(.preferHardware, hardware: { _ in providers }, otherwise: otherwise)
    }

    /// The first of `providers` that is available while the vault is made, and `otherwise` when none is.
    public static func preferHardware(_ providers: [any KeyProvider], otherwise: any KeyProvider) -> VaultKeys {
        preferHardware(providers, otherwise: .provider(otherwise))
    }

    // MARK: - Software

    /// What keeps keys in software.
    public enum Software: Sendable {
        /// A key file that everybody who can read it can use.
        case file(URL)
        /// A key file in the vault's directory, sealed under a passphrase that is known or asked for.
        case passphrase(any UserPresence, cost: ScryptCost = .standard)
        /// A provider of the app's own.
        case provider(any KeyProvider)

        fileprivate func provider(_ vault: VaultSurroundings) -> any KeyProvider {
            switch self {
            case .file(let file):
                SoftwareKeyProvider(unprotectedFile: file, random: vault.random, clock: vault.clock)
            case .passphrase(let presence, let cost):
                SoftwareKeyProvider(
                    file: vault.directory.appending(path: VaultFileNames.passphraseKeys), passphrase: presence,
                    cost: cost, random: vault.random, clock: vault.clock)
            case .provider(let own): own
            }
        }
    }

    /// Keys in software.
    public static func software(_ software: Software) -> VaultKeys {
        VaultKeys(.software, hardware: { _ in [] }, otherwise: software)
    }

    /// A software provider of the app's own.
    public static func software(_ provider: any KeyProvider) -> VaultKeys { software(.provider(provider)) }

    /// A key file that everybody who can read it can use: `assent doctor` calls it unprotected.
    public static func softwareFile(_ file: URL) -> VaultKeys { software(.file(file)) }

    /// A passphrase; the key file sealed under it lies in the vault's directory.
    public static func passphrase(_ passphrase: Secret) -> VaultKeys {
        software(.passphrase(KnownSecret(passphrase)))
    }

    /// The providers for one vault.
    func providers(for vault: VaultSurroundings) -> VaultProviders {
        VaultProviders(level: level, hardware: hardware(vault), software: software?(vault))
    }
}

/// Where a vault is, and where its key provider gets time and randomness from.
package struct VaultSurroundings: Sendable {
    /// The vault's directory.
    package let directory: URL

    /// Judges deadlines.
    package let clock: any WallClock

    /// Makes keys and salts.
    package let random: any RandomSource
}
