/// The names of what key providers keep in a vault's directory.
package enum VaultFileNames {
    /// The key file that is sealed under a passphrase.
    package static let passphraseKeys = "passphrase.keys"

    /// The directory of the keys that a TPM wrapped.
    package static let tpmKeys = "tpm"
}
