import AssentCore
import AssentStore

extension EngineContext {
    /// Now, in seconds since 1970, for what all nodes of a database measure by one clock: that of the database's server
    /// or, where one process has the database for itself, its own.
    var sharedTime: SQL {
        isDatabaseTimed && database.isShared
            ? "CAST(extract(epoch FROM clock_timestamp()) AS BIGINT)" : "CAST(\(clock.epochSeconds) AS BIGINT)"
    }
}
