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

    /// Whether there is a vault, which its guardian then guards.
    let hasVault: Bool

    func statuses() async -> [KeyProviderStatus] {
        var statuses = await software() + tokens()
        statuses.append(await tpm())
        statuses.append(await secureEnclave())
        return statuses
    }

    private func status(
        _ guardian: VaultGuard, _ place: String?, _ protection: KeyProtection, counter: Bool = false,
        _ availability: KeyAvailability
    ) -> KeyProviderStatus {
        KeyProviderStatus(
            kind: guardian.name, place: place, protection: protection, hasCounter: counter, availability: availability,
            guardsVault: hasVault && guardian == self.place.guardian)
    }

    private func software() async -> [KeyProviderStatus] {
        var path = place.directory.deletingLastPathComponent().appending(path: "vault.key").path
        if case .keyFile(let chosen) = place.guardian { path = chosen }
        let unprotected = SoftwareKeyProvider(unprotectedFile: URL(fileURLWithPath: path))
        let sealed = VaultGuard.passphrase.passphraseKeys(place.directory, presence: TerminalPresence(known: nil))
        return [
            status(.keyFile(path), path, .unprotected, await unprotected.availability),
            status(.passphrase, nil, .software, await sealed.availability),
        ]
    }

    private func tpm() async -> KeyProviderStatus {
        var choice = TPMChoice()
        if case .tpm(let chosen) = place.guardian { choice = chosen }
        let availability: KeyAvailability
        do {
            let presence = choice.hasPIN ? TerminalPresence(known: nil) : nil
            availability = try await choice.provider(place.directory, presence: presence).availability
        } catch {
            availability = .unavailable(reason: VaultGuard.notBuilt(.tpm).detail)
        }
        return status(.tpm(choice), choice.tcti, .hardware, counter: true, availability)
    }

    private func secureEnclave() async -> KeyProviderStatus {
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

extension KeyProviderExamination {
    #if PKCS11 && os(Linux)
    /// The token that was chosen, and all in the modules that p11-kit knows.
    private func tokens() async -> [KeyProviderStatus] {
        var statuses: [KeyProviderStatus] = []
        if case .pkcs11(let module, let token) = place.guardian { statuses.append(await self.token(token, in: module)) }
        for registered in RegisteredTokens.all() {
            if let problem = registered.problem {
                statuses.append(noToken(registered.module, problem))
            } else if registered.labels.isEmpty {
                statuses.append(
                    noToken(registered.module, "It has no token. Insert one, or make one (softhsm2-util --init-token).")
                )
            }
            for label in registered.labels where !isChosen(label, in: registered.module) {
                statuses.append(await token(label, in: registered.module))
            }
        }
        if statuses.isEmpty {
            statuses.append(
                noToken(
                    nil,
                    "p11-kit knows no module. Install the token's driver (with a file in /usr/share/p11-kit/modules), or "
                        + "name its module: assent vault rekey --to pkcs11 --module …"))
        }
        return statuses
    }

    /// Whether it is the token that was chosen; a module may have several paths.
    private func isChosen(_ label: String, in module: String) -> Bool {
        guard case .pkcs11(let chosen, label) = place.guardian else { return false }
        return URL(filePath: chosen).resolvingSymlinksInPath() == URL(filePath: module).resolvingSymlinksInPath()
    }

    private func token(_ label: String, in module: String) async -> KeyProviderStatus {
        let provider = PKCS11KeyProvider(module: module, token: label, pin: nil)
        return status(
            .pkcs11(module: module, token: label), "\(label) in \(module)", .hardware, await provider.availability)
    }

    private func noToken(_ module: String?, _ reason: String) -> KeyProviderStatus {
        KeyProviderStatus(
            kind: "pkcs11", place: module, protection: .hardware, hasCounter: false,
            availability: .unavailable(reason: reason))
    }
    #else
    private func tokens() async -> [KeyProviderStatus] {
        [
            KeyProviderStatus(
                kind: "pkcs11", place: nil, protection: .hardware, hasCounter: false,
                availability: .unavailable(reason: VaultGuard.notBuilt(.pkcs11).detail))
        ]
    }
    #endif
}
