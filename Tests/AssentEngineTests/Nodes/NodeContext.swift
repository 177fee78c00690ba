import AssentCore
import AssentStore

@testable import AssentEngine

extension EngineContext {
    /// What another node of the same server works with, on this database, which may be the same one watched or failing.
    func anotherNode(on database: any SQLDatabase) -> EngineContext {
        EngineContext(database: database, clock: clock, random: SystemRandom(), masterKey: masterKey, logger: logger)
    }
}
