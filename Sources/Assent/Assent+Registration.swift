public import AssentTokens

extension Assent {
    /// This installation's registration at the server; `nil` when the configuration asks for none.
    public var registration: AppRegistration? { tokens.registration }

    /// Signs out, ends this installation's registration at the server, and then forgets it here and destroys its key.
    ///
    /// ```swift
    /// let result = try await assent.unregister()
    /// for undone in result.undone { logger.warning("the server does not know yet: \(undone)") }
    /// ```
    ///
    /// The next sign-in registers anew, if the server lets it.
    ///
    /// - Returns: what the server could not be told of the sign-out.
    /// - Throws: `TokenError`, as `AppRegistration.unregister()`: the user is signed out, and the registration is still
    ///   there. The call may be repeated.
    @discardableResult
    public func unregister() async throws -> SignOutResult {
        let result = await signOut()
        try await tokens.registration?.unregister()
        // Anyone who has signed in meanwhile has a session of the registration that has just ended.
        _ = current.drop(abandoning: true)
        await deviceCookies.removeAll()
        await implicitCookies.removeAll()
        return result
    }
}
