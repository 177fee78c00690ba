import Assent
import AssentCore
import Foundation

/// An unprotected key file: everybody who can read it can open the vault.
struct KeyFileKind: KeyProviderKind {
    static let name = "key-file"
    static let rekeyOptions: (required: Set<String>, optional: Set<String>) = (["new-key-file"], [])

    let path: String

    init(path: String) { self.path = path }

    init(_ settings: SettingsReader<Void>) { path = settings.string("file") }

    init(_ options: HardwareOptions, keyFile: String) { path = URL(fileURLWithPath: keyFile).path }

    var yaml: [String] { [Self.line("file", path)] }

    private var provider: SoftwareKeyProvider { SoftwareKeyProvider(unprotectedFile: URL(fileURLWithPath: path)) }

    func keys(_ directory: URL, presence: any UserPresence) -> VaultKeys { .software(provider) }

    func keyProvider(_ directory: URL, presence: any UserPresence) -> any KeyProvider { provider }

    func matches(_ info: VaultInfo) -> Bool { info.protection == .unprotected }

    func removeUnused(_ directory: URL) async {
        guard (try? await provider.keyNames()) == [] else { return }
        try? FileManager.default.removeItem(at: URL(fileURLWithPath: path))
    }

    func explained(_ error: SecretStoreError) -> SecretStoreError {
        guard error.code == .keyLost, !FileManager.default.fileExists(atPath: path) else { return error }
        return SecretStoreError(
            .keyLost,
            "The key file \(path) does not exist. Restore it, or name the right one: without it nobody can read the vault."
        )
    }

    var asksForSecret: Bool { false }

    var howToChangeSecret: String { "This vault has no passphrase yet: say --to passphrase." }

    static func statuses(chosen: KeyFileKind?, vault: URL) async -> [KeyProviderStatus] {
        let kind =
            chosen ?? KeyFileKind(path: vault.deletingLastPathComponent().appending(path: Places.keyFileName).path)
        return [status(kind.path, .unprotected, isChosen: chosen != nil, await kind.provider.availability)]
    }
}
