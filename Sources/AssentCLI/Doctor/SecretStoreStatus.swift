import AssentCore
import AssentPlatform

/// A place for secrets besides vaults, and whether programs can use it on this machine. This command line does not.
struct SecretStoreStatus: Sendable, Equatable {
    let kind: String

    /// What it does with secrets, for people.
    let nature: String

    let availability: KeyAvailability

    /// Why it cannot be used, and what to do about it; `nil` when it can.
    var reason: String? {
        switch availability {
        case .available: nil
        case .unavailable(let reason), .lockedOut(let reason): reason
        }
    }

    /// A line for a person.
    var text: String {
        "secret store \(kind) (\(nature)): "
            + (reason.map { "not available: " + DisplayText.escapedForTerminal($0) } ?? "available")
    }

    /// The same for scripts.
    var json: JSONValue {
        [
            "kind": .string(kind), "available": .bool(reason == nil), "reason": reason.map { .string($0) } ?? .null,
            "sealed": false, "noticesRollback": false,
        ]
    }

    /// The kernel's keyring. Asks the kernel and changes nothing.
    static func kernelKeyring() async -> SecretStoreStatus {
        let availability: KeyAvailability
        #if Keyring && os(Linux)
        do {
            availability = await (try KeyringSecretStore(store: "assent doctor")).availability
        } catch {
            availability = .unavailable(reason: error.explanation)
        }
        #else
        availability = .unavailable(reason: PlatformBackend.keyring.isMissing.detail)
        #endif
        return SecretStoreStatus(
            kind: "kernel-keyring", nature: "in the kernel's memory, not sealed", availability: availability)
    }
}
