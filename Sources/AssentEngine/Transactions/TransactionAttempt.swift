import AssentCore
import AssentStore
import Logging

/// One request of a client that a gateway elsewhere asks about: by this it has its answer a second time when the first
/// one was lost.
package struct TransactionAttempt: Sendable, Hashable {
    /// The SHA-256 of the gateway's client and its random name of the request.
    let id: String

    /// The SHA-256 of the whole question: the same attempt with anything else is another request.
    let question: String

    /// Both: what the same question alone has.
    var whole: String { "\(id).\(question)" }

    /// For how many seconds the same question has the same answer.
    package static let repetition: Int64 = 30

    /// An attempt of a client, whose question has these bytes.
    package init(_ name: String, client: String, question: [UInt8]) {
        id = Self.id(name, client: client)
        self.question = Base64URL.encode(SHA2.sha256(question))
    }

    /// The attempt that a record names; `nil` when it was taken for none.
    init?(_ row: SQLRow) throws {
        guard let id = try row.optionalText("attempt"), let question = try row.optionalText("question") else {
            return nil
        }
        self.id = id
        self.question = question
    }

    /// ``id``. What is hashed is a list, so that no two pairs are one text.
    static func id(_ name: String, client: String) -> String {
        Base64URL.encode(SHA2.sha256(JSONValue.array([.string(client), .string(name)]).serializedBytes()))
    }
}

extension TransactionRecord {
    /// Whether it was taken for this very question, a moment ago, and nobody has said yet what became of the request.
    func wasTaken(by attempt: TransactionAttempt, at now: Int64) -> Bool {
        guard state == .taken, outcome == .forwarded, self.attempt == attempt, let takenAt else { return false }
        return (takenAt - TransactionSQL.clockTolerance...takenAt + TransactionAttempt.repetition).contains(now)
    }
}

/// How a statement of what became of a request was received.
package enum OutcomeReception: Sendable, Hashable {
    /// It is on record, now or before.
    case recorded
    /// Another outcome is on record, and stays.
    case contradicted
    /// This attempt has no such transaction.
    case unknown
}

extension Transactions {
    /// Whether a transaction was taken for this very question a moment ago.
    ///
    /// - Throws: ``EngineError`` `unavailable`.
    func wasTaken(id: String, by attempt: TransactionAttempt) async throws -> Bool {
        try await context.translatingStoreErrors {
            let now = context.clock.epochSeconds
            return try await find(id, at: now)?.record.wasTaken(by: attempt, at: now) ?? false
        }
    }

    /// Records what became of the request that a gateway elsewhere has taken a transaction for. It may be said again.
    /// `unknown` gives way to what is known later, and nothing else does.
    ///
    /// - Parameters:
    ///   - id: the transaction.
    ///   - attempt: the gateway's name of the request.
    ///   - client: the gateway's client.
    ///   - realm: its realm.
    ///   - outcome: what became of it; `taken` and `forwarded` are not outcomes.
    /// - Returns: how that was received.
    /// - Throws: ``EngineError``: `unavailable`, `outcomeUnknown`; then it is to be said again.
    package func conclude(
        id: String, attempt: String, client: String, realm: String, _ outcome: UpstreamOutcome
    ) async throws -> OutcomeReception {
        guard let columns = outcome.columns else { return .contradicted }
        let attempt = TransactionAttempt.id(attempt, client: client)
        return try await context.translatingStoreErrors {
            let now = context.clock.epochSeconds
            guard let found = try await find(id, at: now)?.record, found.state == .taken,
                found.attempt?.id == attempt, found.binding.realm == realm
            else { return .unknown }
            var note = record(
                .transactionOutcome, columns.outcome == "answered" ? .success : .failed, id: found.id,
                binding: found.binding)
            note.detail["outcome"] = outcome.json
            do {
                _ = try await context.database.run([
                    SQLStatement(
                        TransactionSQL.conclude(
                            found.id, by: attempt, outcome: columns.outcome, status: columns.status, at: now),
                        expecting: .exactly(1)),
                    audit.statement(note),
                ])
                return .recorded
            } catch let error as StoreError where error.code == .unexpectedCount {
                return try await find(id, at: now)?.record.outcome == outcome ? .recorded : .contradicted
            }
        }
    }
}
