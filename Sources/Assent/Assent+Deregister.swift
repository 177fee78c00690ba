public import AssentAuthorization
import AssentSigning
import AssentTokens

extension Assent {
    /// Removes a remembered user from this installation, whether the server can be told or not: the keys of the user's
    /// container are destroyed, a login of the user by a PIN ends, and so does what is implicitly authenticated. Nobody
    /// has to be signed in. The installation's registration stays, and so does what ``signOut()`` ends.
    ///
    /// - Parameter user: the user's id or name.
    /// - Returns: `localDeregistration` (10003) where the server could not be told. The user is removed here all the
    ///   same, and `assent.device.signing.sendQueued()` tells the server later. `nil` where the server knows.
    /// - Throws: `ResourceError` with code `userNotAuthenticated` when nobody with this name is remembered;
    ///   `SigningError` with code `inexplicitContainer` when two containers could be meant; what the store and the key
    ///   provider throw, and then the call may be repeated.
    @discardableResult
    public func deregister(_ user: String) async throws -> ResourceError? {
        let container = try await remembered.container(of: user, .user)
        let isTold = try await container.delete()
        // What was under way with the container's keys comes to nothing.
        tokens.implicit.end()
        if let login = current.drop(of: container.userID) { _ = await login.tokens.signOut() }
        guard !isTold else { return nil }
        return ResourceError(
            .generic, .localDeregistration, "The user is removed here, and the server could not be told of it.")
    }
}
