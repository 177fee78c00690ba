import AssentCore
import AssentSigningProtocol
import Logging

/// What could not be sent before: deletions, confirmations, decisions and renewals.
struct SendQueue: Sendable {
    let parts: DeviceParts

    /// One thing to send.
    private enum Item {
        case removal(ContainerRecord)
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
                        if let receipt = try await send(item, record) { await onReceipt(receipt) }
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
        if record.ended { return [.removal(record)] }
        if record.deletion != nil { return [.deletion] }
        var items = record.slots.filter { $0.confirmation != nil }.map { Item.confirmation($0.slot) }
        if let did = record.did { items += try await parts.records.decisions(of: did).map(Item.decision) }
        if try await parts.records.renewal(of: record.id) != nil { items.append(.renewal) }
        return items
    }

    private func send(_ item: Item, _ record: ContainerRecord) async throws -> SigningReceipt? {
        switch item {
        case .removal(let record): try await parts.containers.removeAll(of: record)
        case .deletion: try await parts.containers.sendDeletion(record.id)
        case .confirmation(let slot): try await parts.passwords.sendConfirmation(record.id, slot)
        case .renewal: _ = try await parts.renewals.finish(record.id)
        case .decision(let decision): return try await send(decision, of: record.id)
        }
        return nil
    }

    /// Sends a decision, also after its transaction has expired: the server gives the receipt of one that it took
    /// whatever the time is.
    private func send(_ decision: DecisionRecord, of container: SigningID) async throws -> SigningReceipt {
        do {
            return try await Decisions(parts: parts).send(decision, parts.records.load(container), by: .current)
        } catch var error as SigningError where error.code.endsTransaction || error.code == .unknownContainer {
            // Nobody signs a refusal: what may still be open is sent again.
            if error.code == .unknownContainer {
                guard try await isLongOver(decision, in: container) else { throw error }
            } else {
                guard try await isOver(decision, in: container) else { throw error }
            }
            try await parts.records.remove(decision)
            error.transactionID = decision.txn.text
            throw error
        }
    }

    /// Whether a transaction has ended by the server's latest signed time, or long ago by the device's own clock.
    private func isLongOver(_ decision: DecisionRecord, in container: SigningID) async throws -> Bool {
        let record = try await parts.records.load(container)
        return decision.expires < record.serverTime
            || decision.expires < Int(parts.clock.epochSeconds) - Self.patience
    }

    /// Whether the server has signed that a transaction is not open: by the time, or by the list of what is.
    private func isOver(_ decision: DecisionRecord, in container: SigningID) async throws -> Bool {
        let record = try await parts.records.load(container)
        if decision.expires < record.serverTime { return true }
        let list = try? await Documents(parts: parts).list(of: container, wait: 0, password: nil)
        guard let list else { return false }
        return (try? list.mayHave(decision.txn)) == false
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
