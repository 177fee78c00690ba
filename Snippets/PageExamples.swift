// The examples in Swift of pages in docs that no doc comment has: Scripts/check_prose.py compares them line by line.
import Assent
import Foundation

func keep(_ token: Secret, in directory: URL, _ keyFile: URL, _ passphrase: Secret) async throws {
    let keys = SoftwareKeyProvider(file: keyFile, passphrase: KnownSecret(passphrase))
    let vault = try await FileVault.open(directory, store: "tokens", keys: .software(keys))
    try await vault.update("refresh", to: token, expected: .absent)
}

func register(
    _ configuration: inout Assent.Configuration, by provider: any KeyProvider, _ token: Secret
) throws -> Assent {
    configuration.client = .init(id: "pay", redirectURI: "http://127.0.0.1/callback", scopes: ["openid", "accounts"])
    configuration.registration = RegistrationConfiguration(keys: provider, initialAccessToken: token)
    let assent = try Assent(configuration)
    return assent
}

func trust(_ bundled: URL, server: String, client: Assent.Client, vault: Assent.Vault) throws -> Assent {
    let file = try TrustFile(shipped: String(contentsOf: bundled, encoding: .utf8))
    let assent = try Assent(.init(server: server, realm: "alpha", client: client, trust: file, vault: vault))
    return assent
}

#if PKCS11 && os(Linux)
func useToken(_ configuration: inout Assent.Configuration, at directory: URL, _ presence: any UserPresence) {
    let keys = VaultKeys.pkcs11(module: "/usr/lib/softhsm/libsofthsm2.so", token: "Ana", pin: presence)
    configuration.vault = .file(at: directory, keys: keys)
}

func yubiKey(_ path: String, _ presence: any UserPresence) -> PKCS11KeyProvider {
    PKCS11KeyProvider(module: path, token: "YubiKey PIV #123456", pin: presence, existing: ["signer": [2]])
}
#endif

#if TPM && os(Linux)
func useTPM(_ configuration: inout Assent.Configuration, at directory: URL, _ presence: any UserPresence) {
    let keys = VaultKeys.tpm(pin: presence)  // or this
    configuration.vault = .file(at: directory, keys: keys)
}
#endif

#if Keyring && os(Linux)
func useKeyring(_ configuration: inout Assent.Configuration) throws {
    let store = try KeyringSecretStore(store: "com.example.deploy", timeToLive: 3600)
    configuration.vault = .store(store)
}
#endif
