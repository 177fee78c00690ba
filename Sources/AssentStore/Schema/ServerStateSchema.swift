extension Migration {
    /// What all servers of a database must agree on, by name.
    static let serverState = Migration(
        "server state", ["CREATE TABLE server_state (name TEXT PRIMARY KEY, value BLOB NOT NULL)"])
}
