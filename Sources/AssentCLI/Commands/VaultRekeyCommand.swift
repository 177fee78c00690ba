import ArgumentParser
import Assent
import AssentCore
import Foundation

/// `assent vault rekey`
struct VaultRekeyCommand: AsyncParsableCommand {
    /// What can guard a vault.
    enum Target: String, ExpressibleByArgument, CaseIterable {
        case keyFile = "key-file"
        case passphrase
        case pkcs11
        case tpm
    }

    static let configuration = CommandConfiguration(
        commandName: "rekey",
        abstract: "Give a vault a new key, at the same guardian or at another, and seal everything anew.",
        discussion: """
            It happens whole or not at all, and then the old key is destroyed. This is the only way in which a vault's \
            protection changes, up or down. Running it without --to replaces the key, and with --new-passphrase-file or \
            --new-passphrase-fd the passphrase too.

            With --to tpm the keys are made in this machine's TPM 2.0, under a PIN that you choose, and an old copy of the \
            whole vault is noticed. What guards the vault of a profile is written to <profile>.vault.yaml beside its \
            configuration, where 'assent login' and the others find it; the app of an app's vault must be told.
            """)

    @OptionGroup var vault: VaultOptions

    @Option(
        name: .long,
        help: "What guards the vault from now on: \(Target.allCases.map(\.rawValue).joined(separator: ", ")).")
    var to: Target?

    @Option(name: .long, help: "The new unprotected key file (with --to key-file).")
    var newKeyFile: String?

    @Option(name: .long, help: "The path of the token's PKCS#11 module (with --to pkcs11).")
    var module: String?

    @Option(name: .long, help: "The token's label (with --to pkcs11).")
    var token: String?

    @Option(
        name: .long,
        help: "How to reach the TPM, as tpm2-tools take it (with --to tpm). Default: \(TPMChoice.defaultTCTI).")
    var tcti: String?

    @Option(
        name: .long,
        help: "The handle of a persistent storage key, such as 0x81000001, when the owner made one (with --to tpm).")
    var tpmParent: String?

    @Flag(name: .long, help: "No PIN: whoever may use this TPM and reads the files opens the vault (with --to tpm).")
    var withoutPin = false

    @Option(
        name: .long,
        help: "A file that holds the new passphrase, the PIN of the token, or the new PIN of the TPM's keys.")
    var newPassphraseFile: String?

    @Option(name: .customLong("new-passphrase-fd"), help: "A file descriptor to read the new passphrase or PIN from.")
    var newPassphraseDescriptor: Int32?

    func validate() throws {
        guard (to == .keyFile) == (newKeyFile != nil) else {
            throw ValidationError("--to key-file and --new-key-file belong together.")
        }
        guard (to == .pkcs11) == (module != nil), (to == .pkcs11) == (token != nil) else {
            throw ValidationError("--to pkcs11, --module and --token belong together.")
        }
        guard to == .tpm || (tcti == nil && tpmParent == nil && !withoutPin) else {
            throw ValidationError("--tcti, --tpm-parent and --without-pin go with --to tpm.")
        }
        _ = try tpmChoice()
        let hasNew = newPassphraseFile != nil || newPassphraseDescriptor != nil
        guard to != .keyFile || !hasNew else { throw ValidationError("A key file has no passphrase.") }
        guard !withoutPin || !hasNew else { throw ValidationError("Give a new PIN or say --without-pin, not both.") }
    }

    private func tpmChoice() throws -> TPMChoice {
        var choice = TPMChoice()
        if let tcti { choice.tcti = tcti }
        choice.hasPIN = !withoutPin
        guard let tpmParent else { return choice }
        guard tpmParent.hasPrefix("0x"), let handle = UInt32(tpmParent.dropFirst(2), radix: 16),
            TPMChoice.persistentHandles.contains(Int(handle))
        else { throw ValidationError("--tpm-parent is a handle from 0x81000000 to 0x81ffffff.") }
        choice.parent = handle
        return choice
    }

