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

    /// The access token.
    public static let accessToken = ResourceAccess(token: true, session: false)

    /// AM's session.
    public static let session = ResourceAccess(token: false, session: true)

    /// The access token and AM's session.
    public static let both = ResourceAccess(token: true, session: true)

    /// The same for an origin that asks AM itself and passes its decision on in the body.
    ///
    /// - Parameter transactionInHeader: whether it reads a transaction's id from `X-TxID`.
    /// - Returns: the access with decisions accepted.
    public func acceptingDecisions(transactionInHeader: Bool = true) -> ResourceAccess {
        ResourceAccess(
            token: sendsAccessToken, session: sendsSession, decisions: true, transactionInHeader: transactionInHeader)
    }

    private init(token: Bool, session: Bool, decisions: Bool = false, transactionInHeader: Bool = false) {
        sendsAccessToken = token
        sendsSession = session
        acceptsDecisions = decisions
        sendsTransactionInHeader = transactionInHeader
    }
}
