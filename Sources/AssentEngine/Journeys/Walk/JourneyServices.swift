/// What nodes may use.
package struct JourneyServices: Sendable {
    /// The users.
    package let users: Users

    /// The passwords.
    package let passwords: Passwords

    /// The one-time passwords.
    package let oneTimePasswords: OneTimePasswords

    /// Transaction signing, by realm.
    package let signing: [String: SigningProvider]

    /// Services of a context.
    package init(
        users: Users, passwords: Passwords, oneTimePasswords: OneTimePasswords,
        signing: [String: SigningProvider] = [:]
    ) {
        self.signing = signing
        self.users = users
        self.passwords = passwords
        self.oneTimePasswords = oneTimePasswords
    }
}
