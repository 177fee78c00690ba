import ArgumentParser
import Assent
import AssentCore
import Foundation

/// `assent vault rekey`
struct VaultRekeyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rekey",
        abstract: "Give a vault a new key, at the same key provider or at another, and seal everything anew.",
        discussion: """
            It happens whole or not at all, and then the old key is destroyed. This is the only way in which a vault's \
            protection changes, up or down. Running it without --to replaces the key, and with --new-passphrase-file or \
            --new-passphrase-fd the passphrase too.

            With --to tpm the keys are made in this machine's TPM 2.0, under a PIN that you choose, and an old copy of the \
            whole vault is noticed. The key provider of a profile's vault is written to <profile>.vault.yaml beside its \
            configuration, where 'assent login' and the others find it. The app of an app's vault must name it itself.
            """)

    @OptionGroup var vault: VaultOptions

    @OptionGroup var new: RekeyOptions

    func run() async throws {
        let console = Console(json: vault.json)
        try await Outcome.run(console) {
            let place = try vault.place()
            let presence = try vault.secret.presence()
            let chosen = try SecretSource.read(
                file: new.newPassphraseFile, descriptor: new.newPassphraseDescriptor, "the new passphrase")
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

    /// What guards the vault from now on; `nil` when that stays.
    private func newKeyProvider(_ place: VaultPlace) throws -> (any KeyProviderKind)? {
        guard let chosen = try new.kind(), !chosen.isSame(as: place.keyProvider) else { return nil }
        if let objection = chosen.objection(to: place.keyProvider) { throw ValidationError(objection) }
        return chosen
    }

    private func rekey(
        _ place: VaultPlace, _ presence: TerminalPresence, newPassphrase: Secret?
    ) async throws -> (VaultInfo, RekeyOutcome) {
        if let chosen = try newKeyProvider(place) {
            let answers = TerminalPresence(
                known: newPassphrase, options: "--new-passphrase-file or --new-passphrase-fd")
            let keys = try chosen.keys(place.directory, presence: answers)
            let opened = try await place.open(presence)
            return try await place.withChoice(of: opened) {
                if let tidied = try await place.tidy(opened) { Console(json: vault.json).warn(tidied) }
                // Fails when another command has just changed the choice, so that no key of that one is a leftover.
                let keyChange = try await place.announce(chosen, of: opened)
                let outcome: RekeyOutcome
                do {
                    try await chosen.removeLeftovers(place.directory)
                    outcome = try await opened.rekey(to: keys)
                } catch {
                    await place.withdraw(chosen, keyChange: keyChange)
                    throw error
                }
                try place.settle(chosen)
                return (try await opened.info(), outcome)
            }
        }
        let renewal: KeyRenewal
        do {
            renewal = try place.keyProvider.renewal(place.directory, presence: presence, newSecret: newPassphrase)
        } catch let mistake as RekeyOptions.Mistake {
            throw ValidationError(mistake.text)
        }
        try place.check(presence)
        let opened = try await place.open(keys: renewal.keys)
        return try await place.withChoice(of: opened) {
            if let tidied = try await place.tidy(opened) { Console(json: vault.json).warn(tidied) }
            try await renewal.changeSecret()
            let outcome = try await opened.rekey(to: renewal.keys)
            return (try await opened.info(), outcome)
        }
    }
}
