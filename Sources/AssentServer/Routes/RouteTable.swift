import AssentEngine
import AssentSigningProtocol
import HTTPTypes

/// Which routes exist, who may call them, how, and with how much. Each request is held to its row before the route sees
/// it: first the caller, then the method; the body's limit holds when the route reads it.
///
/// Two addresses have no row: the hosted pages (``SignInRoute``), which answer browsers, and the gateway, whose routes
/// are in the configuration.
enum RouteTable {
    /// At the root of the server's address.
    static let root = [
        RouteRule("healthz", methods: nil, caller: .anyone), RouteRule("readyz", methods: nil, caller: .anyone),
    ]

    /// AM's REST interface and ours beside it, below `/json` and the realm. A request that changes something and
    /// carries the session's cookie needs a header field that no browser adds unasked, and `Accept-API-Version` must
    /// name a version that AM has had; both hold for all rows. Pages of the origins that a realm lists may call all of
    /// them.
    static let json = [
        // Journeys find the session themselves: it may be upgraded, replaced, or bound to a transaction.
        RouteRule("authenticate", methods: [.post], caller: .anyone, bodyLimit: 256 << 10),

        // Free of the caller and of the realm: someone who has a session's token may ask about that session and end it.
        // AM's clients name the session in the body, the query, a field or the cookie, and send this to the realm that
        // they are configured for, also about a session of another realm.
        RouteRule("sessions", methods: [.post], caller: .anyone, bodyLimit: 1 << 20, takesAction: true),

        // A session of another realm is refused as AM refuses it. About others may ask somebody with the role `pep` or
        // `admin`; the engine decides that.
        RouteRule(
            "policies", methods: [.post], caller: .session(foreign: .forbidden), bodyLimit: 1 << 20,
            takesAction: true),

        // Ours. The engine asks for the role `admin` and records refusals; for `bootstrap` it asks for the one-time
        // token.
        RouteRule(
            "administration", methods: [.post], caller: .session(foreign: .unauthorized), bodyLimit: 16 << 10,
            takesAction: true),

        // Ours. Everybody sees and takes back what they have agreed to themselves.
        RouteRule(
            "consents", methods: [.get, .post], caller: .session(foreign: .unauthorized), bodyLimit: 16 << 10),

        // Ours. The engine asks for the role `auditor` or `admin` and records that somebody looked.
        RouteRule("audit", methods: [.get], caller: .session(foreign: .unauthorized)),

        RouteRule("serverinfo/*", methods: nil, caller: .anyone),
    ]

    /// OAuth 2.0 and OpenID Connect, below `/oauth2` and the realm, by the paths that AM has. Pages of any origin may
    /// read the answers of endpoints that an app in a browser calls itself: a browser adds nothing to such a call by
    /// which the server would know the user, since the form or `Authorization` decides.
    static let oauth = [
        // RFC 6749 §3.1. The session is used where there is one.
        RouteRule("authorize", methods: [.get, .post], caller: .optionalSession, bodyLimit: 64 << 10),

        // RFC 6749 §3.2, RFC 7009 §2. The provider authenticates the client.
        RouteRule("access_token", methods: [.post], caller: .client, bodyLimit: 64 << 10, crossOrigin: .everyOrigin),
        RouteRule("token/revoke", methods: [.post], caller: .client, bodyLimit: 64 << 10, crossOrigin: .everyOrigin),

        // RFC 7662 §2.1. The provider authenticates the client, which must have a secret.
        RouteRule("introspect", methods: [.post], caller: .client, bodyLimit: 64 << 10),

        // OpenID Connect Core §5.3.1.
        RouteRule(
            "userinfo", methods: [.get, .post], caller: .accessToken, bodyLimit: 64 << 10, crossOrigin: .everyOrigin),

        RouteRule("connect/jwk_uri", methods: [.get], caller: .anyone, crossOrigin: .everyOrigin),

        // RP-Initiated Logout §2. The ID token says which session ends.
        RouteRule(
            "connect/endSession", methods: [.get, .post], caller: .anyone, bodyLimit: 64 << 10,
            crossOrigin: .listedOrigins),

        RouteRule(
            ".well-known/openid-configuration", methods: [.get], caller: .anyone, crossOrigin: .everyOrigin),
    ]

