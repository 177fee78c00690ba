/// One sign-in of a user, or what stands in for it while another one takes its place. It equals itself alone.
package final class SignInMark: Sendable {}

/// Whose a token is, as far as this process knows: to tell when somebody else has come in that one's place.
enum TokenOwner: Sendable {
    /// That of a sign-in, with what the server says of its user, if it says it.
    case signedIn(SignInMark, IDToken?)
    /// A remembered user, by id.
    case remembered(String)

    /// Whether both are one user. A new sign-in is taken for another user's, unless the server says that it is not.
    func isSame(as other: TokenOwner) -> Bool {
        switch (self, other) {
        case (.signedIn(let mark, let idToken), .signedIn(let otherMark, let otherToken)):
            guard let idToken, let otherToken else { return mark === otherMark }
            return idToken.subject.utf8.elementsEqual(otherToken.subject.utf8)
        case (.remembered(let user), .remembered(let otherUser)): return user == otherUser
        case (.signedIn, .remembered), (.remembered, .signedIn): return false
        }
    }
}
