/// One stretch of a database's life on one server: it ends when another server takes over, or when a backup is
/// restored.
///
/// The generations of a database are its history. They are rows of the database itself, so a server that went another
/// way lacks the latest ones, and a node that has used one recognises it by its token.
struct DatabaseGeneration: Sendable, Hashable {
    /// From 1 without gaps.
    let number: Int64
    /// Random; what tells it from the same number of another history.
    let token: String
    /// PostgreSQL's system identifier of the server that began it.
    let system: String
    /// That server's timeline, eight hexadecimal digits.
    let timeline: String
    /// Whether an administrator began it after restoring a backup: what is missing in it is missing on purpose.
    let isRestored: Bool
}

/// One run of one database server, from its start, or its recovery from a crash, to its end.
struct ServerIncarnation: Sendable, Hashable {
    /// PostgreSQL's system identifier, which copies of a server share.
    let system: String
    /// The timeline, eight hexadecimal digits. A promotion begins a new one.
    let timeline: String
    /// When it began, in microseconds since 1970.
    let startedAt: Int64
}

/// What a server shows of itself over a connection.
struct ServerSighting: Sendable, Hashable {
    let incarnation: ServerIncarnation
    /// Oldest first. Empty if no node has used the database yet.
    var generations: [DatabaseGeneration]
    /// The numbers that nodes write while they use the database, by node. They only grow.
    var marks: [String: Int64]
    /// Whether the database has the tables of its history.
    var hasTables = true

    /// Whether no node has noticed yet that this server took over from another one, or that the database is new.
    var lacksGeneration: Bool {
        generations.last.map { $0.system != incarnation.system || $0.timeline != incarnation.timeline } ?? true
    }
}
