import AssentCore

extension AccessSettlement {
    /// Records what became of the request whose transaction an enforcement point took over REST. What is known is not
    /// overwritten, so that a report may be repeated.
    ///
    /// - Parameters:
    ///   - outcome: what became of it.
    ///   - id: the transaction.
    ///   - caller: who took it.
    ///   - realm: the realm of both.
    /// - Returns: whether there is such a transaction: `false` also for one that somebody else took, or nobody.
    /// - Throws: ``EngineError``: `forbidden` to who is no enforcement point of the realm; `unavailable`.
    package func report(
        _ outcome: UpstreamOutcome, of id: String, caller: LiveSession, realm: String
    ) async throws -> Bool {
        guard caller.realm == realm, Self.isEnforcementPoint(caller) else { throw EngineError.forbidden }
        let found = try await context.translatingStoreErrors {
            try await transactions.find(id, at: context.clock.epochSeconds)?.record
        }
        guard let found, found.state == .taken, found.binding.realm == realm,
            found.binding.maker == .caller(caller.user.id)
        else { return false }
        try await transactions.recordOutcome(id: id, outcome)
        return true
    }

    /// Notes that the request of a transaction that was just taken is about to be carried out elsewhere.
    ///
    /// - Throws: ``EngineError`` `unavailable` when that cannot be noted: the caller must not carry it out then.
    func noteForwarding(of transaction: TakenTransaction) async throws {
        let isFirst: Bool
        do {
            isFirst = try await transactions.recordForwarding(id: transaction.id)
        } catch {
            // Whether it is noted is not known. That nothing is carried out is.
            Task { await transactions.keepRecording(.notForwarded, of: transaction) }
            throw error
        }
        guard isFirst else { throw EngineError.unavailable }
    }
}
