import Assent
import AssentConfiguration
import AssentCore
import AssentPlatform
import Foundation

/// A kind of key provider that can guard a vault of the command line, and the user's choice of one:
/// `<profile>.vault.yaml`.
///
/// The choice lies with the configuration and not with the vault, so that a vault that was exchanged cannot choose. A
/// new kind is a file in this folder and a line in ``KeyProviderKinds/all``.
protocol KeyProviderKind: Sendable, Equatable {
    /// The name on the command line and in the file.
    static var name: String { get }

    /// The options of `assent vault rekey` that belong to it, without the dashes. The user must give the required ones.
    static var rekeyOptions: (required: Set<String>, optional: Set<String>) { get }

    /// What it is on this machine: one or more that the user could choose, and the one that was `chosen`.
    static func statuses(chosen: Self?, vault: URL) async -> [KeyProviderStatus]

    /// Reads its lines of a file; what is wrong is noted in the settings.
    init(_ settings: SettingsReader<Void>)

    /// Reads the command line's options, of which the required ones are there; `keyFile` is the path of a key file.
    ///
    /// - Throws: ``RekeyOptions/Mistake``.
    init(_ options: HardwareOptions, keyFile: String) throws

    /// Its lines of a file.
    var yaml: [String] { get }

    /// Provider and level, for the vault in `directory`.
    ///
    /// - Throws: `SecretStoreError` with code `keyUnavailable` when this program was built without the provider.
    func keys(_ directory: URL, presence: any UserPresence) throws -> VaultKeys

    /// The provider itself, for keys of a device beside the vault in `directory`.
    ///
    /// - Throws: `SecretStoreError` with code `keyUnavailable` when this program was built without the provider.
    func keyProvider(_ directory: URL, presence: any UserPresence) throws -> any KeyProvider

    /// Whether a vault that says this of itself may be guarded by it.
    func matches(_ info: VaultInfo) -> Bool

    /// Removes what an interrupted change to it left in `directory`, where the vault is open with another.
    func removeLeftovers(_ directory: URL) async throws

    /// Removes the key file that a change of key made before it failed; one that holds keys stays.
    func removeUnused(_ directory: URL) async

    /// Why it cannot take over from `current`, and what to do instead; `nil` when it can.
    func objection(to current: any KeyProviderKind) -> String?

    /// The same error with more help, when this kind knows more.
    func explained(_ error: SecretStoreError) -> SecretStoreError

    /// Whether a passphrase or PIN opens it.
    var asksForSecret: Bool { get }

    /// What to do for another passphrase or PIN, where `rekey` does not change it.
    var howToChangeSecret: String { get }

    /// What a change of key at this same provider takes, and with it the change of the passphrase or PIN.
    ///
    /// - Parameters:
    ///   - directory: the vault's directory.
    ///   - presence: knows or asks for the passphrase or PIN.
    ///   - secret: the new passphrase; `nil` when it stays.
    /// - Returns: what opens the vault and guards it afterwards.
    /// - Throws: ``RekeyOptions/Mistake`` when this kind's secret does not change in this way.
    func renewal(_ directory: URL, presence: any UserPresence, newSecret secret: Secret?) throws -> KeyRenewal
}

extension KeyProviderKind {
    var name: String { Self.name }

    var asksForSecret: Bool { true }

    func renewal(_ directory: URL, presence: any UserPresence, newSecret secret: Secret?) throws -> KeyRenewal {
        guard secret == nil else { throw RekeyOptions.Mistake(howToChangeSecret) }
        return KeyRenewal(keys: try keys(directory, presence: presence))
    }

    func removeLeftovers(_ directory: URL) async throws {}

    func removeUnused(_ directory: URL) async {}

    func objection(to current: any KeyProviderKind) -> String? { nil }

    func explained(_ error: SecretStoreError) -> SecretStoreError { error }

    /// Whether `other` is the same choice.
    func isSame(as other: any KeyProviderKind) -> Bool { other as? Self == self }

    /// The text of a file that says it.
    var file: String {
        let head = ["# What guards the vault of this profile. Change it with: assent vault rekey", "provider: \(name)"]
        return (head + yaml).joined(separator: "\n") + "\n"
    }

    /// A line of a file.
    static func line(_ key: String, _ text: String) -> String { "\(key): \(JSONValue.string(text).serialized())" }

    /// What this machine has of this kind.
    static func status(
        _ place: String?, _ protection: KeyProtection, noticesRollback: Bool = false, isChosen: Bool = false,
        _ availability: KeyAvailability
    ) -> KeyProviderStatus {
        KeyProviderStatus(
            kind: name, place: place, protection: protection, hasCounter: noticesRollback, availability: availability,
            guardsVault: isChosen)
    }
}

/// A change of key at the key provider that a vault has.
struct KeyRenewal: Sendable {
    /// Opens the vault, and guards it afterwards.
    let keys: VaultKeys

    /// Changes the passphrase, where that was asked for. It comes before the change of key.
    var changeSecret: @Sendable () async throws -> Void = {}
}

/// The kinds of key provider.
enum KeyProviderKinds {
    /// All of them, in the order in which `assent doctor` lists them.
    static let all: [any KeyProviderKind.Type] = [
        KeyFileKind.self, PassphraseKind.self, PKCS11Kind.self, TPMKind.self,
    ]

    /// Their names, for people.
    static var names: String { all.map { $0.name }.joined(separator: ", ") }

    static func named(_ name: String) -> (any KeyProviderKind.Type)? { all.first { $0.name == name } }

    /// Reads the text of a file; a mistake is an error with its line.
    static func parse(_ text: String, file: String) throws -> any KeyProviderKind {
        try ConfigurationFile.read(text, file: file) { try read($0) }
    }

    /// Reads the lines of a file that say what guards a vault.
    static func read(_ settings: SettingsReader<Void>) throws -> any KeyProviderKind {
        guard let kind = named(settings.string("provider")) else {
            throw settings.issue("provider", "must be one of \(names)")
        }
        return kind.init(settings)
    }
}

extension PlatformBackend {
    /// Why nothing is guarded by what this program was built without.
    var isMissing: SecretStoreError {
        SecretStoreError(
            .keyUnavailable,
            "This program was built without \(trait), and nothing else takes its place. Build it on Linux, where "
                + "\(developmentPackage) is installed, with: swift build --traits \(trait) --product assent")
    }
}
