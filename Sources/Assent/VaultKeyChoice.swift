public import AssentCore
public import AssentVault
public import Foundation

extension Assent {
    /// What guards a file vault, and how much protection the app insists on. There is no default: what is weaker has to be
    /// said. It is decided when the vault is made; a vault never opens with less than it was made with.
    public struct VaultKeys: Sendable {
        let choice: @Sendable (_ vault: URL, Surroundings) -> AssentVault.VaultKeys

        /// Where time and randomness come from.
        struct Surroundings: Sendable {
            let clock: any WallClock
            let random: any RandomSource
        }

        /// A device of this build that never gives its key out. It fails where there is none; it never becomes a software key.
        public static var requireHardware: VaultKeys {
            VaultKeys { vault, _ in .requireHardware(HardwareKeys.providers(for: vault)) }
        }

        /// The first of `providers` that is available; fails when none is.
        public static func requireHardware(_ providers: [any KeyProvider]) -> VaultKeys {
            VaultKeys { _, _ in .requireHardware(providers) }
        }

        /// A device when one is available while the vault is made, `otherwise` when none is. Decided once: a vault made
        /// with a device never opens without it.
        public static func preferHardware(otherwise: Software) -> VaultKeys {
            VaultKeys { vault, surroundings in
                .preferHardware(
                    HardwareKeys.providers(for: vault), otherwise: otherwise.provider(vault, surroundings))
            }
        }

        /// The first of `providers` that is available while the vault is made, `otherwise` when none is.
        public static func preferHardware(_ providers: [any KeyProvider], otherwise: Software) -> VaultKeys {
            VaultKeys { .preferHardware(providers, otherwise: otherwise.provider($0, $1)) }
        }

        /// A key file that anybody who can read it can use: `assent doctor` calls it unprotected.
        public static func softwareFile(_ file: URL) -> VaultKeys { software(.file(file)) }

        /// A passphrase; the key file sealed under it lies in the vault's directory.
        public static func passphrase(_ passphrase: Secret) -> VaultKeys {
            software(.passphrase(KnownSecret(passphrase)))
        }

        /// Keys in software.
        public static func software(_ software: Software) -> VaultKeys {
            VaultKeys { .software(software.provider($0, $1)) }
        }

        /// Providers of the app's own.
        public static func keys(_ keys: AssentVault.VaultKeys) -> VaultKeys { VaultKeys { _, _ in keys } }

        /// For the vault in `directory`.
        func resolved(_ directory: URL, _ surroundings: Surroundings) -> AssentVault.VaultKeys {
            choice(directory, surroundings)
        }
    }

    /// What keeps keys in software.
    public enum Software: Sendable {
        /// A key file in plain sight of whoever can read it.
        case file(URL)
        /// A key file in the vault's directory, sealed under a passphrase that is known or asked for.
        case passphrase(any UserPresence, cost: ScryptCost = .standard)
        /// A provider of the app's own.
        case provider(any KeyProvider)

        func provider(_ vault: URL, _ surroundings: VaultKeys.Surroundings) -> any KeyProvider {
            switch self {
            case .file(let file):
                SoftwareKeyProvider(unprotectedFile: file, random: surroundings.random, clock: surroundings.clock)
            case .passphrase(let presence, let cost):
                SoftwareKeyProvider(
                    file: vault.appending(path: VaultFileNames.passphraseKeys), passphrase: presence, cost: cost,
                    random: surroundings.random, clock: surroundings.clock)
            case .provider(let own): own
            }
        }
    }
}
