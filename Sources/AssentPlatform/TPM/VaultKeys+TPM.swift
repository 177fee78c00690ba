#if TPM && os(Linux)
public import AssentCore
public import AssentVault
import Foundation

extension VaultKeys {
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
}
#endif
