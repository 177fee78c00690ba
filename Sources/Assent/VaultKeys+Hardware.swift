#if (PKCS11 || TPM) && os(Linux)
public import AssentCore
public import AssentPlatform
import AssentVault
import Foundation

extension Assent.VaultKeys {
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
    ) -> Assent.VaultKeys {
        Assent.VaultKeys { _, surroundings in
            .requireHardware(
                PKCS11KeyProvider(
                    module: module, token: token, serial: serial, pin: pin, clock: surroundings.clock,
                    random: surroundings.random))
        }
    }
    #endif

    #if TPM && os(Linux)
    /// Keys and a counter against rollback in a TPM 2.0 (package trait `TPM`); fails where there is none. The wrapped keys
    /// lie in the vault's directory.
    ///
    /// - Parameters:
    ///   - tcti: how to reach the TPM, as tpm2-tools take it.
    ///   - pin: who knows the PIN; `nil` for a vault that this machine opens without one.
    /// - Returns: what guards a vault.
    public static func tpm(_ tcti: String = TPMDefaults.tcti, pin: (any UserPresence)?) -> Assent.VaultKeys {
        Assent.VaultKeys { vault, surroundings in
            .requireHardware(
                TPMKeyProvider(
                    directory: vault.appending(path: VaultFileNames.tpmKeys), tcti: tcti, pin: pin,
                    clock: surroundings.clock, random: surroundings.random))
        }
    }
    #endif
}
#endif
