import AssentStore

/// What is true of users in SQL, written once.
enum UserSQL {
    /// That the user of this table or alias is an administrator, whether active or not.
    static func isAdministrator(_ table: SQL) -> SQL { "' ' || \(table).roles || ' ' LIKE '% admin %'" }

    /// That a change to the user with that id leaves an administrator: another one is active, or this one is none.
    static func leavesAdministrator(without userID: String) -> SQL {
        """
        (EXISTS (SELECT 1 FROM users o WHERE o.id <> \(userID) AND o.active = 1 AND \(isAdministrator("o")))
            OR NOT (\(isAdministrator("users"))))
        """
    }

    /// The columns of ``User/init(_:id:)`` from the table or alias `u`, besides the id.
    static let columns: SQL = "u.realm, u.username, u.active, u.roles, u.attributes"
}
