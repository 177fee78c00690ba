/// Asks the user for what opens a key: the PIN of a token or TPM, the passphrase of a key file.
///
/// Providers call it when they need it and never keep the answer longer than they must. Where the system itself asks
/// (biometry on Apple's platforms) it is not called.
public protocol UserPresence: Sendable {
    /// The secret that `request` asks for.
    ///
    /// - Throws: ``KeyProviderError`` with code `userAbsent` when the user declines or nobody can be asked,
    ///   `CancellationError` when the task was cancelled meanwhile.
    func secret(for request: PresenceRequest) async throws -> Secret
}

/// What a provider needs of the user, and why.
public struct PresenceRequest: Hashable, Sendable {
    /// What kind of secret it is.
    public enum Kind: String, Hashable, Sendable {
        /// The PIN of a token or the authorization value of a TPM key.
        case pin
        /// A passphrase from which a key is made.
        case passphrase
        /// A passphrase that is being chosen now: an interactive answer should ask for it twice.
        case newPassphrase
        /// A PIN that is being chosen now, likewise.
        case newPIN
    }

    /// What kind of secret it is.
    public let kind: Kind

    /// The key provider that the secret opens, as the user knows it: a token's label, a file's name. It may come from a
    /// device: escape it before it is shown.
    public let providerName: String

    /// How many tries are left, when that is known.
    public let attemptsLeft: Int?

    /// Whether an answer was wrong just now. Somebody who always gives the same answer throws `userAbsent` then.
    public let isRetry: Bool

    /// A request.
    public init(_ kind: Kind, providerName: String, attemptsLeft: Int? = nil, isRetry: Bool = false) {
        self.kind = kind
        self.providerName = providerName
        self.attemptsLeft = attemptsLeft
        self.isRetry = isRetry
    }
}

/// A secret that is known beforehand: from a file, a descriptor, or the app's own screen.
///
/// It never answers again when it was wrong: a wrong PIN must not use up the tries of a token.
public struct KnownSecret: UserPresence {
    private let secret: Secret

    /// Answers every request with `secret`.
    public init(_ secret: Secret) { self.secret = secret }

    /// The secret, unless it was wrong before.
    public func secret(for request: PresenceRequest) async throws -> Secret {
        if request.isRetry {
            throw KeyProviderError(
                .userAbsent, "The secret that was given is wrong, and there is no other. Correct it.")
        }
        return secret
    }
}
