public import AssentCore

/// What came of signing out. Locally nothing is left unless ``localFailure`` says otherwise; what the server could not be
/// told is named.
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

        /// A step with the reason why it was not done.
        public init(_ step: Step, _ reason: String) {
            self.step = step
            self.reason = reason
        }

        /// Step and reason.
        public var description: String { "\(step.rawValue): \(reason)" }
    }

    /// The session that was stored and is not any more. Ending it at AM is up to whoever speaks AM's protocol.
    public let session: Session?

    /// What the server was not told.
    public var undone: [Undone]

    /// Why something may still be stored here.
    public var localFailure: TokenError?

    /// Whether nothing is left, here or there.
    public var isComplete: Bool { undone.isEmpty && localFailure == nil }
}
