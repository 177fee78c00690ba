/// What an origin gets, and how it says that it wants the user's approval.
public struct ResourceAccess: Hashable, Sendable {
    /// Whether requests carry the access token: as `Authorization: Bearer`, or as `DPoP` with a proof where it is bound
    /// to a key.
    public let sendsAccessToken: Bool

    /// Whether requests carry AM's session: in the cookie, and in a header field of the cookie's name.
    public let sendsSession: Bool

    /// Whether a body that is AM's policy decision counts as an advice. Without this only 401 challenges and 307
    /// redirects do.
    public let acceptsDecisions: Bool

    /// Whether a transaction's id goes back in the header field `X-TxID`, not as `_txid` in the query.
    public let sendsTransactionInHeader: Bool

    /// The kinds of call whose credential it gets.
    public let kinds: Set<CallKind>

    /// The user's access token.
    public static let accessToken = ResourceAccess(token: true, session: false)

    /// The user's AM session.
    public static let session = ResourceAccess(token: false, session: true)

    /// The user's access token and AM session.
    public static let both = ResourceAccess(token: true, session: true)

    /// No credential: the origin is called for nobody.
    public static let nothing = ResourceAccess(token: false, session: false, kinds: [])

    /// The access tokens of these kinds.
    ///
    /// ```swift
    /// configuration.resources = [
    ///     "https://api.bank.example": .accessToken(of: [.user, .device]),
    ///     "https://status.bank.example": .nothing,
    /// ]
    /// ```
    public static func accessToken(of kinds: Set<CallKind>) -> ResourceAccess {
        ResourceAccess(token: true, session: false, kinds: kinds)
    }

    /// The same for an origin that asks AM itself and passes its decision on in the body.
    ///
    /// - Parameter transactionInHeader: whether it reads a transaction's id from `X-TxID`.
    /// - Returns: the access with decisions accepted.
    public func acceptingDecisions(transactionInHeader: Bool = true) -> ResourceAccess {
        ResourceAccess(
            token: sendsAccessToken, session: sendsSession, kinds: kinds, decisions: true,
            transactionInHeader: transactionInHeader)
    }

    /// Whether a call of this kind carries all that it should: one of nobody never carries anything.
    package func allows(_ kind: CallKind) -> Bool {
        switch kind {
        case .user: kinds.contains(.user) && (sendsAccessToken || sendsSession)
        case .implicit: kinds.contains(.implicit) && sendsAccessToken
        case .device: kinds.contains(.device) && sendsAccessToken
        case .nobody: true
        }
    }

    private init(
        token: Bool, session: Bool, kinds: Set<CallKind> = [.user], decisions: Bool = false,
        transactionInHeader: Bool = false
    ) {
        sendsAccessToken = token
        sendsSession = session
        self.kinds = kinds
        acceptsDecisions = decisions
        sendsTransactionInHeader = transactionInHeader
    }
}
