/// A node's id, which one process at a time may have on a database.
package protocol NodeHold: Sendable {
    /// Whether this process has it. A connection that was lost has lost it: take it again.
    var isHeld: Bool { get }

    /// Gives it up.
    func release()
}

extension DatabaseLocation {
    /// Takes a node's id on the database.
    ///
    /// A SQLite file needs none: the lock of its data directory keeps other processes out.
    ///
    /// - Returns: `nil` when another process has the id.
    /// - Throws: ``StoreError`` when the database cannot be asked.
    package func hold(node: String) async throws -> (any NodeHold)? {
        switch self {
        case .sqlite: return Alone()
        case .postgresql(let configuration):
            #if PostgreSQL && os(Linux)
            return try await PostgreSQLHold.take(node, configuration)
            #else
            return Alone()
            #endif
        }
    }
}

private struct Alone: NodeHold {
    let isHeld = true

    func release() {}
}
