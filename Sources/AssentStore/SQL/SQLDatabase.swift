/// A database that runs statements. It has no closures: SQLite's and PostgreSQL's libraries have opposite shapes.
///
/// ``DatabaseLocation/open(schema:clock:)`` makes one.
package protocol SQLDatabase: Sendable {
    /// Runs one statement and returns its rows.
    ///
    /// - Throws: ``StoreError``; with code `unexpectedCount`, nothing has changed.
    func run(_ statement: SQLStatement) async throws -> [SQLRow]

    /// Runs statements as one transaction and returns the rows of each.
    ///
    /// - Throws: ``StoreError``; nothing has changed, unless its code is `outcomeUnknown`. With code `unexpectedCount`,
    ///   ``StoreError/statement`` says which statement did not affect what it must.
    func run(_ statements: [SQLStatement]) async throws -> [[SQLRow]]

    /// Finds out whether the database answers.
    ///
    /// - Throws: ``StoreError`` with the reason why it does not.
    func checkHealth() async throws

    /// The time by the clock of the database's server, in milliseconds since 1970; `nil` for a database that has no
    /// clock but this machine's.
    ///
    /// - Throws: ``StoreError`` when the server cannot be asked.
    func time() async throws -> Int64?

    /// What an operator has to know although everything goes on.
    var notices: DatabaseNotices { get }

    /// Whether several nodes may use it at the same time, and it has the table of spent proofs that they share.
    var isShared: Bool { get }

    /// Ends all connections. Calls that come later throw ``StoreError`` with code `unavailable`.
    ///
    /// - Throws: ``StoreError`` when the database is still in use.
    func close() async throws

    /// Lets ``close()`` wait no longer for calls that are not answered yet.
    func abandon()
}

extension SQLDatabase {
    /// There is no clock but this machine's.
    package func time() async throws -> Int64? { nil }

    /// One process uses it.
    package var isShared: Bool { false }

    /// No call takes long.
    package func abandon() {}

    /// There is nothing.
    package var notices: DatabaseNotices { DatabaseNotices() }
}

/// What an operator has to know of a database that serves.
package struct DatabaseNotices: Sendable, Hashable {
    /// How many further servers accept writes, and lack what the one has that is used.
    package var serversBehind = 0

    /// The latest generation that began without changes that were acknowledged; `nil` if none has.
    package var lossyGeneration: Int64?

    /// Nothing unless it is said.
    package init(serversBehind: Int = 0, lossyGeneration: Int64? = nil) {
        self.serversBehind = serversBehind
        self.lossyGeneration = lossyGeneration
    }
}
