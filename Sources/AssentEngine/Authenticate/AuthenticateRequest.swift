package import AssentCore

/// One POST to `authenticate`.
package struct AuthenticateRequest: Sendable {
    /// The realm, for example `/alpha`.
    package var realm: String

    /// `authIndexType`, as it came; `nil` when there is none.
    package var authIndexType: String?

    /// `authIndexValue`, percent-decoded once.
    package var authIndexValue: String?

    /// Whether `ForceAuth` is true.
    package var forceAuth: Bool

    /// Whether `noSession` is true.
    package var noSession: Bool

    /// Whether somebody is to sign in anew, be it the same user or another: the session that comes along says nothing in the
    /// journey, and ends in the moment when a new one begins.
    package var replacesSession = false

    /// `suspendedId`.
    package var suspendedID: String?

    /// The session token that came with the request, by cookie or header field.
    package var sessionToken: Secret?

    /// The body; empty when there was none.
    package var body: JSONObject

    /// The body's bytes: a repetition of a step is recognised by them.
    package var rawBody: [UInt8]

    /// Where the request comes from, as far as limits go; `nil` when nothing is to be counted.
    package var clientAddress: String?

    /// A header field of the request by its name, in any case; for nodes that take values from there.
    package var header: @Sendable (String) -> String?

    /// A request.
    package init(
        realm: String, authIndexType: String? = nil, authIndexValue: String? = nil, forceAuth: Bool = false,
        noSession: Bool = false, suspendedID: String? = nil, sessionToken: Secret? = nil,
        body: JSONObject = JSONObject(), rawBody: [UInt8] = [], clientAddress: String? = nil,
        header: @escaping @Sendable (String) -> String? = { _ in nil }
    ) {
        self.realm = realm
        self.authIndexType = authIndexType
        self.authIndexValue = authIndexValue
        self.forceAuth = forceAuth
        self.noSession = noSession
        self.suspendedID = suspendedID
        self.sessionToken = sessionToken
        self.body = body
        self.rawBody = rawBody
        self.clientAddress = clientAddress
        self.header = header
    }
}

/// What `authenticate` answers with status 200. Everything else is an ``EngineError``.
package enum AuthenticateReply: Sendable, Equatable {
    /// The user must be asked something.
    case page(AuthenticatePage)
    /// The journey has ended well, or there was nothing to do.
    case success(AuthenticateSuccess)

    /// The body, as AM writes it. It holds the authId or the token: it is for the wire alone.
    package var json: JSONValue {
        switch self {
        case .page(let page):
            var object = JSONObject([.init(name: "authId", value: .string(page.authID.reveal()))])
            for member in page.content.members { object[member.name] = member.value }
            return .object(object)
        case .success(let success):
            var object = JSONObject()
            object["tokenId"] = success.token.map { .string($0.reveal()) }
            object["successUrl"] = .string(success.successURL)
            object["realm"] = .string(success.realm)
            return .object(object)
        }
    }
}

/// A page of a journey.
package struct AuthenticatePage: Sendable, Equatable {
    /// The pointer to the stored step, which the client sends back.
    package let authID: Secret

    /// `stage`, `header`, `description` where there are any, and `callbacks`.
    package let content: JSONObject
}

/// A journey's good end.
package struct AuthenticateSuccess: Sendable, Equatable {
    /// The session's token; `nil` when none was wanted.
    package let token: Secret?

    /// Whether the session is new, so that a browser must be given its cookie. In a transaction it never is.
    package let isNewSession: Bool

    /// Where a browser would go next.
    package let successURL: String

    /// The realm.
    package let realm: String
}
