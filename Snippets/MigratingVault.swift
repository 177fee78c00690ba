// Counterparts of the names in docs/migrating-vault.md, with which a test compares this file: what an app that used the
// vendors' SDKs writes now.

import Assent
import AssentTesting
import Foundation

/// Where the vendors' SDKs fell back to plaintext, this fails and says so.
func openVault(at directory: URL, token: any KeyProvider) async throws -> FileVault {
    guard await token.isAvailable else {
        // SecuredKey.isAvailable(), with a reason to show.
        throw KeyProviderError(.unavailable, "\(await token.availability)")
    }
    return try await FileVault.open(directory, keys: .requireHardware(token))
}

/// Where there is no chip, and the app says so.
func openSoftwareVault(at directory: URL, keyFile: URL) async throws -> FileVault {
    try await FileVault.open(directory, keys: .software(SoftwareKeyProvider(unprotectedFile: keyFile)))
}

/// What guards a vault stays until the app changes it.
func moveToHardware(_ vault: FileVault, token: any KeyProvider, otherwise: any KeyProvider) async throws {
    let keys: VaultKeys = .preferHardware([token], otherwise: otherwise)
    _ = try await vault.rekey(to: keys)
}

/// `Storage.save`, `get` and `delete`: an update says which version it expects, and absent is not the same as
/// unreadable.
func storage(_ vault: FileVault) async throws {
    try await vault.update("profile", to: Secret("…"), expected: .absent)
    guard let stored = try await vault.value("profile") else { return }
    try await vault.update("profile", to: Secret("new"), expected: .exactly(stored.version))
    try await vault.update("profile", to: nil, expected: .any)
}

/// Each reason has a code, where the vendors' `get` returns `nil` and `validateEncryption` clears everything.
func advice(_ error: SecretStoreError) -> String {
    switch error.code {
    case .keyUnavailable: "The key provider is not there now. Try again; nothing is stored without it."
    case .wrongKey, .keyLost: "These data cannot be opened any more. Ask before calling removeAll()."
    default: "\(error)"
    }
}

/// `deleteAll`: this store, and nothing else.
func forget(_ store: any SecretStore) async throws { try await store.removeAll() }

/// `MemoryStorage`, and a store of one's own with the rules that it must keep.
func check(own: any SecretStore) async throws {
    for rule in SecretStoreContract.rules { try await rule.check(MemorySecretStore()) }
    for rule in SecretStoreContract.rules.prefix(1) { try await rule.check(own) }
}

/// `getEncryptor`: what a device's abilities and the app's demand come to, or why they do not.
func encryptor() throws -> KeyOptions {
    let device = KeyCapabilities(
        wrappings: [.aes], hasSeparateChip: true, presence: [.pin, .biometry], noticesEnrollment: true)
    let presence: KeyDemand.Presence = .biometryEnrolledNow
    let demand = KeyDemand(level: .requireHardware, separateChip: true, presence: presence)
    return try KeyOptions.choose(for: demand, on: device)
}

/// The kinds of key that the Android encryptors stand for.
let wrappings: Set<KeyWrapping> = [.aes, .rsa]

/// `setInvalidatedByBiometricEnrollment(true)` where the system does not do it.
func guarded(_ keys: any KeyProvider, by reader: any BiometricProvider) -> some KeyProvider {
    BiometricKeyProvider(keys, biometrics: reader, reason: "Sign in to Bank")
}

/// What the iOS SDKs sealed, opened once with their own key.
func importSession(_ sealed: [UInt8], with key: any KeyAgreementKey) async throws -> Session {
    let opened = try await VendorSealed.open(sealed, with: key)
    guard let token = try JSONValue.parse(opened.revealBytes())["value"]?.string else {
        throw SecretStoreError(.invalidInput, "This is no session of the Ping SDK. Let the user sign in again.")
    }
    return Session(token: Secret(token), realm: "/alpha")
}

/// The cipher of `SecuredKey`, as older versions of the SDK read it and as new messages are sealed.
func seal(_ value: Secret, to publicPoint: [UInt8], isOld: Bool) throws -> [UInt8] {
    let cipher: ECIES = isOld ? .cofactorX963SHA256AESGCM : .cofactorVariableIVX963SHA256AESGCM
    return try cipher.seal(value, to: publicPoint)
}

/// `DefaultTokenManager` and `DefaultSingleSignOnManager`: both in one, over a store.
func tokens(_ configuration: TokenConfiguration, transport: any HTTPTransport, store: any SecretStore) -> TokenManager {
    TokenManager(configuration: configuration, transport: transport, store: store)
}

#if canImport(Security)
/// `KeychainManager`, `KeychainStorage`: kSecClassGenericPassword, for this device only; or sealed by the Secure
/// Enclave.
func keychain() throws -> (any SecretStore, any KeyProvider) {
    (
        KeychainSecretStore(service: "bank", accessGroup: "TEAM.example.bank"),
        try SecureEnclaveKeyProvider(accessGroup: "TEAM.example.bank")
    )
}
#elseif Keyring && os(Linux)
/// Where there is no disk to write to.
func keyring() throws -> any SecretStore { try KeyringSecretStore(store: "bank", timeToLive: 3600) }
#endif

/// `CookieModule(persist:)` in the façade.
func keepCookies(_ configuration: inout Assent.Configuration) {
    configuration.persistentCookies = ["amlbcookie"]
}

/// `CookieModule(persist:)`: the load balancer's cookies outlive the process, sealed.
func cookies(in vault: FileVault) -> CookieMiddleware {
    CookieMiddleware(store: SecureCookieStore(in: vault, persisting: ["amlbcookie"]), origins: [])
}
