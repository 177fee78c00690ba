import Assent
import AssentConfiguration
import AssentCore
import AssentVault
import Foundation

/// Where a vault of the command line is and what guards it.
struct VaultPlace: Sendable {
    let directory: URL

    /// Which store it is.
    let store: String

    /// What guards it, as the user chose.
    let keyProvider: any KeyProviderKind

    /// Where that choice is kept; `nil` for an app's vault, whose app keeps it.
    private let choiceFile: String?

    /// The choice that a change of key announced and then did not settle, because it was interrupted or is under way.
    let pending: PendingKeyChange?

    /// The vault of a profile.
    ///
    /// After a change of key that was interrupted there are two choices, both the user's; the vault's own claim says
    /// which is in force, and opening it proves that.
    init(profile: String, places: Places) throws {
        let state = places.vault(profile: profile)
        directory = URL(fileURLWithPath: state + "/vault")
        store = profile
        let file = "\(places.configuration)/\(profile).vault.yaml"
        choiceFile = file
        let current =
            try Self.text(file).map { try KeyProviderKinds.parse($0, file: file) }
            ?? KeyFileKind(path: state + "/" + Places.keyFileName)
        pending = try Self.text(file + ".new").map { try PendingKeyChange.parse($0, file: file + ".new") }
        if let pending, let claim = try? FileVault.inspect(directory), pending.isInForce(claim) {
            keyProvider = pending.keyProvider
        } else {
            keyProvider = current
        }
    }

    /// An app's vault.
    init(directory: String, store: String, keyProvider: any KeyProviderKind) {
        self.directory = URL(fileURLWithPath: directory)
        self.store = store
        self.keyProvider = keyProvider
        pending = nil
        choiceFile = nil
    }

    /// What guards it, for opening it.
    func keys(_ presence: TerminalPresence) throws -> VaultKeys {
        try check(presence)
        return try keyProvider.keys(directory, presence: presence)
    }

    /// What guards it, for opening it, and the provider itself for a key beside the vault's: one provider, which asks
    /// for its passphrase or PIN once.
    func keysAndProvider(_ presence: TerminalPresence) throws -> (VaultKeys, any KeyProvider) {
        try check(presence)
        let provider = try keyProvider.keyProvider(directory, presence: presence)
        return (provider.protection == .hardware ? .requireHardware(provider) : .software(provider), provider)
    }

    /// Refuses a passphrase that opens nothing: somebody who gives one believes that the vault has one.
    ///
    /// - Throws: ``CommandFailure``.
    func check(_ presence: TerminalPresence) throws {
        guard presence.known == nil || keyProvider.asksForSecret else {
            throw CommandFailure(
                "A passphrase or PIN was given, and the vault is guarded by \(keyProvider.name) without one. Leave it out, "
                    + "or protect the vault: assent vault rekey --to passphrase.")
        }
    }

    /// Opens a vault that exists.
    func open(_ presence: TerminalPresence) async throws -> FileVault {
        try await open(keys: try keys(presence))
    }

    /// Opens a vault that exists, with a provider that is used for more.
    func open(keys: VaultKeys) async throws -> FileVault {
        do {
            return try await FileVault.open(directory, store: store, keys: keys, createIfMissing: false)
        } catch let error as SecretStoreError where error.code == .absent {
            throw SecretStoreError(
                .absent,
                "There is no vault in \(directory.path). "
                    + (choiceFile == nil
                        ? "Check its path: it is the directory that has a file called vault."
                        : "'assent login' makes one; --profile and --directory name others."))
        } catch let error as SecretStoreError {
            throw keyProvider.explained(error)
        }
    }

    /// Keeps other commands from changing the choice meanwhile, then does `work`.
    func withChoice<Result>(of vault: FileVault, _ work: () async throws -> Result) async throws -> Result {
        let lease = try await vault.lease(
            "assent vault: choice of key provider", deadline: Date(timeIntervalSinceNow: 10))
        do {
            let result = try await work()
            await lease.release()
            return result
        } catch {
            await lease.release()
            throw error
        }
    }

    /// Writes down what guards the vault from its next change of key on.
    ///
    /// - Returns: the number of that change of key.
    func announce(_ keyProvider: any KeyProviderKind, of vault: FileVault) async throws -> UInt32 {
        let keyChange = try await vault.info().keyChanges.addingReportingOverflow(1).partialValue
        guard let choiceFile else { return keyChange }
        try Self.write(PendingKeyChange(keyProvider: keyProvider, keyChange: keyChange).yaml, to: choiceFile + ".new")
        return keyChange
    }

