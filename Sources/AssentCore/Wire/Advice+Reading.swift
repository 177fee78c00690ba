extension Advice {
    /// Reads the advice of a `WWW-Authenticate` field, for a reply that carries it elsewhere.
    ///
    /// It is `nil` when none of its challenges carries an advice.
    ///
    /// - Parameter field: the field's value, for example `SSOADVICE realm="/",advices="…",am_uri="…"`.
    /// - Throws: ``WireError`` when one cannot be read, there are several, or the server that it names is not a URL.
    public init?(challenge field: String) throws(WireError) {
        guard let received = try ReceivedAdvice(challenges: [field]) else { return nil }
        self = received.advice.named(by: received.server)
    }

    /// Reads the advice of a `Location` field that leads to AM's login page.
    ///
    /// It is `nil` when it carries no advice, so is a redirect like any other.
    ///
    /// - Parameter location: the field's value, an absolute URL.
    /// - Throws: ``WireError`` when there is one that cannot be read, or the URL is not absolute.
    public init?(location: String) throws(WireError) {
        guard let received = try ReceivedAdvice(location: location) else { return nil }
        self = received.advice.named(by: received.server)
    }

    /// Reads the advice of a body that is AM's policy decision. It names no server.
    ///
    /// It is `nil` when the body is not a decision, or one without a condition that AM is known to send.
    ///
    /// - Parameter body: an object, an array whose first element is meant, or the bare map of names to values.
    public init?(decision body: [UInt8]) {
        guard let received = ReceivedAdvice(decision: body) else { return nil }
        self = received.advice
    }
}
