import AssentCore
import AssentPlatform
import AssentVault
import Foundation

/// The key providers of hardware that work without being told more, in the order in which they are tried.
enum HardwareKeys {
    static func providers(for vault: URL) -> [any KeyProvider] {
        #if TPM && os(Linux)
        [TPMKeyProvider(directory: vault.appending(path: VaultFileNames.tpmKeys), pin: nil)]
        #elseif canImport(Security)
        (try? SecureEnclaveKeyProvider()).map { [$0] } ?? []
        #else
        []
        #endif
    }
}
