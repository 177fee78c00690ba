public import AssentAuthorization
public import AssentTokens

extension SignOutResult {
    /// The same as an error of resource calls: `localLogout` (10009) where the user is signed out here and the server
    /// could not be told; why something may still be stored here; `nil` where nothing is left anywhere.
    public var error: ResourceError? {
        if let localFailure { return ResourceError(localFailure, .user) }
        guard !undone.isEmpty else { return nil }
        return ResourceError(.generic, .localLogout, undone.map(\.description).joined(separator: "; ") + ".")
    }
}
