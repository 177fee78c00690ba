import Assent
import AssentCore
import AssentVault
import Foundation

/// Where a profile's client keys are: with what guards its vault, or is to guard it.
struct ClientKeyStore {
    /// What holds the keys.
    let kind: any KeyProviderKind

    private let place: VaultPlace
    private let isChosenNow: Bool
    private let provider: any KeyProvider

    /// The place of a profile's keys.
    ///
    /// - Parameters:
    ///   - profile: the profile's name.
    ///   - choice: what guards the vault of a profile that has none yet.
    ///   - presence: knows or asks for the passphrase or PIN.
    ///   - places: where the command line keeps its things.
    /// - Throws: ``CommandFailure`` when something else guards the vault already; what the choice and its provider
    ///   throw.
    init(
        profile: String, choice: (Places) throws -> (any KeyProviderKind)?, presence: TerminalPresence,
        places: Places = Places()
    ) throws {
        place = try VaultPlace(profile: profile, places: places)
        kind = try choice(places) ?? place.keyProvider
        isChosenNow = !kind.isSame(as: place.keyProvider)
        if isChosenNow, try FileVault.inspect(place.directory) != nil {
            throw CommandFailure(
                "The vault of this profile is guarded by \(place.keyProvider.name), and the client's key is to be with it. "
                    + "Change that first with: assent vault rekey --to \(kind.name)")
        }
        let guarded = VaultPlace(directory: place.directory.path, store: profile, keyProvider: kind)
        provider = try guarded.keysAndProvider(presence).1
    }

    /// Finds a key.
    func find(_ name: String) async throws -> ClientKey { try await ClientKey.find(named: name, at: provider) }

    /// Makes a key. What holds it is written down afterwards: a choice of which nothing came would be in the way of the
    /// next.
    func make(_ name: String, replacing: Bool) async throws -> ClientKey {
        let key: ClientKey
        do {
            key = try await ClientKey.make(named: name, at: provider, replacing: replacing)
        } catch let error as KeyProviderError where error.code == .keyExists {
            throw CommandFailure(
                "There is a key \(name) already. See its public half with --show; or destroy it and make another with "
                    + "--replace, and register that one.")
        }
        if isChosenNow { try place.settle(kind) }
        return key
    }
}
