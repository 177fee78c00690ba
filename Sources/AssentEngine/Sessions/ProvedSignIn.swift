/// What a user has proved elsewhere than in a journey: on a device, or by a key.
package struct ProvedSignIn: Sendable {
    /// The user as they were then. A lock, another password or another second factor since makes it worthless.
    package let user: User

    /// How strongly the user has proved who they are.
    package let authLevel: Int

    /// The class of the sign-in (`acr`, OpenID Connect Core §2); `nil` when it has none.
    package let acr: String?

    /// How the user has proved it, by names without spaces (`amr`, RFC 8176).
    package let amr: [String]

    /// When, in seconds since 1970.
    package let authTime: Int64

    /// The container that has signed the user in, by its `did`. The session ends with it, and nothing outlives that.
    package let container: String?

    /// A sign-in.
    package init(
        user: User, authLevel: Int, acr: String? = nil, amr: [String], authTime: Int64, container: String? = nil
    ) {
        self.container = container
        self.user = user
        self.authLevel = authLevel
        self.acr = acr
        self.amr = amr
        self.authTime = authTime
    }
}
