import Assent
import AssentConfiguration
import AssentCore
import AssentPlatform
import Foundation

/// What guards a vault of the command line, as the user chose it: `<profile>.vault.yaml`.
///
/// The choice lies with the configuration and not with the vault, so that a vault that was exchanged cannot choose.
enum VaultGuard: Sendable, Equatable {
    /// A key file that whoever can read it can use.
    case keyFile(String)
    /// A key file in the vault's directory, under a passphrase.
    case passphrase
    /// A PKCS#11 token.
    case pkcs11(module: String, token: String)
    /// A TPM 2.0.
    case tpm(TPMChoice)

    static let passphraseFile = "passphrase.keys"

    /// The name on the command line and in the file.
    var name: String {
        switch self {
        case .keyFile: "key-file"
        case .passphrase: "passphrase"
        case .pkcs11: "pkcs11"
        case .tpm: "tpm"
        }
    }

    /// Provider and level, for the vault in `directory`.
    ///
    /// - Throws: `SecretStoreError` with code `keyUnavailable` when this program was built without the provider.
    func keys(_ directory: URL, presence: any UserPresence) throws -> VaultKeys {
        switch self {
        case .keyFile(let path): return .software(SoftwareKeyProvider(unprotectedFile: URL(fileURLWithPath: path)))
        case .passphrase: return .software(passphraseKeys(directory, presence: presence))
        case .pkcs11(let module, let token):
            #if PKCS11 && os(Linux)
            return .requireHardware(PKCS11KeyProvider(module: module, token: token, pin: presence))
            #else
            throw Self.notBuilt(.pkcs11)
            #endif
        case .tpm(let choice): return .requireHardware(try choice.provider(directory, presence: presence))
        }
    }

    /// The provider of a vault under a passphrase.
    func passphraseKeys(_ directory: URL, presence: any UserPresence) -> SoftwareKeyProvider {
        SoftwareKeyProvider(file: directory.appending(path: Self.passphraseFile), passphrase: presence)
    }

    /// Removes what an interrupted change to this guardian left in `directory`, where the vault is open with another.
    func removeLeftovers(_ directory: URL) async throws {
        switch self {
        case .keyFile, .pkcs11: break
        case .passphrase: try? FileManager.default.removeItem(at: directory.appending(path: Self.passphraseFile))
        case .tpm(let choice):
            let provider = try choice.provider(directory, presence: nil)
            do {
                for name in try await provider.keyNames() { try await provider.removeKey(named: name) }
            } catch let error as KeyProviderError {
                throw SecretStoreError(.keyUnavailable, error.detail)
            }
        }
    }

    /// Removes the key file that a change of key made before it failed; one that holds keys stays.
    func removeUnused(_ directory: URL) async {
        switch self {
        case .passphrase: try? await removeLeftovers(directory)
        case .keyFile(let path):
            let file = URL(fileURLWithPath: path)
            if (try? await SoftwareKeyProvider(unprotectedFile: file).keyNames()) == [] {
                try? FileManager.default.removeItem(at: file)
            }
        case .pkcs11, .tpm: break
        }
    }

    /// Whether a vault that says `info` of itself may be this one's.
    func matches(_ info: UnverifiedVaultInfo) -> Bool {
        switch self {
        case .keyFile: info.claimed.protection == .unprotected
        case .passphrase: info.claimed.protection == .software
        case .pkcs11: info.claimed.protection == .hardware && info.claimed.provider == "pkcs11"
        case .tpm: info.claimed.protection == .hardware && info.claimed.provider == "tpm2"
        }
    }

    /// Why nothing is guarded by what this program was built without.
    static func notBuilt(_ backend: PlatformBackend) -> SecretStoreError {
        let package =
            switch backend {
            case .pkcs11: "libp11-kit-dev"
            case .tpm: "libtss2-dev"
            case .keyring: "libkeyutils-dev"
            }
        return SecretStoreError(
            .keyUnavailable,
            "This program was built without \(backend.trait), and nothing else takes its place. Build it on Linux, where "
                + "\(package) is installed, with: swift build --traits \(backend.trait) --product assent")
    }

    /// Reads a file; a mistake is an error with its line.
    static func parse(_ text: String, file: String) throws -> VaultGuard {
        try ConfigurationFile.read(text, file: file) { try VaultGuard($0) }
    }

    /// Reads its lines of a file.
    init(_ reader: SettingsReader<Void>) throws {
        switch reader.string("provider") {
        case "key-file": self = .keyFile(reader.string("file"))
        case "passphrase": self = .passphrase
        case "pkcs11": self = .pkcs11(module: reader.string("module"), token: reader.string("token"))
        case "tpm": self = .tpm(TPMChoice(reader))
        default: throw reader.issue("provider", "must be key-file, passphrase, pkcs11 or tpm")
        }
    }

    /// The file's text.
    var yaml: String {
        var lines = [
            "# What guards the vault of this profile. Change it with: assent vault rekey", "provider: \(name)",
        ]
        switch self {
        case .keyFile(let path): lines.append("file: \(JSONValue.string(path).serialized())")
        case .passphrase: break
        case .pkcs11(let module, let token):
            lines.append("module: \(JSONValue.string(module).serialized())")
            lines.append("token: \(JSONValue.string(token).serialized())")
        case .tpm(let choice): lines += choice.yaml
        }
        return lines.joined(separator: "\n") + "\n"
    }
}
