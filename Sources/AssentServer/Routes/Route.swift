import AssentEngine
import HTTPTypes
import Hummingbird

/// One route: the row that says what holds for it, and what answers the requests that keep to the row.
///
/// `Handlers` is what answers a whole table of routes, `Service` what serves a realm there.
struct Route<Handlers: Sendable, Service: Sendable>: Sendable {
    /// Answers a request that ``RouteRunner`` has held to the row.
    typealias Answer = @Sendable (_ handlers: Handlers, _ call: RouteCall<Service>) async throws -> Response

    /// What holds for it.
    let rule: RouteRule

    /// What answers it.
    let answer: Answer

    /// A row with its handler.
    init(_ rule: RouteRule, answer: @escaping Answer) {
        self.rule = rule
        self.answer = answer
    }
}

/// What holds for one route.
struct RouteRule: Sendable, Hashable {
    /// Who may call a route.
    indirect enum CallerRule: Sendable, Hashable {
        /// Anybody; nobody is looked up.
        case anyone
        /// Anybody; a live session of the realm is looked up where one is presented.
        case optionalSession
        /// Somebody with a live session of the realm.
        case session(foreign: ForeignAnswer)
        /// A client that authenticates. The provider verifies that, since how it does so depends on what it asks for.
        case client
        /// A device that proves its key. The provider verifies that, since which key proves depends on the call.
        case device
        /// Somebody with a valid access token of the realm, whatever it is for.
        case accessToken
        /// A client for itself, by an access token that has the scope and was issued for this service. Its door is that
        /// of relying parties.
        case confidentialClient(scope: String)
        /// The first rule for a request with the field `Authorization`, the second for all others.
        case ifAuthorized(CallerRule, otherwise: CallerRule)
    }

    /// What somebody with a live session of another realm is answered.
    enum ForeignAnswer: Sendable, Hashable {
        /// 401, as without a session.
        case unauthorized
        /// 403.
        case forbidden
    }

    /// What a route has to do with the session's cookie, which decides what a foreign page could make a browser do.
    enum CookieRule: Sendable, Hashable {
        /// It looks at no cookie, or it is called by forms and links and verifies by itself which page sent a form.
        case unguarded
        /// It acts for the user whom the cookie names: a foreign page's requests are refused (``ForgeryCheck``).
        case used
        /// It may set a new cookie as well: a foreign page could sign its visitor in as somebody else.
        case given
    }

    /// Whose pages may read the answers (Fetch §3.3).
    enum CrossOriginRule: Sendable, Hashable {
        /// Only our own.
        case sameOrigin
        /// Those that the realm, or one of its clients, lists, with credentials.
        case listedOrigins
        /// The listed ones, for a request that only asks whether the session is alive; for others only our own.
        case listedOriginsForSessionChecks
        /// The listed ones, with credentials, and all others, without.
        case everyOrigin
    }

    /// The path below the realm. `{id}` stands for one segment.
    let path: String

    /// The methods; `nil` for all.
    var methods: [HTTPRequest.Method]?

    /// Who may call it.
    var caller: CallerRule

    /// Which door it is: with a session, or an access token, of a kind that it is not open for nobody gets in.
    var door: Door

    /// The largest body, in bytes.
    var bodyLimit: Int

    /// Whether it does several things, one of which the parameter `_action` names.
    var takesAction: Bool

    /// What it has to do with the session's cookie.
    var cookie: CookieRule

    /// Whose pages may read the answers.
    var crossOrigin: CrossOriginRule

    /// What a request with another method is told besides the methods.
    var methodHint: String?

    init(
        _ path: String, methods: [HTTPRequest.Method]?, caller: CallerRule, door: Door = .account, bodyLimit: Int = 0,
        takesAction: Bool = false, cookie: CookieRule = .used, crossOrigin: CrossOriginRule = .listedOrigins,
        methodHint: String? = nil
    ) {
        self.path = path
        self.methods = methods
        self.caller = caller
        self.door = door
        self.bodyLimit = bodyLimit
        self.takesAction = takesAction
        self.cookie = cookie
        self.crossOrigin = crossOrigin
        self.methodHint = methodHint
    }

    /// Whether the route takes a method. What can only be read can be asked for by HEAD (RFC 9110 §9.1).
    func allows(_ method: HTTPRequest.Method) -> Bool {
        guard let methods else { return true }
        return methods.contains(method) || method == .head && methods == [.get]
    }

    /// The value of `Allow`.
    var allow: String { (methods ?? []).map(\.rawValue).joined(separator: ", ") }

    /// What a path has for `{id}`, an empty text where the row has none; `nil` if this is not the path's row.
    func id(in endpoint: String) -> String? {
        // Most rows have no such segment, and a request goes through all rows up to its own.
        guard path.utf8.contains(UInt8(ascii: "{")) else { return path == endpoint ? "" : nil }
        let pattern = path.split(separator: "/")
        let segments = endpoint.split(separator: "/")
        guard pattern.count == segments.count else { return nil }
        var id = ""
        for (expected, segment) in zip(pattern, segments) where expected != segment {
            guard expected == "{id}" else { return nil }
            id = String(segment)
        }
        return id
    }
}
