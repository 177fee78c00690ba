package import AssentCore

/// What a password must be like that somebody gives a user. A hash in the operator's file says nothing about its
/// password.
package struct PasswordRequirements: Sendable, Hashable {
    /// How many characters it has at least.
    package var minLength: Int

    /// Rules; NIST SP 800-63B §5.1.1.2 asks for 8 characters.
    package init(minLength: Int = 8) { self.minLength = minLength }

    /// Why a user cannot have a password, as a sentence; `nil` when they can. Length, commonness and the name are all
    /// that is looked at: rules about kinds of characters make passwords worse.
    package func fault(in password: Secret, of username: String) -> String? {
        let text = password.reveal()
        guard text.count >= minLength else { return "A password has at least \(minLength) characters." }
        let plain = text.lowercased()
        if plain == username.lowercased() { return "A password is not the username." }
        if Self.common.contains(plain) || Set(plain).count == 1 {
            return "This password is among the first that anyone tries. Choose another."
        }
        return nil
    }

    /// The most common passwords of known leaks that have eight characters or more.
    private static let common: Set<String> = [
        "00000000", "0123456789", "0987654321", "101010101010", "11223344", "12121212", "123123123", "12341234",
        "1234512345", "12345678", "123456789", "1234567890", "12345678910", "123456789a", "1234qwer", "1q2w3e4r",
        "1q2w3e4r5t", "1qaz2wsx", "1qazxsw2", "87654321", "987654321", "9876543210", "abc12345", "abcd1234",
        "abcdefgh", "aa123456", "aa12345678", "admin123", "administrator", "asdfasdf", "asdfghjk", "asdfghjkl",
        "baseball", "changeme", "changeme123", "charlie1", "computer", "dearbook", "football", "football1",
        "iloveyou", "iloveyou1", "internet", "jennifer", "letmein1", "letmein123", "liverpool", "liverpool1",
        "michael1", "mypassword", "p@ssw0rd", "p@ssword", "pa55word", "passw0rd", "password", "password!", "password1",
        "password12", "password123", "password1234", "princess", "princess1", "q1w2e3r4", "qazwsxedc", "qwer1234",
        "qwerty12", "qwerty123", "qwerty1234", "qwertyui", "qwertyuiop", "samantha", "secret123", "starwars",
        "sunshine", "sunshine1", "superman", "trustno1", "welcome1", "welcome123", "whatever", "zaq12wsx",
    ]
}
