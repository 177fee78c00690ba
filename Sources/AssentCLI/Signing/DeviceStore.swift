import Assent
import AssentSigning
import Foundation

/// The containers of a profile's device, in a vault of their own, and what holds their keys.
struct DeviceStore: Sendable {
    let vault: FileVault
    let keys: any KeyProvider

    /// Whether a passphrase or PIN guards them.
    let asksForSecret: Bool

    /// What this program allows as a device.
    static var configuration: SigningDeviceConfiguration {
        var device = SigningDeviceConfiguration()
        device.sessionPassword = { _ in try Prompt().secret("Your PIN or password for reading transactions") }
        return device
    }

    /// Opens the device's vault, and makes it when it is missing. Where the profile's own vault is opened, too
    /// (`besideVault`), a passphrase may be for that alone.
    ///
    /// - Throws: what the place, the vault and the key provider throw.
    static func open(
        _ profile: ClientProfile, choosing options: DeviceKeyOptions? = nil, besideVault: Bool = false
    ) async throws -> DeviceStore {
        try FileManager.default.createDirectory(
            atPath: profile.places.vault(profile: profile.name), withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        let place = DevicePlace(profile: profile.name, places: profile.places)
        if let chosen = try options?.choice(standardFile: place.standardFile) { try place.choose(chosen) }
        let kind = try place.current()
        var presence = profile.presence
        if besideVault, !kind.asksForSecret { presence = TerminalPresence(known: nil, prompt: presence.prompt) }
        guard presence.known == nil || kind.asksForSecret else {
            throw CommandFailure(
                "A passphrase or PIN was given, and the device's keys are held without one: \(kind.name).")
        }
        do {
            let keys = try kind.keyProvider(place.directory, presence: presence)
            let guards: VaultKeys = keys.protection == .hardware ? .requireHardware(keys) : .software(keys)
            let vault = try await FileVault.open(place.directory, store: profile.name, keys: guards)
            return DeviceStore(vault: vault, keys: keys, asksForSecret: kind.asksForSecret)
        } catch let error as SecretStoreError {
            // A provider that cannot be used must not be what the next try begins with.
            place.forget()
            throw kind.explained(error)
        }
    }
}

extension ClientFile {
    /// The signing issuer of the file's server and realm.
    ///
    /// - Throws: `JourneyFailure` for a realm whose name is not valid.
    var signingIssuer: String {
        get throws { "\(server)/signing/\(try JourneyRealm(realm).path)" }
    }
}
