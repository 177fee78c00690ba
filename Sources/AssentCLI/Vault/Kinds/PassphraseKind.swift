import Assent
import AssentCore
import AssentVault
import Foundation

/// A key file in the vault's directory, sealed under a passphrase.
struct PassphraseKind: KeyProviderKind {
    static let name = "passphrase"
    static let rekeyOptions: (required: Set<String>, optional: Set<String>) = ([], ["new-passphrase"])

    init() {}

    init(_ settings: SettingsReader<Void>) {}

    init(_ options: HardwareOptions, keyFile: String) {}

    var yaml: [String] { [] }

    private func file(_ directory: URL) -> URL { directory.appending(path: VaultFileNames.passphraseKeys) }

    /// The provider of a vault under a passphrase.
    func provider(_ directory: URL, presence: any UserPresence) -> SoftwareKeyProvider {
        SoftwareKeyProvider(file: file(directory), passphrase: presence)
    }

    func keys(_ directory: URL, presence: any UserPresence) -> VaultKeys {
        .software(provider(directory, presence: presence))
    }

    func keyProvider(_ directory: URL, presence: any UserPresence) -> any KeyProvider {
        provider(directory, presence: presence)
    }

    func renewal(_ directory: URL, presence: any UserPresence, newSecret secret: Secret?) -> KeyRenewal {
        // One provider for all of it: it asks for the passphrase once, and knows when that has changed.
        let provider = provider(directory, presence: presence)
        return KeyRenewal(keys: .software(provider)) {
            if let secret { try await provider.changePassphrase(to: KnownSecret(secret)) }
        }
    }

    func matches(_ info: VaultInfo) -> Bool { info.protection == .software }

    func removeLeftovers(_ directory: URL) { try? FileManager.default.removeItem(at: file(directory)) }

    func removeUnused(_ directory: URL) { removeLeftovers(directory) }

    var howToChangeSecret: String { "Give the new passphrase with --new-passphrase-file or --new-passphrase-fd." }

    static func statuses(chosen: PassphraseKind?, vault: URL) async -> [KeyProviderStatus] {
        let provider = PassphraseKind().provider(vault, presence: TerminalPresence(known: nil))
        return [status(nil, .software, isChosen: chosen != nil, await provider.availability)]
    }
}