    func run() async throws {
        let console = Console(json: vault.json)
        try await Outcome.run(console, reportsErrors: true) {
            let place = try vault.place()
            let presence = try vault.secret.presence()
            let chosen = try SecretSource.read(
                file: newPassphraseFile, descriptor: newPassphraseDescriptor, "the new passphrase")
            let (info, outcome) = try await rekey(place, presence, newPassphrase: chosen)
            if vault.json {
                console.emit([
                    "vault": info.json, "oldKeyRemains": outcome.oldKeyRemains.map { .string($0) } ?? .null,
                ])
            } else {
                console.say(console.styled("The vault has a new key.", .green))
                for line in info.lines { console.say(line) }
            }
            if let remains = outcome.oldKeyRemains { console.warn(DisplayText.escapedForTerminal(remains)) }
        }
    }

    /// The new guardian; `nil` when it stays.
    private func newGuardian(_ place: VaultPlace) throws -> VaultGuard? {
        let guardian: VaultGuard
        switch to {
        case .keyFile: guardian = .keyFile(URL(fileURLWithPath: newKeyFile ?? "").path)
        case .passphrase: guardian = .passphrase
        case .pkcs11: guardian = .pkcs11(module: module ?? "", token: token ?? "")
        case .tpm: guardian = .tpm(try tpmChoice())
        case nil: return nil
        }
        if guardian == place.guardian { return nil }
        if case .tpm = guardian, case .tpm = place.guardian {
            throw ValidationError(
                "This vault is in a TPM already. To another TPM, another parent, or with a PIN instead of none, it goes by "
                    + "way of --to passphrase.")
        }
        return guardian
    }

    private func rekey(
        _ place: VaultPlace, _ presence: TerminalPresence, newPassphrase: Secret?
    ) async throws -> (VaultInfo, RekeyOutcome) {
        if let guardian = try newGuardian(place) {
            let new = TerminalPresence(known: newPassphrase, options: "--new-passphrase-file or --new-passphrase-fd")
            let keys = try guardian.keys(place.directory, presence: new)
            let opened = try await place.open(presence)
            return try await place.withChoice(of: opened) {
                if let tidied = try await place.tidy(opened) { Console(json: vault.json).warn(tidied) }
                // Fails when another command has just changed the guardian, so that no key of that one is a leftover.
                let keyChange = try await place.announce(guardian, of: opened)
                let outcome: RekeyOutcome
                do {
                    try await guardian.removeLeftovers(place.directory)
                    outcome = try await opened.rekey(to: keys)
                } catch {
                    await place.withdraw(guardian, keyChange: keyChange)
                    throw error
                }
                try place.settle(guardian)
                return (try await opened.info(), outcome)
            }
        }
        guard place.guardian == .passphrase else {
            guard newPassphrase == nil else { throw ValidationError(place.guardian.howToChangeItsSecret) }
            return try await rekeyInPlace(place, try place.guardian.keys(place.directory, presence: presence)) {}
        }
        // One provider for all of it: it is asked for the passphrase once, and knows when that has changed.
        let provider = place.guardian.passphraseKeys(place.directory, presence: presence)
        return try await rekeyInPlace(place, .software(provider)) {
            if let newPassphrase { try await provider.changePassphrase(to: KnownSecret(newPassphrase)) }
        }
    }

    /// Changes the key at the guardian that the vault has.
    private func rekeyInPlace(
        _ place: VaultPlace, _ keys: VaultKeys, _ prepare: () async throws -> Void
    ) async throws -> (VaultInfo, RekeyOutcome) {
        let opened = try await place.open(keys: keys)
        return try await place.withChoice(of: opened) {
            if let tidied = try await place.tidy(opened) { Console(json: vault.json).warn(tidied) }
            try await prepare()
            let outcome = try await opened.rekey(to: keys)
            return (try await opened.info(), outcome)
        }
    }
}

extension VaultGuard {
    /// Why a new passphrase is not taken here.
    fileprivate var howToChangeItsSecret: String {
        switch self {
        case .keyFile, .passphrase: "This vault has no passphrase yet: say --to passphrase."
        case .pkcs11: "The PIN is the token's: change it with its own program, for example pkcs11-tool --change-pin."
        case .tpm: "The PIN of a TPM's keys stays theirs. For another: rekey --to passphrase, and then --to tpm."
        }
    }
}
