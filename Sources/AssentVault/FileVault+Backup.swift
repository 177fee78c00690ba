#if canImport(Darwin)
import AssentCore
import Foundation

extension FileVault {
    /// Keeps the vault out of backups: restored to another device it could not be opened, and an old copy is a
    /// rollback.
    static func excludeFromBackup(_ directory: URL) throws {
        var directory = directory
        var values = URLResourceValues()
        values.isExcludedFromBackup = true
        do {
            try directory.setResourceValues(values)
        } catch {
            throw SecretStoreError(
                .storageFailed, "The vault cannot be kept out of backups. Put it on a volume that can do that.")
        }
    }
}
#endif
