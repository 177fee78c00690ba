#if PKCS11 && os(Linux)
public import AssentCore
public import AssentVault

extension VaultKeys {
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
}
#endif
