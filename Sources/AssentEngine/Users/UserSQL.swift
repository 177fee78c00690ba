import AssentStore

/// What is true of users in SQL, written once.
enum UserSQL {
    /// That the user of this table or alias is an administrator, whether active or not.
    static func isAdministrator(_ table: SQL) -> SQL { "' ' || \(table).roles || ' ' LIKE '% admin %'" }

    /// That a change to the user with that id leaves their realm an administrator: another one of it is active, or this
    /// user is not one. Nobody administers a realm from another.
    static func leavesAdministrator(without userID: String) -> SQL {
        """
        (EXISTS (SELECT 1 FROM users o
                WHERE o.id <> \(userID) AND o.realm = users.realm AND o.active = 1 AND \(isAdministrator("o")))
            OR NOT (\(isAdministrator("users"))))
        """
    }

    /// Makes others that do the same wait until this transaction is over; their next statement then sees what it has
    /// done. Two that each take the role from another administrator would else leave none, each relying on the one whom
    /// the other removes.
    static let holdAdministrators: SQL = "UPDATE users SET active = active WHERE \(isAdministrator("users"))"

    /// The columns of ``User/init(_:id:)`` from the table or alias `u`, besides the id.
    static let columns: SQL = "u.realm, u.username, u.active, u.roles, u.attributes, u.epoch"
}
