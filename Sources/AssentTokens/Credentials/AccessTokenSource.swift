public import AssentCore

/// Where the access tokens of calls come from: the user, the installation, or nowhere.
///
/// ``AuthenticatingTransport`` asks one source for each call, so that proofs, the one repetition after a refusal and
/// what is known of a call's outcome are the same for every source. ``TokenManager`` is the user's source,
/// ``ImplicitTokens`` a remembered user's, ``DeviceTokens`` the installation's, ``NoTokens`` nobody's.
public protocol AccessTokenSource: Sendable {
    /// Whose calls it has tokens for. An origin that gets no credential of that kind gets none of its tokens.
    var kind: CallKind { get }

    /// A good token, as far as one can know.
    ///
    /// - Parameter rejected: a token that a resource has just refused; it is not returned again.
    /// - Returns: the token; `nil` when calls go without one, on purpose.
    /// - Throws: ``TokenError`` when a token is needed and cannot be had; `CancellationError`.
    func token(rejecting rejected: Secret?) async throws -> AccessToken?

    /// Who has the user's session, which goes along where an origin gets it and is stepped up when the server wants
    /// more; `nil` for a source without such a session.
    var user: TokenManager? { get }
}

extension AccessTokenSource {
    /// The manager itself; of any other source there is no session.
    public var user: TokenManager? { self as? TokenManager }

    /// The sign-in of the user; another one as soon as somebody signs out, or in.
    package var signIn: SignInMark? { user?.storage.signIn }
}

/// An access token and, where it is bound to a key, what makes its proofs.
public struct AccessToken: Sendable {
    /// The token.
    public let value: Secret

    /// The key that the token is bound to, and the maker of proofs that knows the resources' nonces.
    struct Binding: Sendable {
        let key: ProofKey
        let proofs: ProofMaker
    }

    let binding: Binding?

    /// Whose it is; `nil` where nobody else can come in that one's place.
    let owner: TokenOwner?

    /// A bearer token (RFC 6750), which is not bound to a key.
    ///
    /// - Parameter bearer: the token.
    public init(bearer: Secret) { self.init(bearer, binding: nil) }

    init(_ value: Secret, binding: Binding?, owner: TokenOwner? = nil) {
        self.value = value
        self.binding = binding
        self.owner = owner
    }
}

/// The source of calls that are nobody's: they go out without a token and without a session.
public struct NoTokens: AccessTokenSource, BeginsAnywhere {
    /// The source.
    public init() {}

    /// Calls of nobody.
    public var kind: CallKind { .nobody }

    /// No token, whatever was refused.
    public func token(rejecting rejected: Secret?) async throws -> AccessToken? { nil }
}

extension TokenManager: AccessTokenSource, BeginsAnywhere {
    /// The user's calls.
    public nonisolated var kind: CallKind { .user }

    /// The user's token. See ``tokens(rejecting:)``.
    public nonisolated func token(rejecting rejected: Secret?) async throws -> AccessToken? {
        let before = storage.signIn
        let set = try await tokens(rejecting: rejected)
        // Where somebody has signed in meanwhile, nobody knows whose they are.
        let owner = TokenOwner.signedIn(
            storage.signIn === before ? before : SignInMark(), set.idToken, session: set.sessionFingerprint)
        guard let binding = set.key else { return AccessToken(set.accessToken, binding: nil, owner: owner) }
        return AccessToken(
            set.accessToken, binding: .init(key: try await proofs.keys.key(of: binding), proofs: proofs), owner: owner)
    }
}
