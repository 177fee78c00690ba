/// What credentials open, by the kind of caller. Every door asks here, so that none is open to a kind by
/// oversight: what is not named is closed. The gateway's routes name their kinds in the configuration.
package enum Door: Sendable, Hashable, CaseIterable {
    /// What a user may do to a request at the gateway: an advice, a step-up, a transaction.
    case stepUp
    /// The userinfo endpoint.
    case userInfo
    /// Being the subject of a decision over REST, and asking for one.
    case policySubject
    /// A session that is asked about or ended by its token.
    case ownSession
    /// What belongs to the user: consents, invites, containers, evidence.
    case account
    /// Administration and the audit log. The role is asked for besides.
    case administration
    /// A code for the client whose own the session is.
    case ownCode
    /// More credentials: a refresh, an exchange, a code for another client.
    case renewal
    /// Approving what another program asks for.
    case approval
    /// A browser that is signed in by an app.
    case webLink
    /// The calls of a relying party of transaction signing.
    case relyingParty
    /// Introspection and revocation by the token's client.
    case tokenStatus

    /// The kinds that it is open for.
    package var kinds: Set<CallerKind> {
        switch self {
        case .stepUp, .account, .administration, .renewal, .approval, .webLink: [.user]
        case .userInfo, .policySubject, .ownSession, .ownCode: [.user, .stateless]
        case .relyingParty: [.client]
        case .tokenStatus: Set(CallerKind.allCases)
        }
    }

    /// Whether it is open for a kind.
    package func admits(_ kind: CallerKind) -> Bool { kinds.contains(kind) }

    /// Whether it is open for the holder of a session.
    package func admits(_ session: LiveSession) -> Bool { admits(CallerKind(session.kind)) }
}
