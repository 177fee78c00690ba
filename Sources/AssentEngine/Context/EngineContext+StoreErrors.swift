import AssentStore
import Logging

extension EngineContext {
    /// Runs `body` and translates what the store throws into what the engine throws. The log gets the store's own
    /// words.
    func translatingStoreErrors<Result>(_ body: () async throws -> Result) async throws -> Result {
        do {
            return try await body()
        } catch let error as StoreError {
            logger.error("the store failed", metadata: ["code": "\(error.code.rawValue)", "detail": "\(error.detail)"])
            throw EngineError(error)
        }
    }
}
