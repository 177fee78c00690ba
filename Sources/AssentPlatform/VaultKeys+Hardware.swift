public import AssentCore
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

    #if PKCS11 && os(Linux)
    /// Keys in the PKCS#11 token called `token` (package trait `PKCS11`); fails where it is not there.
    ///
    /// - Parameters:
    ///   - module: the absolute path of the token's PKCS#11 module.
    ///   - token: the token's label.
    ///   - serial: the token's serial number, for when several tokens have one label.
    ///   - pin: who knows the PIN; `nil` for tokens with a keypad of their own.
    /// - Returns: what guards a vault.
    public static func pkcs11(
        module: String, token: String, serial: String? = nil, pin: (any UserPresence)?
    ) -> VaultKeys {
        // It waits for other processes, which do not go by the app's clock.
        VaultKeys(.requireHardware) { vault in
            [PKCS11KeyProvider(module: module, token: token, serial: serial, pin: pin, random: vault.random)]
        }
    }
    #endif

    #if TPM && os(Linux)
    /// Keys and a counter against rollback in a TPM 2.0 (package trait `TPM`); fails where there is none. The wrapped
    /// keys lie in the vault's directory.
    ///
    /// - Parameters:
    ///   - tcti: how to reach the TPM, as tpm2-tools take it.
    ///   - parent: the storage key that the keys are made under.
    ///   - pin: who knows the PIN; `nil` for a vault that this machine opens without one.
    /// - Returns: what guards a vault.
    public static func tpm(
        _ tcti: String = TPMDefaults.tcti, parent: TPMParent = .ownerHierarchy, pin: (any UserPresence)?
    ) -> VaultKeys {
        VaultKeys(.requireHardware) { vault in
            [
                TPMKeyProvider(
                    directory: vault.directory.appending(path: VaultFileNames.tpmKeys), tcti: tcti, parent: parent,
                    pin: pin, random: vault.random)
            ]
        }
    }
    #endif
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
