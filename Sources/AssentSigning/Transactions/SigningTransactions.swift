import AssentCore
import AssentSigningProtocol
import Foundation

/// The open transactions of a container as they come, each once.
///
/// While the user has not typed the digits of an enrolment, it waits for that first.
///
/// An error ends one step, not the sequence: an iterator that is asked again goes on after it. A transaction that could
/// not be fetched because of an error that passes (`isTransient`) then comes again. One that was decided or ended
/// before it could be fetched is left out.
public struct SigningTransactions: AsyncSequence, Sendable {
    /// A transaction.
    public typealias Element = SigningTransaction

    let container: SigningContainer
    let password: Secret?
    let onEvent: (@Sendable (SigningEvent) async -> Void)?

    /// Waits for transactions.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(container: container, password: password, onEvent: onEvent)
    }

    /// Waits for transactions, one after the other.
    public struct AsyncIterator: AsyncIteratorProtocol {
        /// Seconds after which it is said again that keys are due.
        private static let reminder: TimeInterval = 3600

        private var container: SigningContainer
        private let password: Secret?
        private let onEvent: (@Sendable (SigningEvent) async -> Void)?
        private var waiting: [String] = []
        private var seen: Set<String> = []
        private var saidDue: Date?

        fileprivate init(
            container: SigningContainer, password: Secret?, onEvent: (@Sendable (SigningEvent) async -> Void)?
        ) {
            self.container = container
            self.password = password
            self.onEvent = onEvent
        }

        /// The next transaction; waits until there is one, or the task is cancelled.
        ///
        /// - Throws: ``SigningError``, with code `enrolment_void` when the enrolment has ended before the digits were
        ///   typed; `CancellationError`.
        public mutating func next() async throws -> SigningTransaction? {
            if container.state == .unconfirmed { container = try await container.activated() }
            while true {
                while let id = waiting.first {
                    do {
                        let transaction = try await container.device.retrieveTransactionInfo(id)
                            .transaction(password: password)
                        waiting.removeFirst()
                        return transaction
                    } catch let error as SigningError where error.code.endsTransaction {
                        waiting.removeFirst()
                    } catch {
                        waiting.removeFirst()
                        // Behind the others: what is wrong may be wrong with this one alone.
                        if Self.passes(error) { waiting.append(id) }
                        throw error
                    }
                }
                try Task.checkCancellation()
                let ids = try await container.transactionIDs(wait: 25, password: password)
                await sayEvents()
                // A ticket may be signed again; its transaction is what was seen.
                let open = ids.compactMap { id in
                    (try? UnverifiedMessage<Ticket>(id)).map { (id: id, txn: $0.content.txn.text) }
                }
                waiting = open.filter { !seen.contains($0.txn) }.map(\.id)
                seen = Set(open.map(\.txn))
                // The server answers at once as long as something is open, and when another one begins to wait for this
                // container: two that ask without a pause would end each other's waiting, again and again.
                if waiting.isEmpty { try await container.device.parts.pause() }
            }
        }

        private static func passes(_ error: any Error) -> Bool {
            error is CancellationError || (error as? any AssentError)?.isTransient == true
        }

        private mutating func sayEvents() async {
            guard let onEvent else { return }
            for notice in await container.notices() { await onEvent(.notice(notice)) }
            let parts = container.device.parts
            let due: Bool?
            do {
                due = try await parts.renewals.due(container.record)
            } catch {
                return
            }
            guard let needsPassword = due else {
                saidDue = nil
                return
            }
            let now = parts.clock.now
            // A clock that went back must not silence it.
            if let saidDue, abs(now.timeIntervalSince(saidDue)) < Self.reminder { return }
            saidDue = now
            await onEvent(.renewalDue(needsPassword: needsPassword))
        }
    }
}
