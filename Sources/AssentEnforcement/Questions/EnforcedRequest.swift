public import AssentCore

/// One request that a service got, as its policies are asked about it.
public struct EnforcedRequest: Sendable {
    /// Whose request it is.
    public enum Subject: Sendable {
        /// The user of this session. Only a session can have transactions.
        case session(Secret)
        /// The user of this ID token, which the server verifies. It meets policies about claims, and no others.
        case idToken(Secret)
    }

    /// The URL, exactly as the policies are to see it, for example `https://pay.bank.example/transfers?draft=1`.
    public var resource: String

    /// The method, for example `POST`.
    public var method: String

    /// Whose request it is.
    public var subject: Subject

    /// The `Content-Type`; `nil` when there is none.
    public var contentType: String?

    /// The raw bytes of the content, exactly as they will be used; `nil` when they were not read. A policy that binds
    /// the content denies without them.
    public var body: [UInt8]?

    /// The transaction that the client says this request was approved by.
    public var transactionID: String?

    /// The value of `Idempotency-Key`, which tells apart requests that look alike; `nil` when there is none.
    public var idempotencyKey: String?

    /// The client's address, for conditions about networks; `nil` when it is not known for sure.
    public var clientAddress: String?

    /// A request without content.
    public init(_ method: String, _ resource: String, subject: Subject, transactionID: String? = nil) {
        self.method = method
        self.resource = resource
        self.subject = subject
        self.transactionID = transactionID
    }
}

extension EnforcedRequest.Subject {
    /// Whether it names nobody.
    var isEmpty: Bool {
        switch self {
        case .session(let token), .idToken(let token): token.reveal().isEmpty
        }
    }
}
