public import AssentCore
public import AssentJourney

/// How a part of a resource asks for approvals, and who answers.
///
/// Credentials go by origin (``AuthorizationConfiguration/resources``), approvals by address.
///
/// ```swift
/// let payments = try AuthorizationPolicy("https://api.bank.example/transfers/") { approval in
///     if approval.isFirstStep {
///         guard await screen.confirm(approval.display) else { return .decline }
///     }
///     if let waiting = approval.waiting { await screen.show(waiting.text) }
///     approval.agree()
///     return .next
/// }
/// ```
public struct AuthorizationPolicy: Sendable {
    /// Answers a step of the journey that gets an approval. A call that it waits for must not want an approval itself:
    /// the user is asked one question at a time, so that call fails with
    /// ``AuthorizationError/Code/nestedApproval``.
    public typealias Handler = @Sendable (inout Approval) async throws -> StepAction

    /// The origin.
    public let origin: Origin

    /// The path, its escapes normalised.
    public let path: String

    /// Whether it is for all paths that begin with ``path``.
    public let isPrefix: Bool

    /// Answers the steps of approvals for calls that bring no handler of their own. Without it such a call fails with
    /// ``AuthorizationError/Code/approvalNeeded``.
    public var approve: Handler?

    /// How long a call waits while the user is asked something else, and how long the user then has. It is apart from
    /// the limits of the call, which are for each of its sendings.
    ///
    /// A policy's ``approve`` is cancelled when it is over. A handler that a call brings runs in its caller's isolation
    /// and is not cancelled; its answer is dropped when it comes too late.
    public var patience: Duration = .seconds(300)

    /// Recognises an advice that the resource says in its own words. It is asked last, and of replies with at most
    /// ``bufferLimit`` bytes of content that are not event stream. What it returns is believed as little as any advice:
    /// one that names another server is refused.
    ///
    /// Where it throws, or takes longer than ten seconds, it has recognised nothing, and the reply is handed back: it
    /// may be that of a call which was carried out.
    public var recognise: (@Sendable (HTTPReply) async throws -> Advice?)?

    /// Puts a transaction's id into the approved call in the place of `_txid` and `X-TxID`, for a resource that looks
    /// for it elsewhere. It may add header fields, and items behind the query, but no field that describes the content,
    /// `Host` or `Idempotency-Key`. What the call has stays as it is. Otherwise the call fails before the user is
    /// asked.
    public var decorate: (@Sendable (inout HTTPCall, _ transactionID: String) throws -> Void)?

    /// Whether an approval is refused unless the server says that it is for all of the request, also where
    /// ``AuthorizationConfiguration/requiresBinding`` does not say it.
    public var requiresBinding = false

    /// How many bytes of content that can be read once are kept, so that the call can be repeated; and how many bytes
    /// of a reply ``recognise`` gets. A call with more is refused before anything is sent.
    public var bufferLimit = 1 << 20

    /// A policy for an address.
    ///
    /// - Parameters:
    ///   - url: an absolute URL without query. One whose path ends at a slash is for all that is below it, any other
    ///     for this path alone. Of several the longest applies.
    ///   - approve: see ``approve``.
    /// - Throws: ``AuthorizationError`` with code `invalidConfiguration`.
    public init(_ url: String, approve: Handler? = nil) throws(AuthorizationError) {
        guard !url.utf8.contains(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }) else {
            throw AuthorizationError(.invalidConfiguration, "A policy's address has a query or a fragment.")
        }
        guard let address = ComparableURL(url), !ComparableURL.hasDotSegments(address.path) else {
            throw AuthorizationError(.invalidConfiguration, "A policy's address is not an absolute URL, or has steps.")
        }
        origin = address.origin
        path = address.path
        isPrefix = address.path.hasSuffix("/")
        self.approve = approve
    }

    func covers(_ path: String) -> Bool { isPrefix ? path.hasPrefix(self.path) : path == self.path }
}
