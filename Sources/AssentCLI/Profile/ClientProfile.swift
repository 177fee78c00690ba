import ArgumentParser
import Assent
import AssentTrust
import Foundation
import Logging

/// One set of configuration, vault and key on the command line, by name.
struct ClientProfile: Sendable {
    var file: ClientFile
    let places: Places
    let name: String

    /// Knows or asks for the vault's passphrase.
    var presence = TerminalPresence(known: nil)

    /// Is told what payload encryption sends and gets.
    var payloadTrace: (@Sendable (PayloadTrace) -> Void)?

    /// What lets this installation register, in place of what the file names.
    var initialAccessToken: Secret?

    /// The profile's configuration: from `config`, or the one that was kept before. ``keep()`` keeps it.
    static func load(config: String?, name: String, places: Places = Places()) throws -> ClientProfile {
        try check(name: name)
        let file = try ClientFile.load(config ?? places.configurationFile(profile: name))
        return ClientProfile(file: file, places: places, name: name)
    }

    /// A command as a person types it for this profile.
    ///
    /// - Parameters:
    ///   - command: the command, without the program's name.
    ///   - rest: what stands behind its options.
    /// - Returns: the line.
    func typed(_ command: String, _ rest: String = "") -> String {
        let words = ["assent", command, name == Self.usual ? "" : "--profile \(name)", rest]
        return words.filter { !$0.isEmpty }.joined(separator: " ")
    }

    /// The profile of those who name none.
    static let usual = "default"

    /// Keeps the configuration for the next commands, after it has worked.
    func keep() throws {
        let path = places.configurationFile(profile: name)
        if let kept = try? ClientFile.load(path), kept == file { return }
        do {
            try FileManager.default.createDirectory(
                atPath: places.configuration, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            try Data(file.yaml.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
        } catch {
            throw CommandFailure(
                "That worked, but the configuration could not be kept as \(path): "
                    + "\(error.localizedDescription) Name it with --config in the next commands.")
        }
    }

    /// A profile's name becomes part of paths.
    static func check(name: String) throws {
        guard !name.isEmpty,
            name.utf8.allSatisfy({
                $0 == 0x2D || $0 == 0x5F || (0x30...0x39).contains($0) || (0x61...0x7A).contains($0 | 0x20)
            })
        else { throw ValidationError("A profile's name has letters, digits, - and _.") }
    }

    /// The SDK, with its vault in this profile's place. Tokens that a sign-in has bound to a key stay bound.
    ///
    /// - Parameters:
    ///   - bindsTokens: whether new tokens are bound to a key also where none were before.
    ///   - device: the containers of the users whom this installation remembers, where they are needed.
    ///   - transport: carries the calls instead of the pinned one.
    ///   - clock: where the time comes from.
    /// - Returns: the SDK.
    /// - Throws: what the vault's place, its key provider and the configuration throw.
    func assent(
        bindsTokens: Bool = false, device: DeviceStore? = nil, transport: (any HTTPTransport)? = nil,
        clock: any WallClock = SystemClock()
    ) throws -> Assent {
        let place = try VaultPlace(profile: name, places: places)
        try FileManager.default.createDirectory(
            atPath: places.vault(profile: name), withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        var presence = presence
        if device?.asksForSecret == true, !place.keyProvider.asksForSecret {
            // The secret that was given is the device's alone.
            presence = TerminalPresence(known: nil, prompt: presence.prompt)
        }
        let (keys, provider) = try place.keysAndProvider(presence)
        var configuration = file.configuration(
            vault: .file(at: place.directory, keys: keys, store: place.store))
        if let path = file.trust {
            let trust = try TrustFile(shipped: TrustText.read(path))
            configuration.trust = trust
            configuration.issuer = trust.content.issuer
        }
        configuration.dpop =
            file.registration?.remembersUsers == true
            ? .installation : bindsTokens ? .on(keys: provider) : .kept(keys: provider)
        if let name = file.clientKey {
            configuration.clientAuthentication = .privateKeyJWT(keys: provider, named: name)
        }
        configuration.registration = try file.registration?.configuration(keys: provider, token: initialAccessToken)
        for sealed in file.payloadEncryption { configuration.payloadEncryption[sealed.origin] = try sealed.sealing() }
        configuration.payloadTrace = payloadTrace
        if let device {
            configuration.deviceKeys = device.keys
            configuration.deviceVault = .store(device.vault)
            configuration.device = DeviceStore.configuration
        }
        configuration.transport = transport
        configuration.clock = clock
        configuration.logger = .ofClient()
        return try Assent(configuration)
    }
}

extension ClientFile {
    /// The SDK's configuration.
    func configuration(vault: Assent.Vault) -> Assent.Configuration {
        var configuration = Assent.Configuration(
            server: server, realm: realm, client: .init(id: clientID, redirectURI: redirectURI, scopes: scopes),
            resources: Dictionary(
                resources.map { ($0.origin, $0.access) }, uniquingKeysWith: { first, _ in first }),
            pins: Dictionary(
                pins.map { ($0.host, $0.requirement) }, uniquingKeysWith: { first, _ in first }), vault: vault)
        configuration.resourceBase = resourceBase
        configuration.sessionCookieName = cookieName
        configuration.integrity.controls = integrity
        configuration.integrity.tellsServer = tellsServer
        configuration.issuer = issuer
        // A provider under development on this machine: the file says so by its URL.
        configuration.allowPlaintextLoopback = isProviderOnly && issuer?.hasPrefix("http://") == true
        if let authority { configuration.trustRoots = .pemFile(authority) }
        if let least = LeastLimit.ofCalls() {
            configuration.leastLimit = least
            // Also where another process of the same home signs in or registers, whose calls have that time.
            configuration.patience = max(configuration.patience, TimeInterval(least.components.seconds))
        }
        return configuration
    }
}

extension ClientFile.HostPins {
    /// What the transport must find. One pin is enough only where the file says so.
    fileprivate var requirement: PinRequirement {
        if isSingle, let pin = pins.first { return .singlePin(pin) }
        return .pins(pins)
    }
}
