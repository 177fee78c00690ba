import AssentCore
import AssentSigning

/// Finds out what became of a decision whose receipt was lost: the same bytes are sent again, and the server gives the
/// receipt that it gave before.
struct LostReceipt<Receipt> {
    /// Whether the device keeps an answer without a receipt: it was signed, and may have reached the server.
    let isKept: () async throws -> Bool

    /// Sends that answer again: its receipt, or nothing while nobody knows. Throws why the server refused it for good.
    let ask: () async throws -> Receipt?

    /// Throws where a receipt that was found is for another answer, which the device has kept from before: what the
    /// user says now was not signed then.
    let check: (Receipt) throws -> Void

    /// Waits between two questions.
    let pause: () async throws -> Void

    private static var questions: Int { 3 }

    /// Has a decision signed and sent. Where the server refuses it for good, it is told here and by no later command.
    ///
    /// - Throws: what `decide`, `ask` and `check` throw, and ``CommandFailure`` with status 3 while nobody knows.
    func receipt(of transaction: String, _ decide: () async throws -> Receipt) async throws -> Receipt {
        do {
            return try await decide()
        } catch let error as SigningError where error.isTransient {
            guard try await isKept() else { throw error }
            for _ in 0..<Self.questions {
                try await pause()
                if let found = try await ask() { return try checked(found) }
                // The server has said that it takes no decision about this transaction any more.
                guard try await isKept() else { throw error }
            }
            throw CommandFailure(
                "Your answer was signed and sent, and what became of it is unknown: \(error.detail) To find out, run 'assent "
                    + "transactions show --transaction \(transaction)': the same signed answer is sent again, and has "
                    + "its effect once.", status: .unknown)
        } catch let error as SigningError where error.code.endsTransaction {
            // Nobody signs a refusal, so the device keeps the answer. Sent again now, it is dropped, and no later
            // command tells of it a second time.
            if (try? await isKept()) == true, let found = try? await ask() { return try checked(found) }
            throw error
        }
    }

    /// Which of the receipts that came a command is about, the first one where it names no transaction. The others are
    /// heard once as well: they have to be told.
    static func chosen(
        from receipts: [Receipt], named: String?, id: (Receipt) -> String
    ) -> (own: Receipt?, others: [Receipt]) {
        let index = receipts.firstIndex { named == nil || id($0) == named }
        guard let index else { return (nil, receipts) }
        var others = receipts
        let own = others.remove(at: index)
        return (own, others)
    }

    private func checked(_ found: Receipt) throws -> Receipt {
        try check(found)
        return found
    }
}
