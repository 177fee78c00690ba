import AssentCore
package import AssentStore

/// Whether a master key is the one that its database was made with. A value sealed under the key is kept in the
/// database: with another key a server would start, and then fail at every secret.
package struct MasterKeyCheck: Sendable {
    private let context: EngineContext

    private static let name = "master-key"
    private static let content = Secret("assent")

    /// A check of a context's key.
    package init(_ context: EngineContext) {
        self.context = context
    }

    /// The statement that reads the check value of a database, as `value`.
    package static let reading = SQLStatement.read("SELECT value FROM server_state WHERE name = \(name)")

    /// Whether the key is the database's. A database that no server has used yet gets this key; of several servers that
    /// start at once, one decides.
    ///
    /// - Throws: ``StoreError`` when the database cannot serve.
    package func isRight() async throws -> Bool {
        let sealed = try context.masterKey.seal(Self.content, for: .check, context: Self.name)
        let results = try await context.database.run([
            SQLStatement(
                "INSERT INTO server_state (name, value) VALUES (\(Self.name), \(sealed)) ON CONFLICT DO NOTHING"),
            Self.reading,
        ])
        guard let row = results.last?.first else { return false }
        return Self.opens(row, with: context.masterKey)
    }

    /// Whether a row of ``reading`` was sealed under `key`.
    package static func opens(_ row: SQLRow, with key: MasterKey) -> Bool {
        guard let value = try? row.blob("value") else { return false }
        return (try? key.open(value, for: .check, context: name)) == content
    }
}
