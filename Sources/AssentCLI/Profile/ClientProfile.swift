import ArgumentParser
import Assent
import AssentConfiguration
import Foundation
import Logging

/// One set of configuration, vault and key on the command line, by name.
struct ClientProfile: Sendable {
    var file: ClientFile
    let places: Places
    let name: String

    /// Knows or asks for the vault's passphrase.
    var presence = TerminalPresence(known: nil)

    /// The profile's configuration: from `config`, which is then kept, or the one that was kept before.
    static func load(config: String?, name: String, places: Places = Places()) throws -> ClientProfile {
        try check(name: name)
        let kept = places.configurationFile(profile: name)
        let file = try ClientFile.load(config ?? kept)
        if config != nil {
            try FileManager.default.createDirectory(
                atPath: places.configuration, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            try Data(file.yaml.utf8).write(to: URL(fileURLWithPath: kept), options: .atomic)
        }
        return ClientProfile(file: file, places: places, name: name)
    }

    /// A profile's name becomes part of paths.
    static func check(name: String) throws {
        guard !name.isEmpty,
            name.utf8.allSatisfy({
                $0 == 0x2D || $0 == 0x5F || (0x30...0x39).contains($0) || (0x61...0x7A).contains($0 | 0x20)
            })
        else { throw ValidationError("a profile's name has letters, digits, - and _") }
    }

    /// The SDK, with its vault in this profile's place.
    func assent(transport: (any HTTPTransport)? = nil, clock: any WallClock = SystemClock()) throws -> Assent {
        let place = try VaultPlace(profile: name, places: places)
        try FileManager.default.createDirectory(
            atPath: places.vault(profile: name), withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        let keys = try place.keyProvider.keys(place.directory, presence: presence)
        var configuration = file.configuration(
            vault: .file(at: place.directory, keys: keys, store: place.store))
        configuration.transport = transport
        configuration.clock = clock
        var logger = Logger(label: "assent", factory: { StreamLogHandler.standardError(label: $0) })
        logger.logLevel = .warning
        configuration.logger = logger
        return try Assent(configuration)
    }
}

extension ClientFile {
    /// The SDK's configuration.
    func configuration(vault: Assent.Vault) -> Assent.Configuration {
        var configuration = Assent.Configuration(
            server: server, realm: realm, client: .init(id: clientID, redirectURI: redirectURI, scopes: scopes),
            resources: Dictionary(
                resources.map { ($0.origin, Self.access($0.credential)) }, uniquingKeysWith: { first, _ in first }),
            pins: Dictionary(
                pins.map { ($0.host, $0.requirement) }, uniquingKeysWith: { first, _ in first }), vault: vault)
        configuration.sessionCookieName = cookieName
        if let authority { configuration.trustRoots = .pemFile(authority) }
        return configuration
    }

    private static func access(_ credential: String) -> ResourceAccess {
        switch credential {
        case "session": .session
        case "both": .both
        default: .accessToken
        }
    }
}

extension ClientFile.HostPins {
    /// What the transport must find. One pin is enough only where the file says so.
    fileprivate var requirement: PinRequirement {
        if isSingle, let pin = pins.first { return .singlePin(pin) }
        return .pins(pins)
    }
}