    /// Transaction signing, below `/signing` and the realm. `*` stands for an id. Calls of devices prove their device
    /// key; all that they send is encrypted and signed (docs/transaction-signing.md).
    static let signing =
        DeviceCall.allCases.map {
            RouteRule(String($0.path.dropFirst()), methods: [.post], caller: .anyone, bodyLimit: 64 << 10)
        } + [
            RouteRule("configuration", methods: [.get], caller: .anyone),

            // The user's own; the engine asks for the role `admin` for others'.
            RouteRule("invites", methods: [.post], caller: .session(foreign: .unauthorized), bodyLimit: 4 << 10),
            RouteRule("invites/*", methods: [.get, .delete], caller: .session(foreign: .unauthorized)),
            RouteRule(
                "invites/*/digits", methods: [.post], caller: .session(foreign: .unauthorized), bodyLimit: 4 << 10),
            RouteRule("containers", methods: [.get], caller: .session(foreign: .unauthorized)),
            RouteRule("containers/*", methods: [.post], caller: .session(foreign: .unauthorized), bodyLimit: 4 << 10),
            RouteRule("keys", methods: [.post], caller: .session(foreign: .unauthorized), bodyLimit: 4 << 10),

            // A confidential client's, with the scope `signing`. JSON's escapes make a text up to six times longer.
            RouteRule("transactions", methods: [.post], caller: .accessToken, bodyLimit: 128 << 10),
            RouteRule("transactions/*", methods: [.get, .delete], caller: .accessToken),

            // Such a client's, or the user's, an auditor's or an administrator's.
            RouteRule("transactions/*/evidence", methods: [.get], caller: .accessToken),
        ]

    /// The row of a path, or `nil`.
    static func rule(_ path: String, of table: [RouteRule]) -> RouteRule? { table.first { $0.path == path } }

    /// The first segments of the paths of a table, by which a realm in AM's old form is told apart from an endpoint.
    static func firstSegments(of table: [RouteRule]) -> Set<String> {
        Set(table.compactMap { $0.path.split(separator: "/").first.map(String.init) })
    }
}

/// What holds for one route.
struct RouteRule: Sendable, Hashable {
    /// Who may call a route.
    enum CallerRule: Sendable, Hashable {
        /// Anybody; nobody is looked up.
        case anyone
        /// Anybody; a live session of the realm is looked up where one is presented.
        case optionalSession
        /// Somebody with a live session of the realm. Without one the answer is 401.
        case session(foreign: ForeignAnswer)
        /// A client that authenticates to the provider.
        case client
        /// Somebody with a valid access token of the realm.
        case accessToken
    }

    /// What somebody with a live session of another realm is answered.
    enum ForeignAnswer: Sendable, Hashable {
        /// 401, as without a session.
        case unauthorized
        /// 403.
        case forbidden
    }

    /// Whose pages may read the answers (Fetch §3.3).
    enum CrossOriginRule: Sendable, Hashable {
        /// Nobody's but our own.
        case sameOrigin
        /// Those that the realm, or one of its clients, lists, with credentials.
        case listedOrigins
        /// Those that are listed, with credentials, and everybody else's, without.
        case everyOrigin
    }

    /// The path below the realm, or below the root.
    let path: String

    /// The methods; `nil` for all.
    let methods: [HTTPRequest.Method]?

    /// Who may call it.
    let caller: CallerRule

    /// The largest body, in bytes.
    let bodyLimit: Int

    /// Whether it does several things, one of which the parameter `_action` names.
    let takesAction: Bool

    /// Whose pages may read the answers.
    let crossOrigin: CrossOriginRule

    init(
        _ path: String, methods: [HTTPRequest.Method]?, caller: CallerRule, bodyLimit: Int = 0,
        takesAction: Bool = false, crossOrigin: CrossOriginRule = .sameOrigin
    ) {
        self.path = path
        self.methods = methods
        self.caller = caller
        self.bodyLimit = bodyLimit
        self.takesAction = takesAction
        self.crossOrigin = crossOrigin
    }

    /// Whether the route takes a method. What can only be read can be asked for by HEAD (RFC 9110 §9.1).
    func allows(_ method: HTTPRequest.Method) -> Bool {
        guard let methods else { return true }
        return methods.contains(method) || method == .head && methods == [.get]
    }

    /// The value of `Allow`.
    var allow: String { (methods ?? []).map(\.rawValue).joined(separator: ", ") }
}
