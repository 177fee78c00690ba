import AssentCore
import AssentEngine
import Foundation
import Logging
import ServiceLifecycle

/// Deletes what has expired, every few minutes. Nothing depends on it: nothing that has expired is valid anyway. Audit
/// records are kept: how long is the operator's decision.
struct Housekeeping: Service {
    let context: EngineContext
    let sessions: Sessions
    let transactions: Transactions
    let providers: [OAuthProvider]
    let authentication: Authentication
    let keys: ServerKeys

    private static let interval: TimeInterval = 300

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do {
                    try await context.clock.sleep(until: context.clock.now.addingTimeInterval(Self.interval))
                } catch {
                    return
                }
                await clean()
            }
        }
    }

    private func clean() async {
        do {
            try await AuditLog(context).number()
            _ = try await sessions.purge()
            _ = try await transactions.purge()
            _ = try await authentication.purge()
            for provider in providers { _ = try await provider.purge() }
            _ = try await keys.purge()
            try await AttemptCounter(context).purge(before: context.clock.epochSeconds - 86_400)
        } catch {
            context.logger.warning("cleaning up failed; it is tried again", metadata: ["error": "\(error)"])
        }
    }
}
