import Assent
import AssentConfiguration
import AssentCore
import Foundation

extension ClientFile {
    /// How this installation registers as a client of its own: `registration` in the file. `client.id` is then the
    /// app's id.
    struct Registration: Sendable, Equatable {
        /// The name in the operator's list of installations; none when it is `nil`, not even the machine's.
        var clientName: String?

        /// The app's version, which the server may have to know; none when it is `nil`.
        var softwareVersion: String?

        /// What this machine is called in the same list; none when it is `nil`.
        var deviceName: String?

        /// The file with the initial access token, which other users may neither read nor change. It may be removed
        /// once the installation has registered.
        var initialAccessTokenFile: String?

        /// The file with the software statement, which may be removed likewise. Others may read it: every copy of an
        /// app can have the same.
        var softwareStatementFile: String?

        /// What access the installation asks for in its own name, beside the scopes of its users.
        var deviceScopes: [String] = []

        /// Whether sessions belong to the installation's key, and users whose containers such sessions have enrolled
        /// sign in here with a PIN or implicitly.
        var remembersUsers = false

        /// What access an implicit login asks for.
        var implicitScopes: [String] = []

        /// The most bytes of a software statement.
        private static let statementLimit = 8 << 10

        /// The SDK's configuration.
        ///
        /// - Parameters:
        ///   - keys: what guards the vault.
        ///   - token: the initial access token, in place of the one in the file.
        /// - Returns: the configuration.
        /// - Throws: ``CommandFailure`` when a file is there and cannot be read, or other users may read the token.
        func configuration(keys: any KeyProvider, token: Secret? = nil) throws -> RegistrationConfiguration {
            var configuration = RegistrationConfiguration(
                keys: keys,
                initialAccessToken: try token ?? Self.secret(initialAccessTokenFile, Self.tokenName, isPrivate: true),
                softwareStatement: try Self.secret(softwareStatementFile, Self.statementName, Self.statementLimit),
                clientName: clientName)
            configuration.softwareVersion = softwareVersion
            configuration.deviceName = deviceName
            configuration.deviceScopes = deviceScopes
            return configuration
        }

        static let tokenName = "the initial access token"
        private static let statementName = "the software statement"

        /// What is in a file; `nil` without a file: an installation that has registered does not need it, and the
        /// server says so to one that does.
        private static func secret(
            _ file: String?, _ what: String, _ limit: Int = SecretSource.limit, isPrivate: Bool = false
        ) throws -> Secret? {
            guard let file, FileManager.default.fileExists(atPath: file) else { return nil }
            return try SecretSource.read(file: file, descriptor: nil, what, limit: limit, isPrivate: isPrivate)
        }

        /// The same, with files that are found from any directory.
        func absolute(beside path: String) -> Registration {
            func absolute(_ file: String?) -> String? {
                guard let file, !file.hasPrefix("/") else { return file }
                return URL(fileURLWithPath: path).deletingLastPathComponent().appendingPathComponent(file)
                    .standardizedFileURL.path
            }
            var registration = self
            registration.initialAccessTokenFile = absolute(initialAccessTokenFile)
            registration.softwareStatementFile = absolute(softwareStatementFile)
            return registration
        }

        /// The lines of the client's file.
        var yaml: [String] {
            var members = [
                ("clientName", clientName), ("softwareVersion", softwareVersion), ("deviceName", deviceName),
                ("initialAccessTokenFile", initialAccessTokenFile),
                ("softwareStatementFile", softwareStatementFile),
            ].compactMap { name, value in value.map { "\(name): \(ClientFile.quoted($0))" } }
            for (name, scopes) in [("deviceScopes", deviceScopes), ("implicitScopes", implicitScopes)]
            where !scopes.isEmpty {
                members.append("\(name): [\(scopes.map(ClientFile.quoted).joined(separator: ", "))]")
            }
            if remembersUsers { members.append("remembersUsers: true") }
            return [
                "# This installation registers as a client of its own; client.id is the app's.",
                "registration: {\(members.joined(separator: ", "))}",
            ]
        }
    }

    static func registration(_ reader: SettingsReader<Void>) throws -> Registration? {
        guard let own = reader.optionalMapping("registration") else { return nil }
        guard !reader.has("clientKey") else {
            throw reader.issue(
                "registration", "makes a key of its own: leave clientKey out, or leave registration out")
        }
        let registration = Registration(
            clientName: own.optionalString("clientName"), softwareVersion: own.optionalString("softwareVersion"),
            deviceName: own.optionalString("deviceName"),
            initialAccessTokenFile: own.optionalString("initialAccessTokenFile"),
            softwareStatementFile: own.optionalString("softwareStatementFile"),
            deviceScopes: own.strings("deviceScopes"), remembersUsers: own.bool("remembersUsers", default: false),
            implicitScopes: own.strings("implicitScopes"))
        guard registration.remembersUsers || registration.implicitScopes.isEmpty else {
            throw own.issue("implicitScopes", "belongs to 'remembersUsers: true'")
        }
        own.finish()
        return registration
    }
}
