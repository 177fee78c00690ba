package import AssentCore
import Logging

/// Takes over sessions of journeys that went on from the stored one.
package struct StepUpSessions: Sendable {
    private let tokens: TokenManager

    /// Sessions of the user of `tokens`.
    package init(_ tokens: TokenManager) { self.tokens = tokens }

    /// Takes over the session of a journey that went on from `old`. Where `old` is not the stored session any more,
    /// somebody has signed out meanwhile, or in: then nothing changes here, and the new session is ended as far as
    /// possible.
    ///
    /// - Returns: whether it was taken over.
    /// - Throws: ``TokenError`` as ``TokenManager/install(_:)``.
    package func install(_ session: Session, inPlaceOf old: Session?) async throws -> Bool {
        if try await tokens.install(session, where: { $0?.token == old?.token }) { return true }
        do {
            try await tokens.sessions?.end(session)
        } catch {
            tokens.logger.warning("a session that nobody uses was not ended", metadata: ["reason": "\(error)"])
        }
        return false
    }
}
