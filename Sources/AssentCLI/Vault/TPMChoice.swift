import AssentConfiguration
import AssentCore
import AssentPlatform
import AssentVault
import Foundation

/// Which TPM guards a vault of the command line, and how.
struct TPMChoice: Sendable, Equatable {
    /// The kernel's resource manager.
    static let defaultTCTI = "device:/dev/tpmrm0"

    /// The handles of persistent keys (TPM 2.0 Part 2 §7.5).
    static let persistentHandles: ClosedRange<Int> = 0x8100_0000...0x81FF_FFFF

    /// Where the wrapped keys lie in the vault's directory; the SDK's `.tpm(…)` has them there too.
    static let directory = "tpm"

    /// How to reach it, as tpm2-tools take it.
    var tcti = Self.defaultTCTI

    /// The handle of a persistent storage key; `nil` for one that is derived from the owner hierarchy.
    var parent: UInt32?

    /// Whether the keys have a PIN.
    var hasPIN = true

    #if TPM && os(Linux)
    func provider(_ vault: URL, presence: (any UserPresence)?) throws -> TPMKeyProvider {
        TPMKeyProvider(
            directory: vault.appending(path: Self.directory), tcti: tcti,
            parent: parent.map { .persistent($0) } ?? .ownerHierarchy, pin: hasPIN ? presence : nil)
    }
    #else
    func provider(_ vault: URL, presence: (any UserPresence)?) throws -> any KeyProvider {
        throw VaultGuard.notBuilt(.tpm)
    }
    #endif

    /// The lines of a vault's file.
    var yaml: [String] {
        ["tcti: \(JSONValue.string(tcti).serialized())"]
            + (parent.map { ["parent: 0x\(String($0, radix: 16))"] } ?? []) + ["pin: \(hasPIN)"]
    }
}

extension TPMChoice {
    /// Reads the lines of a vault's file.
    init(_ reader: SettingsReader<Void>) {
        tcti = reader.optionalString("tcti") ?? Self.defaultTCTI
        parent = reader.optionalInteger("parent", in: Self.persistentHandles).map { UInt32($0) }
        hasPIN = reader.bool("pin", default: true)
    }
}
