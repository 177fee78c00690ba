public import AssentCore
import AssentJourney
public import AssentTokens

extension Assent {
    /// Somebody who is signed in.
    public struct User: Sendable {
        /// AM's session; `nil` when there are only tokens.
        public let session: Session?

        /// Who it is, as the server signed it; `nil` before there are tokens.
        public let idToken: IDToken?

        let assent: Assent

        /// Good tokens, renewed if they have to be; see ``/AssentTokens/TokenManager/tokens(rejecting:)``.
        public func token() async throws -> TokenSet { try await assent.tokens.tokens() }

        /// New tokens, whether or not the stored ones are good; see ``/AssentTokens/TokenManager/refresh()``.
        @discardableResult
        public func refresh() async throws -> TokenSet { try await assent.tokens.refresh() }

        /// Revokes the tokens. The session stays; see ``/AssentTokens/TokenManager/revoke()``.
        @discardableResult
        public func revoke() async -> SignOutResult { await assent.tokens.revoke() }

        /// Claims about the user; see ``/AssentTokens/TokenManager/userInfo()``.
        public func userinfo() async throws -> JSONObject { try await assent.tokens.userInfo() }

        /// Signs out; see ``Assent/logout()``.
        @discardableResult
        public func logout() async -> SignOutResult { await assent.logout() }
    }
}

/// Ends AM's sessions when the token manager signs out.
struct JourneySessions: SessionEnding {
    let journeys: JourneyClient

    func end(_ session: Session) async throws {
        do {
            try await journeys.logout(session)
        } catch let error as JourneyError {
            // AM says so of a session that has ended.
            if error.status == 401 { return }
            throw TokenError(.signOutRefused, "AM's session is not ended: \(error)", status: error.status)
        } catch let failure as JourneyFailure {
            guard let transport = failure.transportError else {
                throw TokenError(.signOutRefused, "AM's session is not ended: \(failure)", status: failure.status)
            }
            throw TokenError(.transport, failure.description, transportError: transport)
        }
    }
}
