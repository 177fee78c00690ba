// Counterparts of the names in docs/migrating-vault.md: what an app that used the vendors' SDKs writes now.

import Assent
import Foundation

/// Where the vendors' SDKs fell back to plaintext, this fails and says so.
func openVault(at directory: URL, token: any KeyProvider) async throws -> FileVault {
    guard await token.isAvailable else {
        // SecuredKey.isAvailable(), with a reason to show.
        throw KeyProviderError(.unavailable, "\(await token.availability)")
    }
    return try await FileVault.open(directory, keys: .requireHardware(token))
}

/// `Storage.save`, `get` and `delete`: an update says which version it expects, and absent is not the same as unreadable.
func storage(_ vault: FileVault) async throws {
    try await vault.update("profile", to: Secret("…"), expected: .absent)
    guard let stored = try await vault.value("profile") else { return }
    try await vault.update("profile", to: Secret("new"), expected: .exactly(stored.version))
    try await vault.update("profile", to: nil, expected: .any)
}

/// `getEncryptor`: what a device's abilities and the app's demand come to, or why they do not.
func encryptor() throws -> KeyOptions {
    let device = KeyCapabilities(
        wrappings: [.aes], hasSeparateChip: true, presence: [.pin, .biometry], noticesEnrollment: true)
    let demand = KeyDemand(level: .requireHardware, separateChip: true, presence: .biometryEnrolledNow)
    return try KeyOptions.choose(for: demand, on: device)
}

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

/// `CookieModule(persist:)`: the load balancer's cookies outlive the process, sealed.
func cookies(in vault: FileVault) -> CookieMiddleware {
    CookieMiddleware(store: SecureCookieStore(in: vault, persisting: ["amlbcookie"]), origins: [])
}
