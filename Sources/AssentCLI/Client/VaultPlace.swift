import Assent
import AssentCore
import AssentServer
import Foundation

/// Where a vault of the command line is and what guards it.
struct VaultPlace: Sendable {
    let directory: URL

    /// Which store it is.
    let store: String

    let guardian: VaultGuard

    /// Where the choice of guardian is kept; `nil` for an app's vault, whose app keeps it.
    private let choiceFile: String?

    /// The vault of a profile.
    ///
    /// After a change of guardian that was interrupted there are two choices, both the user's; the vault's own claim says
    /// which is in force, and opening it proves that.
    init(profile: String, places: Places) throws {
        let state = places.vault(profile: profile)
        directory = URL(fileURLWithPath: state + "/vault")
        store = profile
        let file = "\(places.configuration)/\(profile).vault.yaml"
        choiceFile = file
        let current = try Self.choice(file) ?? .keyFile(state + "/vault.key")
        if let pending = try Self.choice(file + ".new"), let claim = try? FileVault.inspect(directory),
            pending.matches(claim), !current.matches(claim)
        {
            guardian = pending
        } else {
            guardian = current
        }
    }

    /// An app's vault.
    init(directory: String, store: String, guardian: VaultGuard) {
        self.directory = URL(fileURLWithPath: directory)
        self.store = store
        self.guardian = guardian
        choiceFile = nil
    }

    /// Opens a vault that exists.
    func open(_ presence: any UserPresence) async throws -> FileVault {
        try await open(keys: try guardian.keys(directory, presence: presence))
    }

    /// Opens a vault that exists, with a provider that is used for more.
    func open(keys: VaultKeys) async throws -> FileVault {
        try await FileVault.open(directory, store: store, keys: keys, createIfMissing: false)
    }

    /// Writes down what is about to guard the vault.
    func announce(_ guardian: VaultGuard) throws {
        guard let choiceFile else { return }
        try FileManager.default.createDirectory(
            atPath: (choiceFile as NSString).deletingLastPathComponent, withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        try Data(guardian.yaml.utf8).write(to: URL(fileURLWithPath: choiceFile + ".new"), options: .atomic)
    }

    /// Makes what was announced the choice; nothing happens when nothing was.
    func settle(_ guardian: VaultGuard) throws {
        guard let choiceFile, FileManager.default.fileExists(atPath: choiceFile + ".new") else { return }
        try Data(guardian.yaml.utf8).write(to: URL(fileURLWithPath: choiceFile), options: .atomic)
        try? FileManager.default.removeItem(atPath: choiceFile + ".new")
    }

    private static func choice(_ file: String) throws -> VaultGuard? {
        FileManager.default.fileExists(atPath: file) ? try guardian(in: file) : nil
    }

    /// What a file says that guards a vault.
    static func guardian(in file: String) throws -> VaultGuard {
        guard let text = try? String(contentsOfFile: file, encoding: .utf8) else {
            throw ConfigurationError(file: file, line: nil, "cannot be read. Check its owner and mode.")
        }
        return try VaultGuard.parse(text, file: file)
    }
}
