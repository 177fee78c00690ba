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
    }

    static let configuration = CommandConfiguration(
        commandName: "rekey",
        abstract: "Give a vault a new key, at the same guardian or at another, and seal everything anew.",
        discussion: """
            It happens whole or not at all, and then the old key is destroyed. This is the only way in which a vault's \
            protection changes, up or down. Running it without --to replaces the key, and with --new-passphrase-file or \
            --new-passphrase-fd the passphrase too.
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

    @Option(name: .long, help: "A file that holds the new passphrase, or the PIN of the token.")
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
        guard to != .keyFile || (newPassphraseFile == nil && newPassphraseDescriptor == nil) else {
            throw ValidationError("A key file has no passphrase.")
        }
    }

    func run() async throws {
        let console = Console(json: vault.json)
        try await VaultOutcome.run(console) {
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
    private func newGuardian(_ place: VaultPlace) -> VaultGuard? {
        switch to {
        case .keyFile:
            let guardian = VaultGuard.keyFile(URL(fileURLWithPath: newKeyFile ?? "").path)
            return guardian == place.guardian ? nil : guardian
        case .passphrase: return place.guardian == .passphrase ? nil : .passphrase
        case .pkcs11:
            let guardian = VaultGuard.pkcs11(module: module ?? "", token: token ?? "")
            return guardian == place.guardian ? nil : guardian
        case nil: return nil
        }
    }

    private func rekey(
        _ place: VaultPlace, _ presence: TerminalPresence, newPassphrase: Secret?
    ) async throws -> (VaultInfo, RekeyOutcome) {
        if let guardian = newGuardian(place) {
            let opened = try await place.open(presence)
            if guardian == .passphrase {
                // Left over from an interrupted change: the vault, which was opened with another key, does not need it.
                let leftover = place.directory.appending(path: VaultGuard.passphraseFile)
                try? FileManager.default.removeItem(at: leftover)
            }
            try place.announce(guardian)
            let keys = guardian.keys(place.directory, presence: TerminalPresence(known: newPassphrase))
            let outcome = try await opened.rekey(to: keys)
            try place.settle(guardian)
            return (try await opened.info(), outcome)
        }
        guard place.guardian == .passphrase else {
            guard newPassphrase == nil else {
                throw ValidationError("This vault has no passphrase yet: say --to passphrase.")
            }
            let keys = place.guardian.keys(place.directory, presence: presence)
            let opened = try await place.open(keys: keys)
            let outcome = try await opened.rekey(to: keys)
            return (try await opened.info(), outcome)
        }
        // One provider for all of it: it is asked for the passphrase once, and knows when that has changed.
        let provider = place.guardian.passphraseKeys(place.directory, presence: presence)
        let opened = try await place.open(keys: .software(provider))
        if let newPassphrase { try await provider.changePassphrase(to: KnownSecret(newPassphrase)) }
        let outcome = try await opened.rekey(to: .software(provider))
        return (try await opened.info(), outcome)
    }
}
