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
    /// and then finds the new session. It knows the sessions before it, too (``isOne(of:)``).
    func inheriting(from old: LiveSession, to new: PreparedSession) -> [SQLStatement] {
        func of(_ value: SQL) -> SQL { "(SELECT \(value) FROM sessions o WHERE o.id = \(old.id))" }
        return [
            SQLStatement("UPDATE signing_containers SET seen_at = seen_at WHERE did = \(of("o.did"))"),
            new.statement,
            SQLStatement(
                """
                UPDATE sessions SET did = \(of("o.did")), grant_id = \(of("o.grant_id")), earlier = \(of(Self.earlier))
                WHERE id = \(new.id)
                """, expecting: .exactly(1)),
        ]
    }

    /// The audit ids of session `o` and of those before it, with a space between. Their number is bounded: of more than
    /// about a hundred the first are kept, in which a client is most likely to have got its ID token.
    private static let earlier: SQL = """
        CASE WHEN o.earlier IS NULL THEN o.audit_id
            WHEN length(o.earlier) < 4000 THEN o.earlier || ' ' || o.audit_id ELSE o.earlier END
        """

    /// That a session is the one of an audit id, or goes on after it since a step-up: what a client calls by the `sid`
    /// of its ID token. Whether the client's grant is still there makes no difference.
    static func isOne(of auditID: String) -> SQL {
        // An audit id is a UUID, so it has nothing in it that a pattern would read as something else.
        let pattern: String = "%" + auditID + "%"
        return "(audit_id = \(auditID) OR earlier LIKE \(pattern))"
    }
}
