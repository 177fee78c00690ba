package import AssentCore
import Foundation

extension SecretStoreError {
    static func tampered(_ what: String) -> SecretStoreError {
        SecretStoreError(
            .tampered,
            what + " Restore the vault's directory from a backup, or remove what is damaged and sign in again.")
    }

    static func truncated(_ what: String) -> SecretStoreError {
        SecretStoreError(
            .truncated,
            what + " Restore the vault's directory from a backup, or remove what is damaged and sign in again.")
    }

    static let newerFormat = SecretStoreError(
        .newerFormat, "A newer version of this library wrote this. Update the application; nothing was changed.")

    static let olderFormat = SecretStoreError(
        .olderFormat,
        "An early version of this library, which was never released, wrote this vault. Move its directory and its key "
            + "file away and sign in again; nothing was changed.")

    static let rolledBack = SecretStoreError(
        .rolledBack,
        "An old copy of the vault was put in its place. Put the newest copy back; if there is none, remove the vault and "
            + "sign in again.")
}

/// The vault's limits. They hold for every `SecretStore` of this module.
package enum VaultLimits {
    package static let valueBytes = 1 << 20
    package static let entries = 10_000
    static let nameScalars = 200

    /// Removed names whose versions are remembered one by one, so that a name made again does not repeat a version.
    static let removedNames = 64
}

/// A secret's name as the stores compare it: in normal form C, since equal Swift strings must be one name.
package enum SecretName {
    package static func normalized(_ name: String) throws -> String {
        // ASCII is its own normal form, and who reads a name before every request should not pay for finding that out.
        let normal = name.utf8.allSatisfy { $0 < 0x80 } ? name : name.precomposedStringWithCanonicalMapping
        guard (1...VaultLimits.nameScalars).contains(normal.unicodeScalars.count) else {
            throw SecretStoreError(
                .invalidInput,
                "A secret's name has 1 to \(VaultLimits.nameScalars) Unicode scalars. Choose another name.")
        }
        return normal
    }

    package static func check(_ value: Secret?) throws {
        guard let value, value.count > VaultLimits.valueBytes else { return }
        throw SecretStoreError(
            .invalidInput,
            "A secret has at most \(VaultLimits.valueBytes) bytes. Keep what is longer elsewhere, sealed.")
    }
}

extension ExpectedVersion {
    /// Whether a name whose live version is `version` (`nil`: there is none) is what the caller expected.
    func matches(_ version: UInt64?) -> Bool {
        switch self {
        case .any: true
        case .absent: version == nil
        case .exactly(let expected): expected == version ?? 0
        }
    }

    package func check(_ version: UInt64?) throws {
        guard matches(version) else {
            throw SecretStoreError(
                .versionMismatch, "Somebody else changed this secret meanwhile. Read it again and decide anew.")
        }
    }
}
