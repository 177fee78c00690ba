import AssentStore

extension Sessions {
    /// The statement that lets the grants of a session follow the one that replaces it in a step-up: the same user has
    /// proved more, so what they have granted is not weaker than before.
    ///
    /// The audit id stays the one that the grant was given in: it is the `sid` of ID tokens that clients have.
    func movingGrants(from old: LiveSession, to new: PreparedSession) -> SQLStatement {
        SQLStatement(
            """
            UPDATE grants SET session_id = \(new.id), auth_level = \(new.authLevel)
            WHERE session_id = \(old.id) AND user_id = \(old.user.id) AND revoked_at IS NULL
            """)
    }

    /// The statements that let a session which has begun in a step-up end with all that the one before ends with: the
    /// container that has signed its user in, and the grant of the link that has begun it. What the new one says of its
    /// user may rest on them. They come before the old one ends, and the container is locked first: who ends it waits,
    /// and then finds the new session.
    func inheriting(from old: LiveSession, to new: PreparedSession) -> [SQLStatement] {
        func of(_ column: SQL) -> SQL { "(SELECT o.\(column) FROM sessions o WHERE o.id = \(old.id))" }
        return [
            SQLStatement("UPDATE signing_containers SET seen_at = seen_at WHERE did = \(of("did"))"),
            new.statement,
            SQLStatement(
                "UPDATE sessions SET did = \(of("did")), grant_id = \(of("grant_id")) WHERE id = \(new.id)",
                expecting: .exactly(1)),
        ]
    }
}
