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
        // Before the server is told, which may take long.
        let before = endMade(by: container)
        let deletion: Result<Bool, any Error>
        do { deletion = .success(try await container.delete()) } catch { deletion = .failure(error) }
        // What was under way with the container's keys comes to nothing, also where this was cancelled: the keys may be
        // destroyed all the same.
        for login in [before, endMade(by: container)].compactMap({ $0 }) { _ = await login.tokens.signOut() }
        guard try !deletion.get() else { return nil }
        return ResourceError(
            .generic, .localDeregistration, "The user is removed here, and the server could not be told of it.")
    }

    /// Ends in memory what the container's keys have made.
    ///
    /// - Returns: the login of its user, if that one is signed in.
    private func endMade(by container: SigningContainer) -> MemoryLogin? {
        tokens.implicit.end()
        return current.drop(of: container.userID)
    }
}
