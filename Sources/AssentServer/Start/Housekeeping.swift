import AssentCore
import AssentEngine
import Foundation
import Logging
import ServiceLifecycle

/// Looks every minute whether this node may serve, also while it deletes. Deletes what has expired, every few minutes,
/// by one node of several, and records as unknown what became of requests whose outcome was lost. Nothing depends on
/// it: nothing that has expired is valid anyway. Audit records are kept: how long is the operator's decision.
struct Housekeeping: Service {
    let context: EngineContext
    let sessions: Sessions
    let transactions: Transactions
    let providers: [OAuthProvider]
    let authentication: Authentication
    let keys: ServerKeys
    let proofs: SenderProofs
    let payload: PayloadParts
    let watch: NodeWatch
    /// The digest of this node's policies.
    let policies: String
    /// Whether a round of deleting is under way.
    var isCleaning = Locked(false)
    /// The certificate that clients see.
    var certificate: CertificateWatch?

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await attempt("reporting to the other nodes failed; it is tried again", report)
            await attempt("recording what the database has lost failed; it is tried again", watch.recordLoss)
            await withDiscardingTaskGroup { group in
                let pause = TimeInterval(Nodes.interval)
                var time = WaitingTime(pause, from: context.clock.now)
                while !Task.isCancelled {
                    let next = context.clock.now.addingTimeInterval(NodeWatch.interval)
                    do {
                        try await context.clock.sleep(until: min(time.end, next))
                    } catch {
                        return
                    }
                    await look()
                    let now = context.clock.now
                    guard time.isOver(at: now) else { continue }
                    time = WaitingTime(pause, from: now)
                    await attempt("reporting to the other nodes failed; it is tried again", report)
                    guard beginsCleaning() else { continue }
                    // Where there is much to delete this takes longer than the looks may wait.
                    group.addTask {
                        await attempt("cleaning up failed; it is tried again", clean)
                        isCleaning.withLock { $0 = false }
                    }
                }
            }
        }
    }

    private func look() async {
        certificate?.look()
        await watch.look()
        await attempt(
            "telling the database of sessions of payload encryption failed; it is tried again", payload.sessions.look)
        await attempt("recording what the database has lost failed; it is tried again", watch.recordLoss)
    }

    /// Notes that a round of deleting begins, unless the one before has not ended.
    private func beginsCleaning() -> Bool {
        isCleaning.withLock { isCleaning in
            defer { isCleaning = true }
            return !isCleaning
        }
    }

    private func attempt(_ complaint: Logger.Message, _ body: () async throws -> Void) async {
        do {
            try await body()
        } catch {
            context.logger.warning(complaint, metadata: ["error": "\(error)"])
        }
    }

    func report() async throws {
        let others = try await Nodes(context).report(policies: policies)
        guard !others.isEmpty else { return }
        context.logger.warning(
            """
            other nodes of this database decide by other policies, so what is approved at one is refused at the other: \
            give all nodes the same policies, and start them again
            """, metadata: ["nodes": "\(others.sorted().joined(separator: " "))"])
    }

    func clean() async throws {
        await turn { try await AuditLog(context).number() }
        // By a clock that is off everything would have expired, for the nodes whose clocks are right, too.
        guard watch.reason == nil else { return }
        // Longer than the pause, so that the same node goes on; when it has ended, another one follows.
        guard try await Lease("housekeeping", context).take(seconds: Nodes.interval + 30) else { return }
        await turn { _ = try await sessions.purge() }
        await turn { _ = try await transactions.recordLostOutcomes() }
        await turn { _ = try await transactions.purge() }
        await turn { _ = try await authentication.purge() }
        for provider in providers { await turn { _ = try await provider.purge() } }
        await turn { _ = try await keys.purge() }
        await turn { try await proofs.purge() }
        await turn { try await payload.keys.purge() }
        await turn { try await payload.sessions.purge() }
        await turn { try await SigningHousekeeping.purge(context) }
        await turn { try await UsualNetworks(context).purge() }
        await turn { try await AttemptCounter(context).purge(before: context.clock.epochSeconds - 86_400) }
    }

    /// One that fails keeps no other from its turn. A node that is not ready any more goes no further.
    private func turn(_ body: () async throws -> Void) async {
        guard !Task.isCancelled, watch.reason == nil else { return }
        await attempt("cleaning up failed; it is tried again", body)
    }
}
