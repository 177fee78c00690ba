import Assent
import AssentConfiguration
import AssentCore
import Foundation

/// Where a profile's device is, and what holds its keys: `<profile>.device.yaml`, or without that file a key file
/// beside the device's vault.
///
/// The choice lies with the configuration and not with the keys, so that files that were exchanged cannot choose.
struct DevicePlace: Sendable {
    /// The directory of the device's vault.
    let directory: URL

    /// The key file of a device for which nothing else was chosen.
    let standardFile: String

    private let choiceFile: String

    init(profile: String, places: Places) {
        let state = places.vault(profile: profile)
        directory = URL(fileURLWithPath: state + "/signing")
        standardFile = state + "/signing.key"
        choiceFile = "\(places.configuration)/\(profile).device.yaml"
    }

    /// What holds the device's keys.
    ///
    /// - Throws: `ConfigurationError` for a file that does not say it.
    func current() throws -> any KeyProviderKind {
        guard FileManager.default.fileExists(atPath: choiceFile) else { return KeyFileKind(path: standardFile) }
        return try VaultPlace.keyProvider(in: choiceFile)
    }

    /// Whether the device has a vault, and so keys.
    var isMade: Bool { FileManager.default.fileExists(atPath: directory.path) }

    /// Writes down what is to hold the keys of a device that has none yet.
    ///
    /// - Throws: ``CommandFailure`` when the device has keys elsewhere.
    func choose(_ kind: any KeyProviderKind) throws {
        let current = try current()
        guard !kind.isSame(as: current) else { return }
        guard !isMade else {
            throw CommandFailure(
                "This device's keys are held by: \(current.name). Keys cannot move: remove the device's containers, or "
                    + "use another --profile.")
        }
        try VaultPlace.write(kind.file, to: choiceFile)
    }

    /// Takes a choice back, of which nothing came.
    func forget() {
        guard !isMade else { return }
        try? FileManager.default.removeItem(atPath: choiceFile)
    }
}
