import AssentCore

/// One sign-in of a user, or what stands in for it while another one takes its place. It equals itself alone.
package final class SignInMark: Sendable {}

/// Whose a token is, as far as this process knows: to tell when somebody else has come in that one's place.
enum TokenOwner: Sendable {
    /// That of a sign-in, with what the server says of its user, if it says it, and the fingerprint of the session that
    /// the token was got with, if it was AM's.
    case signedIn(SignInMark, IDToken?, session: String?)
    /// A remembered user, by id.
    case remembered(String)

    /// Whether both are one user. A new sign-in is taken for another user's, unless the server says that it is not.
    func isSame(as other: TokenOwner) -> Bool {
        switch (self, other) {
        case (.signedIn(let mark, let idToken, _), .signedIn(let otherMark, let otherToken, _)):
            guard let idToken, let otherToken else { return mark === otherMark }
            return idToken.subject.utf8.elementsEqual(otherToken.subject.utf8)
        case (.remembered(let user), .remembered(let otherUser)): return user == otherUser
        case (.signedIn, .remembered), (.remembered, .signedIn): return false
        }
    }

    /// Whether the token was got with this session. Beside another one it may be another user's.
    func has(_ session: Session) -> Bool {
        guard case .signedIn(_, _, let fingerprint) = self else { return true }
        return fingerprint == TokenSet.fingerprint(of: session)
    }
}