    /// Makes what was announced the choice.
    func settle(_ keyProvider: any KeyProviderKind) throws {
        guard let choiceFile else { return }
        try Self.write(keyProvider.file, to: choiceFile)
        try? FileManager.default.removeItem(atPath: choiceFile + ".new")
    }

    /// Finishes or takes back what an earlier change of key announced, by what `vault` (which is open) says.
    ///
    /// - Returns: what was done, for the user; `nil` when nothing was announced.
    func tidy(_ vault: FileVault) async throws -> String? {
        guard let choiceFile, let text = try Self.text(choiceFile + ".new") else { return nil }
        let pending = try PendingKeyChange.parse(text, file: choiceFile + ".new")
        if pending.keyProvider.isSame(as: keyProvider), try await vault.info().keyChanges >= pending.keyChange {
            try settle(keyProvider)
            return "An interrupted change of key to \(keyProvider.name) had taken effect, and is finished now."
        }
        try FileManager.default.removeItem(atPath: choiceFile + ".new")
        return
            "A change of key to \(pending.keyProvider.name) was begun and never took effect: \(keyProvider.name) guards the vault."
    }

    /// Takes back what was announced for a change of key, and what it left at `keyProvider`, unless the change took
    /// effect or that is uncertain.
    func withdraw(_ keyProvider: any KeyProviderKind, keyChange: UInt32) async {
        guard let claim = try? FileVault.inspect(directory), claim.claimed.keyChanges < keyChange else { return }
        if let choiceFile { try? FileManager.default.removeItem(atPath: choiceFile + ".new") }
        await keyProvider.removeUnused(directory)
    }

    /// Puts a file in place, whole, and on the disk before this returns: the vault's change of key must not outlive it.
    static func write(_ text: String, to file: String) throws {
        let url = URL(fileURLWithPath: file)
        do {
            let directory = try PosixDirectory(
                url.deletingLastPathComponent().resolvingSymlinksInPath().path, creating: true,
                privacy: .othersMustNotWrite)
            let temporary = url.lastPathComponent + ".part"
            try directory.remove(temporary)
            let descriptor = try directory.create(temporary)
            defer { directory.close(descriptor) }
            try directory.write(Array(text.utf8), to: descriptor)
            try directory.sync(descriptor)
            try directory.rename(temporary, to: url.lastPathComponent)
            try directory.syncDirectory()
        } catch let failure as FileFailure {
            throw failure.asStoreError
        }
    }

    private static func text(_ file: String) throws -> String? {
        guard FileManager.default.fileExists(atPath: file) else { return nil }
        guard let text = try? String(contentsOfFile: file, encoding: .utf8) else {
            throw ConfigurationError(file: file, line: nil, "cannot be read. Check its owner and mode.")
        }
        return text
    }

    /// What a file says that guards a vault.
    static func keyProvider(in file: String) throws -> any KeyProviderKind {
        guard let text = try text(file) else {
            throw ConfigurationError(file: file, line: nil, "cannot be read. Check its owner and mode.")
        }
        return try KeyProviderKinds.parse(text, file: file)
    }
}

/// What is to guard a vault from a change of key on: `<profile>.vault.yaml.new`.
struct PendingKeyChange: Sendable {
    let keyProvider: any KeyProviderKind

    /// The number of that change of key.
    let keyChange: UInt32

    /// Whether a vault that says `info` of itself is past that change.
    func isInForce(_ info: UnverifiedVaultInfo) -> Bool {
        keyProvider.matches(info.claimed) && info.claimed.keyChanges >= keyChange
    }

    /// The file's text.
    var yaml: String { keyProvider.file + "keyChange: \(keyChange)\n" }

    /// Reads a file; a mistake is an error with its line.
    static func parse(_ text: String, file: String) throws -> PendingKeyChange {
        try ConfigurationFile.read(text, file: file) { settings in
            let keyProvider = try KeyProviderKinds.read(settings)
            guard let keyChange = settings.optionalInteger("keyChange", in: 1...Int(UInt32.max)) else {
                throw settings.issue("provider", "it says no keyChange: remove this file, and see 'assent vault check'")
            }
            return PendingKeyChange(keyProvider: keyProvider, keyChange: UInt32(keyChange))
        }
    }
}
