/// Proves to AM's server that a journey, or a request with a session, comes from the app that has the session's key
/// (DPoP, RFC 9449). Journeys know no keys: what knows them implements this.
package protocol SessionProver: Sendable {
    /// Sends a call with the proof that belongs to it, and once more with another proof when the server wants a nonce.
    /// Without a key the call goes out as it is.
    ///
    /// - Parameters:
    ///   - call: what is sent; its content can be read again.
    ///   - purpose: what it is for, and the session whose token it carries.
    ///   - transport: carries the call.
    /// - Returns: the last reply.
    /// - Throws: ``SessionProofError`` when no proof can be made: nothing was sent. What `transport` throws.
    func send(_ call: HTTPCall, for purpose: ProofPurpose, over transport: any HTTPTransport) async throws -> HTTPReply
}

/// What a call to AM's server is for, which decides what is proved.
package enum ProofPurpose: Equatable, Sendable {
    /// A request of a journey, and the session that goes along. A session without a key may have ended long ago, and
    /// the journey then gives a new one: the request proves the key that the new one will belong to.
    case journey(Session?)

    /// A question about a session, or its end. A session without a key needs no proof.
    case session(Session)

    /// The session whose token the call carries; `nil` in a journey that begins without one.
    package var session: Session? {
        switch self {
        case .journey(let session): session
        case .session(let session): session
        }
    }
}

/// Why no proof of a session's key can be made.
package struct SessionProofError: Error, Sendable {
    /// Whether the key is gone for good, so that the user must sign in again.
    package let isLost: Bool

    /// What happened, in full sentences; never a secret.
    package let detail: String

    /// What to do about it.
    package let suggestion: String?

    /// An error.
    package init(isLost: Bool, detail: String, suggestion: String?) {
        self.isLost = isLost
        self.detail = detail
        self.suggestion = suggestion
    }
}
