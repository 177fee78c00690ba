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

/// A client that has proved who it is. An assertion that it has proved it by is spent together with what the request
/// does, so that it is accepted once, by whichever node.
package struct AuthenticatedClient: Sendable {
    /// The client.
    package let client: OAuthClient

    /// What it is told when its assertion was used before.
    let failure: OAuthError

    private let context: EngineContext
    private let realm: String
    private let assertion: ClientAssertion?
    private let spent = Locked(false)

    init(
        _ client: OAuthClient, of realm: String, at endpoint: ClientEndpoint, assertion: ClientAssertion? = nil,
        _ context: EngineContext
    ) {
        self.client = client
        self.realm = realm
        self.assertion = assertion
        self.context = context
        failure = endpoint.failure
    }

    /// Runs statements as one transaction and spends the assertion in it, unless this request has spent it already.
    ///
    /// - Throws: ``OAuthError`` `invalid_client` when the assertion was used before; nothing has changed then.
    ///   ``StoreError``.
    func run(_ statements: [SQLStatement]) async throws {
        do {
            try await spend(with: statements)
        } catch let error as StoreError where error.code == .constraint && client.use != nil {
            // The instance has ended in between, and its grants with it.
            throw failure
        }
    }

    private func spend(with statements: [SQLStatement]) async throws {
        guard let assertion, !spent.withLock({ $0 }) else {
            if !statements.isEmpty { _ = try await context.database.run(statements) }
            return
        }
        let use = client.use?.statement(of: client.id, at: context.clock.epochSeconds)
        do {
            _ = try await context.database.run(
                [assertion.spending(realm: realm)] + [use].compactMap(\.self) + statements)
        } catch let error as StoreError where error.code == .unexpectedCount && error.statement == 0 {
            context.logger.notice(
                "a client assertion was refused: it was used before, or may have been before a restore",
                metadata: ["client": "\(client.id)", "realm": "\(realm)"])
            throw failure
        }
        spent.withLock { $0 = true }
    }

    /// Refuses an assertion that is known to be spent, before the request spends a proof for nothing. Whether it is
    /// still unspent, ``run(_:)`` decides.
    ///
    /// - Throws: ``OAuthError`` `invalid_client`; ``StoreError``.
    package func refuseIfSpent() async throws {
        guard let assertion, !spent.withLock({ $0 }) else { return }
        guard try await context.database.run(assertion.finding(realm: realm)).isEmpty else { throw failure }
    }

    /// Does what the request asks for, and sees to it that the assertion is spent: where nothing was changed, it is
    /// spent alone. A request that is refused spends it as well.
    func answering<Answer: Sendable>(_ body: () async throws -> Answer) async throws -> Answer {
        let answer: Answer
        do {
            answer = try await body()
        } catch let refusal as OAuthError {
            try await run([])
            throw refusal
        }
        try await run([])
        return answer
    }
}
