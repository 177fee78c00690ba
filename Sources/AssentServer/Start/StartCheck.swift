import AssentConfiguration
import AssentCore
import AssentStore
import Foundation
import Logging

/// What a start is refused for before it has done anything. `assent serve` stops at the first fault; `assent doctor`
/// says all of them.
struct StartCheck: Sendable {
    /// What is looked at.
    let name: String

    /// Finds what is wrong, without a change.
    let run: @Sendable (ServerConfiguration) throws -> Void

    /// The checks, in the order of a start. Later ones rely on earlier ones.
    static let all = [
        StartCheck(name: "dataDirectory") { try DataDirectory.check($0.dataDirectory) },
        // Before the key, which may be missing together with the database.
        StartCheck(name: "database") { configuration in
            guard configuration.requiresDatabase, !DatabaseAccess.mayExist(configuration) else { return }
            throw ConfigurationError(
                file: DatabaseAccess.path(configuration), line: nil,
                "the database is missing or empty, and requireDatabase refuses to make a new one: mount the disk of "
                    + "the data directory, or restore the database. Where there was none before, remove "
                    + "requireDatabase from the configuration for the first start")
        },
        StartCheck(name: "master key") { configuration in
            _ = try DataDirectory(unchecked: configuration.dataDirectory).existingKey(
                keyFile: configuration.masterKeyFile)
        },
        StartCheck(name: "password file") { configuration in
            guard let file = configuration.postgreSQL?.passwordFile else { return }
            _ = try PrivateFile.read(file, limit: 4096, isNamed: true)
        },
        StartCheck(name: "database file") { configuration in
            guard configuration.postgreSQL == nil else { return }
            try DataDirectory(unchecked: configuration.dataDirectory).checkDatabasePrivate()
        },
        StartCheck(name: "certificate") { configuration in
            guard case .files(let certificate, let privateKey) = configuration.tls else { return }
            _ = try ServerCredentials.files(certificate: certificate, privateKey: privateKey, in: configuration.file)
        },
        StartCheck(name: "outbound") { configuration in
            guard !configuration.calledAddresses.isEmpty else { return }
            do {
                _ = try OutboundCalls(
                    to: configuration.calledAddresses, settings: configuration.outbound, clock: SystemClock(),
                    logger: Logger(label: "assent.outbound") { _ in SwiftLogNoOpLogHandler() })
            } catch {
                throw ConfigurationError(
                    file: configuration.file, line: nil, "outbound.authorities cannot be used: \(error.explanation)")
            }
        },
        StartCheck(name: "listen") { configuration in
            let ports = [configuration.port, configuration.gateway?.port ?? 0]
            for port in ports {
                if let fault = ListenAddress(host: configuration.host, port: port).fault {
                    throw ConfigurationError(file: configuration.file, line: nil, fault)
                }
            }
        },
    ]

    /// Throws what the first check finds that has something against a start.
    ///
    /// - Throws: ``ConfigurationError`` with what to do.
    static func run(_ configuration: ServerConfiguration) throws {
        for check in all { try check.run(configuration) }
    }

    /// What all checks find.
    static func faults(_ configuration: ServerConfiguration) -> [(name: String, text: String)] {
        all.compactMap { check in
            do {
                try check.run(configuration)
                return nil
            } catch {
                return (check.name, error.explanation)
            }
        }
    }
}
