/// What a finished journey gives: AM's session token and where the user came from.
public struct Session: Sendable, Equatable {
    /// The session token (`tokenId`).
    public let token: Secret

    /// Where a browser would go next (`successUrl`); empty when the server sent none.
    public let successURL: String

    /// The realm, for example `/alpha`; empty when the server sent none.
    public let realm: String

    /// The thumbprint (RFC 7638) of the key that the session belongs to (`cnf.jkt`): each request that presents it
    /// proves that key (DPoP, RFC 9449). `nil` for a session that its token alone opens, as AM's are.
    public let keyThumbprint: String?

    /// What else the server said when the journey ended, for example what AM's node Set Success Details adds; never the
    /// token. It is not stored: only the session that a journey has just given has it.
    public package(set) var details = JSONObject()

    /// What that key is called at its provider; `nil` while the session is not stored.
    package var keyName: String?

    /// What the server has said that it is, where it is not a usual one (`assent_kind`); `nil` for all others.
    package var kind: String?

    /// A session.
    public init(token: Secret, successURL: String = "", realm: String = "", keyThumbprint: String? = nil) {
        self.token = token
        self.successURL = successURL
        self.realm = realm
        self.keyThumbprint = keyThumbprint
    }
}

extension Session: CustomStringConvertible, CustomReflectable {
    /// The realm, and nothing of what only the user should see.
    public var description: String { "Session(\(realm))" }

    /// A mirror that shows the realm only.
    public var customMirror: Mirror { Mirror(self, children: ["realm": realm]) }
}
