package import AssentCore
package import AssentStore
package import Logging

/// What every part of the engine stands on: the database, the time, randomness, the master key, the log.
package struct EngineContext: Sendable {
    /// Where everything is kept that a second node would need. A text with U+0000 makes a request malformed.
    package let database: any SQLDatabase

    /// The time.
    package let clock: any WallClock

    /// Randomness for ids, tokens and keys.
    package let random: any RandomSource

    /// Seals what the database must not be able to tell.
    package let masterKey: MasterKey

    /// What tells this server from others on the same database.
    package let node: String

    /// Whether nodes that share the database go by its server's clock for what they measure together. Without it all of
    /// them must have one clock.
    let isDatabaseTimed: Bool

    /// The order of this node's audit records.
    package let auditSeries: AuditSeries

    /// Counts calls where this node has the database for itself.
    let calls = CallCounts()

    /// Hears of installations that end, or get another key, at this node.
    let ended = EndedInstallations()

    /// What the installations have registered that made requests to this node lately.
    let instances = KnownInstances()

    /// From when on the nodes of the database remember spent proofs, as this one has read it last, in milliseconds
    /// since 1970. It may lie ahead, and a nonce from before it is refused.
    let proofsSince = Locked<Int64>(0)

    /// Where the operator reads; never a secret.
    package let logger: Logger

    /// A context. Without a `node` it gets a name of its own.
    package init(
        database: any SQLDatabase, clock: any WallClock, random: any RandomSource, masterKey: MasterKey,
        node: String? = nil, isDatabaseTimed: Bool = false, logger: Logger
    ) {
        self.database = CheckedDatabase(base: database)
        self.clock = clock
        self.random = random
        self.masterKey = masterKey
        self.node = node ?? random.uuid()
        self.isDatabaseTimed = isDatabaseTimed
        auditSeries = AuditSeries(node: self.node)
        self.logger = logger
    }
}
