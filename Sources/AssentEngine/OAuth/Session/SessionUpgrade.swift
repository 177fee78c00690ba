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
}
