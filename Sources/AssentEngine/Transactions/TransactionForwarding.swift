import AssentCore
import AssentStore
import Foundation
import Logging

/// What came of forwarding the request of a taken transaction.
package enum ForwardingResult<Reply: Sendable>: Sendable {
    /// It was sent; this is the reply.
    case sent(Reply)
    /// Somebody else has sent it. Nothing was sent now.
    case sentBefore
    /// It could not be recorded that it is about to be sent. Nothing was sent.
    case notRecorded
}

extension Transactions {
    /// Forwards the request of a taken transaction: records that it is about to be sent, sends it once, and records
    /// what became of it.
    ///
    /// All of that is done also when the task is cancelled, for example because the client has gone away: the service
    /// may have acted, and what became of the request must be on record.
    ///
    /// - Parameters:
    ///   - transaction: the transaction that was taken for the request.
    ///   - send: sends the request; called once at most.
    /// - Returns: what came of it.
    package func forwarding<Reply: Sendable>(
        _ transaction: TakenTransaction, send: @escaping @Sendable () async -> (Reply, UpstreamOutcome)
    ) async -> ForwardingResult<Reply> {
        await Task {
            do {
                guard try await recordForwarding(id: transaction.id) else { return .sentBefore }
            } catch {
                // Whether it is recorded is not known. That nothing was sent is.
                Task { await keepRecording(.notForwarded, of: transaction) }
                return .notRecorded
            }
            let (reply, outcome) = await send()
            do {
                try await recordOutcome(id: transaction.id, outcome)
            } catch {
                // The reply does not wait for it.
                Task { await keepRecording(outcome, of: transaction) }
            }
            return .sent(reply)
        }.value
    }

    /// Records what became of the request of a taken transaction, as soon as the database takes it: otherwise the
    /// record would say that it was forwarded, and later that nobody knows what happened.
    func keepRecording(_ outcome: UpstreamOutcome, of transaction: TakenTransaction) async {
        let metadata: Logger.Metadata = ["transaction": "\(transaction.id)", "outcome": "\(outcome)"]
        var pause: Int64 = 1
        while pause < Self.forwardingLimit {
            do {
                try await recordOutcome(id: transaction.id, outcome)
                return
            } catch {
                context.logger.warning("an outcome could not be recorded yet", metadata: metadata)
            }
            let next = context.clock.now.addingTimeInterval(Double(pause))
            guard (try? await context.clock.sleep(until: next)) != nil else { return }
            pause *= 2
        }
        context.logger.error("an outcome could not be recorded", metadata: metadata)
    }

    /// Records that the request of a taken transaction is about to be sent. Returns whether this was the first to say
    /// so: nobody else may send it.
    func recordForwarding(id: String) async throws -> Bool {
        try await context.translatingStoreErrors {
            try await !context.database.run(
                SQLStatement(TransactionSQL.forward(id, at: context.clock.epochSeconds))
            ).isEmpty
        }
    }

    /// Records what became of the request of a taken transaction. What is known is not overwritten; `taken` and
    /// `forwarded` are not outcomes and change nothing.
    func recordOutcome(id: String, _ outcome: UpstreamOutcome) async throws {
        guard let columns = outcome.columns else { return }
        try await context.translatingStoreErrors {
            let now = context.clock.epochSeconds
            let conclude = SQLStatement(
                TransactionSQL.conclude(id, outcome: columns.outcome, status: columns.status, at: now),
                expecting: .exactly(1))
            guard let found = try await find(id, at: now) else { return }
            var note = record(
                .transactionOutcome, columns.outcome == "answered" ? .success : .failed, id: id,
                binding: found.record.binding)
            note.detail["outcome"] = outcome.json
            do {
                _ = try await context.database.run([conclude, audit.statement(note)])
            } catch let error as StoreError where error.code == .unexpectedCount {
                return
            }
        }
    }

    /// Seconds after which nobody is expected to record any more what became of a request that was taken or forwarded:
    /// its server was lost, or the database when the answer came. A service may be silent for much less.
    package static let forwardingLimit: Int64 = 600

    /// How many lost outcomes are recorded in one go.
    private static let lostOutcomes = 500

    /// Records what is known of requests that were taken or forwarded ``forwardingLimit`` ago, and of which nobody has
    /// said what became of them: `unknown` where it was forwarded, and an outcome that comes later all the same
    /// replaces that; `notForwarded` where the gateway did not come so far, and from then on it cannot. Returns how
    /// many there were.
    package func recordLostOutcomes() async throws -> Int {
        try await context.translatingStoreErrors {
            let now = context.clock.epochSeconds
            let oldest = now - Self.forwardingLimit
            let rows = try await context.database.run(
                .read(TransactionSQL.lost(before: oldest, limit: Self.lostOutcomes)))
            var count = 0
            for lost in try rows.map(TransactionRecord.init) {
                let wasForwarded = lost.outcome == .forwarded
                let conclude =
                    wasForwarded
                    ? TransactionSQL.concludeForwarded(lost.id, before: oldest, at: now)
                    : TransactionSQL.concludeTaken(lost.id, at: now)
                var note = record(.transactionOutcome, .failed, id: lost.id, binding: lost.binding)
                note.detail["outcome"] = (wasForwarded ? UpstreamOutcome.unknown : .notForwarded).json
                do {
                    _ = try await context.database.run([
                        SQLStatement(conclude, expecting: .exactly(1)), audit.statement(note),
                    ])
                } catch let error as StoreError where error.code == .unexpectedCount {
                    continue
                }
                count += 1
                context.logger.warning(
                    wasForwarded
                        ? "a request was forwarded, and what became of it was never recorded: ask its service"
                        : "a transaction was taken, and its request was never forwarded: nothing has happened",
                    metadata: ["transaction": "\(lost.id)"])
            }
            return count
        }
    }

    /// What became of a transaction, for the session that it was made in; `nil` for everybody else and when there is
    /// none.
    package func outcome(id: String, session: LiveSession) async throws -> TransactionRecord? {
        try await context.translatingStoreErrors {
            let now = context.clock.epochSeconds
            guard let record = try await find(id, at: now)?.record, record.binding.userID == session.user.id,
                record.binding.sessionID == session.id
            else { return nil }
            return record
        }
    }
}
