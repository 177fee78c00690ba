import AssentCore
public import AssentVault
import Foundation

extension VaultKeys {
    /// A device of this build that never gives its key out. It fails where there is none; it never becomes a software
    /// key.
    public static var requireHardware: VaultKeys { VaultKeys(.requireHardware, hardware: HardwareKeys.providers) }

    /// A device when one is available while the vault is made, `otherwise` when none is. Decided once: a vault made
    /// with a device never opens without it.
    public static func preferHardware(otherwise: Software) -> VaultKeys {
        VaultKeys(.preferHardware, hardware: HardwareKeys.providers, otherwise: otherwise)
    }
}

/// The key providers of hardware that need no settings, in the order in which they are tried.
private enum HardwareKeys {
    @Sendable static func providers(_ vault: VaultSurroundings) -> [any KeyProvider] {
        #if TPM && os(Linux)
        [TPMKeyProvider(directory: vault.directory.appending(path: VaultFileNames.tpmKeys), pin: nil)]
        #elseif canImport(Security)
        (try? SecureEnclaveKeyProvider()).map { [$0] } ?? []
        #else
        []
        #endif
    }
}
