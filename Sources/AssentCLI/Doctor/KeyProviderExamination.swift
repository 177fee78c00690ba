import Assent
import AssentCore
import AssentPlatform
import Foundation

/// One thing that could guard a vault on this machine, and whether it can.
struct KeyProviderStatus: Sendable, Equatable {
    /// Its name on the command line, or `secure-enclave`.
    let kind: String

    /// Which one of its kind: a file, a token, a TPM.
    let place: String?

    let protection: KeyProtection

    /// Whether it notices an old copy of the whole vault.
    let hasCounter: Bool

    let availability: KeyAvailability

    /// Whether the profile's vault is guarded by it.
    var guardsVault = false

    /// Why it cannot be used, and what to do about it; `nil` when it can.
    var reason: String? {
        switch availability {
        case .available: nil
        case .unavailable(let reason), .lockedOut(let reason): reason
        }
    }

    /// A line for a person.
    var text: String {
        let name = DisplayText.escapedForTerminal(kind + (place.map { " \($0)" } ?? ""))
        let state = reason.map { "not available: " + DisplayText.escapedForTerminal($0) } ?? "available"
        return "key provider \(name) (\(protection.rawValue))\(guardsVault ? ", guards the vault" : ""): \(state)"
    }

    /// The same for scripts.
    var json: JSONValue {
        [
            "kind": .string(kind), "place": place.map { .string($0) } ?? .null,
            "protection": .string(protection.rawValue),
            "noticesRollback": .bool(hasCounter), "available": .bool(reason == nil),
            "reason": reason.map { .string($0) } ?? .null, "guardsVault": .bool(guardsVault),
        ]
    }
}

/// Asks everything that could guard a vault whether it can. It asks nobody for a PIN and changes nothing.
struct KeyProviderExamination {
    /// The vault and what guards it.
    let place: VaultPlace

    /// Whether there is a vault, which the chosen key provider then guards.
    let hasVault: Bool

    func statuses() async -> [KeyProviderStatus] {
        var statuses: [KeyProviderStatus] = []
        for kind in KeyProviderKinds.all { statuses += await Self.statuses(of: kind, place) }
        if !hasVault { for index in statuses.indices { statuses[index].guardsVault = false } }
        return statuses + [await Self.secureEnclave()]
    }

    private static func statuses<Kind: KeyProviderKind>(
        of kind: Kind.Type, _ place: VaultPlace
    ) async -> [KeyProviderStatus] {
        await kind.statuses(chosen: place.keyProvider as? Kind, vault: place.directory)
    }

    /// This command line does not use it; apps do.
    private static func secureEnclave() async -> KeyProviderStatus {
        #if canImport(Security)
        let availability =
            await (try? SecureEnclaveKeyProvider())?.availability
            ?? .unavailable(
                reason: "The Secure Enclave cannot be asked. Sign the program with a keychain access group.")
        #else
        let availability = KeyAvailability.unavailable(
            reason: "Only Apple's devices have one. Use the TPM or a PKCS#11 token here.")
        #endif
        return KeyProviderStatus(
            kind: "secure-enclave", place: nil, protection: .hardware, hasCounter: false, availability: availability)
    }
}
