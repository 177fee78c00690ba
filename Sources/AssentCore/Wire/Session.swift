/// What a finished journey gives: AM's session token and where the user came from.
public struct Session: Sendable, Equatable {
    /// The session token (`tokenId`).
    public let token: Secret

    /// Where a browser would go next (`successUrl`); empty when the server sent none.
    public let successURL: String

    /// The realm, for example `/alpha`; empty when the server sent none.
    public let realm: String

    /// A session.
    public init(token: Secret, successURL: String = "", realm: String = "") {
        self.token = token
        self.successURL = successURL
        self.realm = realm
    }
}
