import AssentCore
import AssentStore
import Logging

/// An endpoint at which clients authenticate.
package enum ClientEndpoint: String, Sendable, Hashable, CaseIterable {
    /// Where codes and refresh tokens are changed for tokens.
    case token = "access_token"
    /// Where tokens are revoked (RFC 7009).
    case revocation = "token/revoke"
    /// Where resource servers ask about tokens (RFC 7662).
    case introspection = "introspect"

    /// What a client is told that has not proved who it is, or not by the `Authorization` field. At the introspection
    /// endpoint it is 401 wherever the credentials stand (RFC 7662 §2.3).
    var failure: OAuthError {
        self == .introspection
            ? OAuthError(.invalidClient, OAuthError.invalidClient.detail, wanted: .clientCredentials) : .invalidClient
    }
}

/// A client that has proved who it is. An assertion that it has proved it by, and a proof of a key that came with it,
/// are spent together with what the request does, so that each is accepted once, by whichever node.
package struct AuthenticatedClient: Sendable {
    /// The client.
    package let client: OAuthClient

    /// What it is told when its assertion was used before.
    let failure: OAuthError

    /// Whether its request has come sealed.
    private let isSealed: Bool

    private let context: EngineContext
    private let realm: String
    private let assertion: ClientAssertion?
    private let state = Locked(State())

    /// What this request has still to spend, and what it has spent.
    private struct State {
        var isAssertionSpent = false
        /// A proof that the next transaction spends.
        var proof: ProofSpending?
    }

    init(
        _ client: OAuthClient, of realm: String, at endpoint: ClientEndpoint, assertion: ClientAssertion? = nil,
        isSealed: Bool, _ context: EngineContext
    ) {
        self.client = client
        self.realm = realm
        self.assertion = assertion
        self.isSealed = isSealed
        self.context = context
        failure = endpoint.failure
    }

    /// Runs statements as one transaction and spends in it what is not spent yet: the assertion, then the proof. Both
    /// come before the statements, so a request that is sent a second time ends nothing.
    ///
    /// - Throws: ``OAuthError`` `invalid_client` when the assertion was used before, ``SenderProofRefusal`` when the
    ///   proof was; nothing has changed then. ``StoreError``.
    func run(_ statements: [SQLStatement]) async throws {
        do {
            try await spend(with: statements)
        } catch let error as StoreError where error.code == .constraint && client.use != nil {
            // The instance has ended in between, and its grants with it.
            throw failure
        }
    }

    /// Whether its code or refresh token is spent without being looked up first, which saves a round trip. Where the
    /// statement that spends finds nothing, the database writes and rolls back. A public client looks up first: without
    /// authentication, anyone could cause that work with tokens that they invent.
    var isServedUnread: Bool { context.database.isShared && client.kind != .public }

    /// Runs statements as ``run(_:)`` does, for a request that was not looked up: their row counts show whether it is
    /// valid.
    ///
    /// - Returns: the rows of the statements. `nil` when something stands against it: then nothing has changed, nothing
    ///   is spent, and the proof has to be claimed again.
    /// - Throws: ``StoreError``. What became of it may be unknown: then nothing more may be tried.
    func attempt(_ statements: [SQLStatement]) async throws -> [[SQLRow]]? {
        let (first, use) = outstanding(state.withLock { $0 })
        do {
            let rows = try await context.database.run(first + use + statements)
            state.withLock { $0 = State(isAssertionSpent: true) }
            return Array(rows.dropFirst(first.count + use.count))
        } catch let error as StoreError where error.code == .unexpectedCount || error.code == .constraint {
            state.withLock { $0.proof = nil }
            return nil
        }
    }

    /// What is spent first, and what is noted with it.
    private func outstanding(_ state: State) -> (first: [SQLStatement], use: [SQLStatement]) {
        let assertion = state.isAssertionSpent ? nil : assertion?.spending(realm: realm)
        let use = assertion == nil ? nil : client.use?.statement(of: client.id, at: context.clock.epochSeconds)
        return ([assertion, state.proof?.statement].compactMap(\.self), [use].compactMap(\.self))
    }

    private func spend(with statements: [SQLStatement]) async throws {
        let state = state.withLock { $0 }
        let (first, use) = outstanding(state)
        guard !first.isEmpty || !statements.isEmpty else { return }
        do {
            _ = try await context.database.run(first + use + statements)
        } catch let error as StoreError where error.code == .unexpectedCount {
            guard let index = error.statement, index < first.count else { throw error }
            if let proof = state.proof, index == first.count - 1 { throw try await proof.refusal() }
            context.logger.notice(
                "a client assertion was refused: it was used before, or may have been before a restore",
                metadata: ["client": "\(client.id)", "realm": "\(realm)"])
            throw failure
        }
        self.state.withLock { $0 = State(isAssertionSpent: true) }
    }

    /// Spends the proof of a request of which everything else is valid: on a database that nodes share together with
    /// what the request does, so that it costs no round trip of its own; else at once, unless the assertion is known to
    /// be spent.
    ///
    /// - Throws: ``OAuthError`` `invalid_client`; ``SenderProofRefusal``; ``StoreError``.
    package func spend(_ proof: CheckedProof, by proofs: SenderProofs) async throws {
        if let spending = proofs.spending(proof) {
            return state.withLock { $0.proof = spending }
        }
        if let assertion, !state.withLock({ $0.isAssertionSpent }) {
            guard try await context.database.run(assertion.finding(realm: realm)).isEmpty else { throw failure }
        }
        try await proofs.claim(proof)
    }

    /// Does what the request asks for, and sees to it that assertion and proof are spent: where nothing was changed,
    /// they are spent alone. A request that is refused spends the assertion as well.
    func answering<Answer: Sendable>(_ body: () async throws -> Answer) async throws -> Answer {
        let answer: Answer
        do {
            let refusal = SealedSession.refusal(
                of: client.id, requiresSealing: client.requiresSealing, isSealed: isSealed)
            if let refusal { throw OAuthError(answering: EngineError(refusal)) }
            answer = try await body()
        } catch let refusal as OAuthError {
            // Nothing was given for the proof, so nobody without a good credential makes a database remember one.
            state.withLock { $0.proof = nil }
            try await run([])
            throw refusal
        }
        try await run([])
        return answer
    }
}
