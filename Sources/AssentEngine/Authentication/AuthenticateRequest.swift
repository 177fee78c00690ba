package import AssentCore

/// One request to `authenticate`.
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

    /// Whether the session is to be of the kind `stateless`. Only a journey's first request says so.
    package var isStateless = false

    /// Whether a user signs in anew, the same or a different one: the session that comes along says nothing in the
    /// journey, and ends as soon as a new one begins.
    package var replacesSession = false

    /// The languages that the user would read, as tags in lower case, the dearest first.
    package var languages: [String] = []

    /// `suspendedId`.
    package var suspendedID: String?

    /// The session token that came with the request, by cookie or header field.
    package var sessionToken: Secret?

    /// What the request says about the key of its sender; `nil` where a door takes no proof.
    package var proof: PresentedProof?

    /// Whether the proof must have a nonce.
    package var noncePolicy = NoncePolicy.offered

    /// Whether a new session may belong to the key of the proof. One that a browser gets in a cookie may not: a
    /// navigation proves nothing.
    package var bindsSession = true

    /// The answer to a page; `nil` for a journey's first request.
    package var answer: PageAnswer?

    /// Where the request comes from, for limits; `nil` when nothing is counted.
    package var clientAddress: String?

    /// The client's address itself, when it has one; for what is remembered of a user's networks.
    package var clientIP: IPAddress?

    /// A header field of the request by its name, in any case; for nodes that take values from there.
    package var header: @Sendable (String) -> String?

    /// A request.
    package init(
        realm: String, authIndexType: String? = nil, authIndexValue: String? = nil, forceAuth: Bool = false,
        noSession: Bool = false, suspendedID: String? = nil, sessionToken: Secret? = nil, answer: PageAnswer? = nil,
        clientAddress: String? = nil, header: @escaping @Sendable (String) -> String? = { _ in nil }
    ) {
        self.realm = realm
        self.authIndexType = authIndexType
        self.authIndexValue = authIndexValue
        self.forceAuth = forceAuth
        self.noSession = noSession
        self.suspendedID = suspendedID
        self.sessionToken = sessionToken
        self.answer = answer
        self.clientAddress = clientAddress
        self.header = header
    }
}

/// The answer to a page of a journey.
package struct PageAnswer: Sendable {
    /// The pointer that came with the page.
    package var authID: String

    /// The callbacks, in the order in which they came; `nil` when there was no list of them.
    package var callbacks: [ReturnedCallback]?

    /// All bytes of the answer: a repetition is the same answer only when every byte is the same.
    package var bytes: [UInt8]

    /// An answer.
    package init(authID: String, callbacks: [ReturnedCallback]?, bytes: [UInt8]) {
        self.authID = authID
        self.callbacks = callbacks
        self.bytes = bytes
    }
}

/// What `authenticate` answers when nothing went wrong. Everything else is an ``EngineError``.
package enum AuthenticateReply: Sendable, Equatable {
    /// The user must be asked something.
    case page(AuthenticatePage)
    /// The journey has succeeded, or there was nothing to do.
    case success(AuthenticateSuccess)

    /// The value of `DPoP-Nonce` for the reply, where it is time for a new one.
    package var newNonce: String? {
        switch self {
        case .page(let page): page.newNonce
        case .success(let success): success.newNonce
        }
    }

    /// The reply with a nonce for the client's next proof.
    func giving(nonce: String?) -> AuthenticateReply {
        switch self {
        case .page(var page):
            page.newNonce = nonce
            return .page(page)
        case .success(var success):
            success.newNonce = nonce
            return .success(success)
        }
    }
}

/// A page of a journey.
package struct AuthenticatePage: Sendable, Equatable {
    /// The pointer to the stored step, which the client sends back.
    package let authID: Secret

    /// What the page asks and how it may look.
    package let content: PageContent

    /// What the journey is to approve, on each of its pages; `nil` for a sign-in, and in an answer that is repeated.
    package var approving: ApprovalInProgress?

    /// Whether it asks what the page before it has asked: that answer was not accepted.
    package var isAskedAgain = false

    /// The name that the user has typed before, on a page that is asked again; nothing has proved it.
    package var typedName: String?

    /// The value of `DPoP-Nonce` for the reply, where it is time for a new one.
    package var newNonce: String?

    /// A page.
    package init(authID: Secret, content: PageContent) {
        self.authID = authID
        self.content = content
    }
}

/// A transaction in its journey, and who is asked.
package struct ApprovalInProgress: Sendable, Hashable {
    /// What is approved.
    package let approval: PendingApproval

    /// The user's name.
    package let username: String
}

/// A journey's success.
package struct AuthenticateSuccess: Sendable, Equatable {
    /// The session's token; `nil` when none was wanted.
    package let token: Secret?

    /// Whether the session is new, so that a browser must be given its cookie. In a transaction it never is.
    package let isNewSession: Bool

    /// Where a browser would go next.
    package let successURL: String

    /// The realm.
    package let realm: String

    /// Why nothing was approved, in a transaction whose failure is a success on the wire, as AM's is.
    package var failure: EngineError.Code?

    /// The thumbprint of the key that the session belongs to; `nil` for one that belongs to none.
    package var keyThumbprint: String?

    /// For what the session was made.
    package var kind = SessionKind.user

    /// The value of `DPoP-Nonce` for the reply, where it is time for a new one.
    package var newNonce: String?

    /// A success.
    package init(token: Secret?, isNewSession: Bool, successURL: String, realm: String) {
        self.token = token
        self.isNewSession = isNewSession
        self.successURL = successURL
        self.realm = realm
    }
}
