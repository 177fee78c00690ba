import Assent
import AssentSigning
import Foundation
import Logging

/// The signing device of a profile: its containers in a vault of its own, its keys in a file beside it.
struct SigningProfile: Sendable {
    let device: SigningDevice

    /// The issuer of the profile's server and realm.
    let issuer: String

    private let transport: NIOTransport

    /// Opens the device, and makes its vault when it is missing.
    static func open(_ client: ClientOptions) async throws -> SigningProfile {
        let profile = try client.load()
        let directory = profile.places.vault(profile: profile.name)
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let keys = SoftwareKeyProvider(unprotectedFile: URL(fileURLWithPath: directory + "/signing.key"))
        let vault = try await FileVault.open(
            URL(fileURLWithPath: directory + "/signing"), store: profile.name, keys: .software(keys))
        var logger = Logger(label: "assent", factory: { StreamLogHandler.standardError(label: $0) })
        logger.logLevel = .warning
        let configuration = profile.file.configuration(vault: .memory)
        let transport = try NIOTransport(
            configuration: NIOTransportConfiguration(trustRoots: configuration.trustRoots, pins: configuration.pins),
            logger: logger)
        let realm = try JourneyRealm(profile.file.realm)
        return SigningProfile(
            device: SigningDevice(store: vault, keys: keys, transport: transport, logger: logger),
            issuer: "\(profile.file.server)/signing/\(realm.path)", transport: transport)
    }

    /// The container with this id; without one, the only one that there is.
    func container(_ id: String?) async throws -> SigningContainer {
        if let id { return try await device.container(id) }
        let all = try await device.containers()
        guard let only = all.first else {
            throw CommandFailure("This device is not enrolled. Enrol it: assent device enroll.")
        }
        guard all.count == 1 else {
            let list = all.map { "\($0.id) (\($0.name), \($0.userName))" }.joined(separator: ", ")
            throw CommandFailure("There are several containers; name one with --container: \(list)")
        }
        return only
    }

    /// Runs `work` and closes what was opened.
    static func run(_ client: ClientOptions, _ console: Console, _ work: (SigningProfile) async throws -> Void)
        async throws
    {
        try await Outcome.run(console) {
            let profile = try await open(client)
            do {
                try await work(profile)
            } catch {
                await profile.transport.shutdown()
                throw error
            }
            await profile.transport.shutdown()
        }
    }
}
