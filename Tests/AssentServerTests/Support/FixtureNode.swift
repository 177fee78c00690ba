import AssentCore
import AssentStore
import Foundation
import StoreTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

/// What makes a server of these tests use a PostgreSQL database, alone or together with others.
struct FixtureNode: Sendable {
    var database: PostgreSQLConfiguration
    /// All nodes of a database have one key.
    let keyFile: String
    /// Whether other nodes have the same addresses.
    var isOneOfSeveral = true
    /// The users that another node has made.
    var accounts: [GeneratedAccount] = []

    /// A server that is alone on a database of its own, if the tests run on PostgreSQL.
    static func alone(in directory: String) async throws -> FixtureNode? {
        guard case .postgresql(let database) = try await TestDatabase.location(directory) else { return nil }
        return FixtureNode(database: database, keyFile: directory + "/key", isOneOfSeveral: false)
    }

    /// A configuration's text as this node needs it. Makes the key when it is missing.
    func adapted(_ text: String) throws -> String {
        if !FileManager.default.fileExists(atPath: keyFile) {
            let key = Data(SystemRandom().bytes(MasterKey.byteCount)).base64EncodedString()
            try PrivateFile.create(keyFile, Array((key + "\n").utf8))
        }
        let host = try #require(database.hosts.first)
        var text = text
        if isOneOfSeveral {
            text = text.replacing("https://localhost:0/am", with: "https://localhost:8443/am")
                .replacing("publicURL: https://localhost:0\n", with: "publicURL: https://localhost:9443\n")
        }
        return text + """

            masterKeyFile: \(keyFile)
            database:
              postgresql:
                hosts: ["\(host.name)"]
                database: \(database.database)
                user: \(database.user)
                connections: \(database.connections)
            """
    }
}
