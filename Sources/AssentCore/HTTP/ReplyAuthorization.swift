/// Whether the user was asked before a reply came.
public enum ReplyAuthorization: Hashable, Sendable {
    /// The resource wanted nothing of the user.
    case notAsked

    /// The user passed what the resource wanted, and this is the reply to the call after that.
    ///
    /// - Parameters:
    ///   - transactionID: the transaction that approved this very call; `nil` where a journey was wanted.
    ///   - binding: which parts of the call the server says that the approval is for.
    case approved(transactionID: String?, binding: ApprovalBinding)

    /// The call's origin is not a configured resource: it got no credential, and nobody looked for an advice.
    case notOurs
}

/// Which parts of a request the server says that an approval is for.
public enum ApprovalBinding: Hashable, Sendable {
    /// The server does not say what is being approved: show the request yourself. AM never says it.
    case notStated
    /// These parts, which were compared with the request that will be repeated.
    case stated(Set<Part>)

    /// A part of a request.
    public enum Part: String, Hashable, Sendable, CaseIterable {
        /// The method.
        case method
        /// Scheme, host, port and path of the URL.
        case resource
        /// The query of the URL.
        case query
        /// The media type of the body.
        case contentType
        /// The body, byte for byte.
        case body
    }
}
