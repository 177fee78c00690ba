import AssentCore
import AssentSigningProtocol
import Logging

/// What could not be sent before: deletions, confirmations, decisions and renewals.
struct SendQueue: Sendable {
    let parts: DeviceParts

    /// One thing to send.
    private enum Item {
        case removal
        case deletion
        case confirmation(PasswordSlot)
        case decision(DecisionRecord)
        case renewal
    }

    /// For how many seconds after the end of its transaction a decision is kept that the server refuses because it does
    /// not know the container: no signed time comes for that any more, and the device's own clock may be wrong.
    private static let patience = 86_400

    /// Sends everything. Nothing of it keeps the rest from being sent.
    ///
    /// - Throws: what the first call that failed threw, after all were tried.
    func send(
        onReceipt: (SigningReceipt) async -> Void, onRefusal: (SigningError) async -> Void
    ) async throws {
        var errors: [any Error] = []
        for record in try await parts.records.all() {
            let known = errors.count
            do {
                for item in try await items(for: record) {
                    do {
                        switch item {
                        case .removal: try await parts.containers.removeAll(of: record)
                        case .deletion: try await parts.containers.sendDeletion(record.id)
                        case .confirmation(let slot): try await parts.passwords.sendConfirmation(record.id, slot)
                        case .renewal: _ = try await parts.renewals.finish(record.id)
                        case .decision(let decision): try await onReceipt(send(decision, of: record.id))
                        }
                    } catch {
                        errors.append(error)
                        if let refusal = error as? SigningError, refusal.transactionID != nil {
                            await onRefusal(refusal)
                        }
                    }
                }
            } catch {
                errors.append(error)
            }
            guard errors.count > known else { continue }
            parts.logger.info(
                "what was queued could not be sent", metadata: ["container": "\(record.did?.text ?? "-")"])
        }
        if let first = errors.first { throw first }
    }

    private func items(for record: ContainerRecord) async throws -> [Item] {
        if record.ended { return [.removal] }
        if record.deletion != nil { return [.deletion] }
        var items = record.slots.filter { $0.confirmation != nil }.map { Item.confirmation($0.slot) }
        if let did = record.did { items += try await parts.records.decisions(of: did).map(Item.decision) }
        if try await parts.records.renewal(of: record.id) != nil { items.append(.renewal) }
        return items
    }

    /// Sends a decision, also after its transaction has expired: the server gives the receipt of one that it took
    /// whatever the time is.
    private func send(_ decision: DecisionRecord, of container: SigningID) async throws -> SigningReceipt {
        do {
            return try await Decisions(parts: parts).send(decision, parts.records.load(container), by: .current)
        } catch var error as SigningError where error.code.endsTransaction || error.code == .unknownContainer {
            // Nobody signs a refusal: what may still be open is sent again.
            let record = try await parts.records.load(container)
            var isOver = decision.expires < record.serverTime
            if !isOver, error.code == .unknownContainer {
                isOver = decision.expires < Int(parts.clock.epochSeconds) - Self.patience
            } else if !isOver {
                let list = try? await Documents(parts: parts).list(of: container, wait: 0, password: nil)
                isOver = list.map { (try? $0.mayHave(decision.txn)) == false } ?? false
            }
            guard isOver else { throw error }
            try await parts.records.remove(decision)
            error.transactionID = decision.txn.text
            throw error
        }
    }
}

extension TransactionList {
    /// Whether a transaction is open by this list, or the list does not have all that are.
    fileprivate func mayHave(_ txn: SigningID) throws(SigningProtocolError) -> Bool {
        if more { return true }
        for ticket in tickets {
            if try UnverifiedMessage<Ticket>(ticket).content.txn == txn { return true }
        }
        return false
    }
}
