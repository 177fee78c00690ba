public import AssentCore
import HTTPTypes

/// Where journeys run and how.
public struct JourneyConfiguration: Sendable {
    /// The base URL with its path, for example `https://am.example.com/am`, without a slash at the end.
    public let server: String

    /// The realm.
    public let realm: JourneyRealm

    /// The name of the session cookie, which is also the name of the header that carries the session.
    public let sessionCookieName: String

    /// The callback types that are known.
    public var callbacks: CallbackTypes

    /// Bounds.
    public var limits: JourneyLimits

    /// The languages for the texts, as an `Accept-Language` field has them; `nil` leaves it to the server.
    public var acceptLanguage: String?

    /// A configuration.
    ///
    /// - Throws: ``JourneyFailure`` with code `invalidConfiguration` when the server is not an absolute URL, has a
    ///   query, a fragment or user information, or the cookie's name cannot be a header's name.
    public init(
        server: String, realm: String = "/", sessionCookieName: String = WireName.sessionCookie,
        callbacks: CallbackTypes = .all, limits: JourneyLimits = JourneyLimits(), acceptLanguage: String? = nil
    ) throws {
        do throws(WireError) {
            _ = try Origin(server)
        } catch {
            throw JourneyFailure(.invalidConfiguration, "The server's URL cannot be used: \(error.detail).")
        }
        guard !server.utf8.contains(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }) else {
            throw JourneyFailure(.invalidConfiguration, "The server's URL has a query or a fragment.")
        }
        guard HTTPField.Name(sessionCookieName) != nil else {
            throw JourneyFailure(
                .invalidConfiguration, "The name of the session cookie cannot be the name of a header field.")
        }
        self.server = server.hasSuffix("/") ? String(server.dropLast()) : server
        self.realm = try JourneyRealm(realm)
        self.sessionCookieName = sessionCookieName
        self.callbacks = callbacks
        self.limits = limits
        self.acceptLanguage = acceptLanguage
    }

    var authenticateURL: String { "\(server)/json/\(realm.path)/authenticate" }
}

/// Bounds of a journey.
public struct JourneyLimits: Hashable, Sendable {
    /// Of one exchange.
    public var http: HTTPLimits

    /// Of a reply's JSON.
    public var json: JSONLimits

    /// Callbacks in a step.
    public var callbacks: Int

    /// Steps in a run, waits not counted.
    public var steps: Int

    /// Seconds between two questions whether something has happened elsewhere, whatever the server asks for.
    public var longestWait: Double

    /// Seconds that all waits of a run take together.
    public var allWaits: Double

    /// How often the same answers are sent to the same question, one after the other. A person may take a wrong
    /// password for mistyped; a handler that answers without looking must not lock the account.
    public var sameAnswers: Int

    /// Bounds; the defaults suit any journey of people.
    public init(
        http: HTTPLimits = HTTPLimits(replyBytes: 1 << 20), json: JSONLimits = JSONLimits(depth: 32, values: 20_000),
        callbacks: Int = 100, steps: Int = 50, longestWait: Double = 60, allWaits: Double = 900,
        sameAnswers: Int = 3
    ) {
        self.http = http
        self.json = json
        self.callbacks = callbacks
        self.steps = steps
        self.longestWait = longestWait
        self.allWaits = allWaits
        self.sameAnswers = sameAnswers
    }
}

/// How to start a journey.
public struct JourneyOptions: Hashable, Sendable {
    /// Whether to ask again even if there is a session already.
    public var forceAuth: Bool

    /// Whether to make no session: the result is only that the user passed.
    public var noSession: Bool

    /// More items for the query of the first request.
    public var parameters: [FormItems.Item]

    /// Options; by default none.
    public init(forceAuth: Bool = false, noSession: Bool = false, parameters: [FormItems.Item] = []) {
        self.forceAuth = forceAuth
        self.noSession = noSession
        self.parameters = parameters
    }
}
