import Assent
import AssentCore
import AssentPlatform
import AssentVault
import Foundation

/// A TPM 2.0.
struct TPMKind: KeyProviderKind {
    static let name = "tpm"
    static let rekeyOptions: (required: Set<String>, optional: Set<String>) = (
        [], ["tcti", "tpm-parent", "without-pin", "new-passphrase"]
    )

    /// The handles of persistent keys (TPM 2.0 Part 2 §7.5).
    private static let persistentHandles: ClosedRange<Int> = 0x8100_0000...0x81FF_FFFF

    /// How to reach it, as tpm2-tools take it.
    var tcti = TPMDefaults.tcti

    /// The handle of a persistent storage key; `nil` for one that is derived from the owner hierarchy.
    var parent: UInt32?

    /// Whether the keys have a PIN.
    var hasPIN = true

    init(tcti: String = TPMDefaults.tcti, parent: UInt32? = nil, hasPIN: Bool = true) {
        self.tcti = tcti
        self.parent = parent
        self.hasPIN = hasPIN
    }

    init(_ settings: SettingsReader<Void>) {
        tcti = settings.string("tcti", default: TPMDefaults.tcti)
        parent = settings.optionalInteger("parent", in: Self.persistentHandles).map { UInt32($0) }
        hasPIN = settings.bool("pin", default: true)
    }

    init(_ options: HardwareOptions, keyFile: String) throws {
        if let tcti = options.tcti { self.tcti = tcti }
        hasPIN = !options.withoutPin
        guard let text = options.tpmParent else { return }
        guard text.hasPrefix("0x"), let handle = UInt32(text.dropFirst(2), radix: 16),
            Self.persistentHandles.contains(Int(handle))
        else { throw RekeyOptions.Mistake("--tpm-parent is a handle from 0x81000000 to 0x81ffffff.") }
        parent = handle
    }

    var yaml: [String] {
        [Self.line("tcti", tcti)] + (parent.map { ["parent: 0x\(String($0, radix: 16))"] } ?? []) + ["pin: \(hasPIN)"]
    }

    func keys(_ directory: URL, presence: any UserPresence) throws -> VaultKeys {
        .requireHardware(try provider(directory, presence: presence))
    }

    func keyProvider(_ directory: URL, presence: any UserPresence) throws -> any KeyProvider {
        try provider(directory, presence: presence)
    }

    func matches(_ info: VaultInfo) -> Bool { info.protection == .hardware && info.provider == "tpm2" }

    func removeLeftovers(_ directory: URL) async throws {
        let provider = try provider(directory, presence: nil)
        do {
            for name in try await provider.keyNames() { try await provider.removeKey(named: name) }
        } catch let error as KeyProviderError {
            throw SecretStoreError(.keyUnavailable, error.detail, suggestion: error.suggestion)
        }
    }

    func objection(to current: any KeyProviderKind) -> String? {
        guard current is TPMKind else { return nil }
        return "This vault is in a TPM already. For another TPM, another parent, or a PIN where there is none, "
            + "use --to passphrase first."
    }

    var asksForSecret: Bool { hasPIN }

    var howToChangeSecret: String {
        "The PIN of a TPM's keys does not change. For another PIN: rekey --to passphrase, and then --to tpm."
    }

    #if TPM && os(Linux)
    private func provider(_ vault: URL, presence: (any UserPresence)?) throws -> TPMKeyProvider {
        TPMKeyProvider(
            directory: vault.appending(path: VaultFileNames.tpmKeys), tcti: tcti,
            parent: parent.map { .persistent($0) } ?? .ownerHierarchy, pin: hasPIN ? presence : nil)
    }
    #else
    private func provider(_ vault: URL, presence: (any UserPresence)?) throws -> any KeyProvider {
        throw PlatformBackend.tpm.isMissing
    }
    #endif

    static func statuses(chosen: TPMKind?, vault: URL) async -> [KeyProviderStatus] {
        let kind = chosen ?? TPMKind()
        let availability: KeyAvailability
        do {
            availability = try await kind.provider(vault, presence: TerminalPresence(known: nil)).availability
        } catch {
            availability = .unavailable(reason: PlatformBackend.tpm.isMissing.detail)
        }
        return [status(kind.tcti, .hardware, noticesRollback: true, isChosen: chosen != nil, availability)]
    }
}
