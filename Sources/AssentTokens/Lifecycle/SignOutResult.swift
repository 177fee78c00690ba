public import AssentCore

/// What came of signing out or revoking. Locally nothing is left but what ``undone`` says is kept, unless
/// ``localFailure`` says otherwise; what the server could not be told is named.
public struct SignOutResult: Sendable {
    /// A thing to tell the server.
    public enum Step: String, Hashable, Sendable {
        /// Revoke the tokens.
        case revokeTokens
        /// End the provider's session by the ID token.
        case endProviderSession
        /// End AM's session.
        case endSession
    }

    /// What could not be done, and why.
    public struct Undone: Hashable, Sendable, CustomStringConvertible {
        /// What.
        public let step: Step
        /// Why; never a secret.
        public let reason: String
        /// Whether it is kept, sealed, for ``TokenManager/retrySignOuts()``. What the server has refused for good is
        /// not.
        public let isKept: Bool

        /// A step with the reason why it was not done.
        public init(_ step: Step, _ reason: String, isKept: Bool = false) {
            self.step = step
            self.reason = reason
            self.isKept = isKept
        }

        /// Step and reason.
        public var description: String { "\(step.rawValue): \(reason)" }
    }

    /// The session that was stored and is not any more. It is AM's to end: without a ``SessionEnding`` the manager
    /// cannot.
    public let session: Session?

    /// What the server was not told.
    public let undone: [Undone]

    /// Why something may still be stored here.
    public var localFailure: TokenError?

    /// Whether nothing is left, here or there.
    public var isComplete: Bool { undone.isEmpty && localFailure == nil }
}

/// Ends AM's sessions for a ``TokenManager``, which speaks only OAuth.
public protocol SessionEnding: Sendable {
    /// Ends a session at the server. A session that has ended already is not a failure.
    ///
    /// - Throws: ``TokenError``; when it is transient, the same is tried again later.
    func end(_ session: Session) async throws

    /// Whether the server still accepts a session, which asking does not prolong.
    ///
    /// A resource that gets the session alone may refuse it for reasons of its own, so the server is asked before the
    /// session is removed here.
    ///
    /// - Returns: `nil` when nobody can say now. That is also the answer of what does not implement it.
    func isAccepted(_ session: Session) async -> Bool?
}

extension SessionEnding {
    /// Nobody can say.
    public func isAccepted(_ session: Session) async -> Bool? { nil }
}
