import AssentStore

/// For what a session was made, which says what it opens (``Door``).
package enum SessionKind: String, Sendable, Hashable, CaseIterable {
    /// For a user who has signed in.
    case user
    /// For a user who is only remembered: their device has proved its key, and they have proved nothing.
    case implicit
    /// For a user who has signed in at an app that keeps nothing of it.
    case stateless
}

extension SQLRow {
    /// The kind of a session.
    ///
    /// - Throws: ``StoreError`` with code `corrupt` for a kind that this version does not know: it might open less than
    ///   every kind that is known.
    func sessionKind(_ column: String) throws -> SessionKind {
        guard let kind = SessionKind(rawValue: try text(column)) else {
            throw StoreError(.corrupt, "a session is of a kind that this version does not know")
        }
        return kind
    }
}
