import AssentCore
import AssentEngine
import Hummingbird

/// Who decides for the gateway: the engine of the same process, or one that is asked over the network. Whatever throws
/// lets nothing through.
protocol GatewayDecisions: Sendable {
    /// Whether the requests that it decides on have come sealed (docs/payload-encryption.md).
    var isSealed: Bool { get }

    /// Decides on a request. A transaction that lets it through is spent by that.
    ///
    /// - Parameters:
    ///   - question: what is asked.
    ///   - body: the request's body, which is read once at most.
    /// - Returns: what is to be done with it.
    /// - Throws: what `body` throws; `EngineError` for what is wrong with the request; anything else when nobody can
    ///   decide now.
    func decide(_ question: GatewayQuestion, body: BoundBodyReader) async throws -> GatewayAnswer
}

/// What the gateway asks before it forwards a request.
struct GatewayQuestion: Sendable {
    /// Who sends what, unchecked, and what is asked of them.
    let inquiry: GatewayInquiry

    /// The `Content-Type`, when there is one.
    let mediaType: String?

    /// The transaction's id, if the request carries one.
    let transactionID: String?

    /// The client's address, when it has one.
    let clientAddress: IPAddress?

    /// The value of `Idempotency-Key`.
    let idempotencyKey: String?

    /// Whether the session came in the cookie and that may be used, by what the browser says of the page that sends it.
    let mayUseCookie: Bool

    /// For how many seconds a granted answer may be used again for the same request; 0 for never.
    let cacheSeconds: Int

    /// The values of the field `Authorization`.
    let authorization: [String]

    /// The service that is told in a signed token who calls; `nil` where it is not.
    let identity: ServiceIdentity?

    /// The gateway's own origin.
    let issuer: String
}

/// What came of a question.
struct GatewayAnswer: Sendable {
    /// What is to be done with the request.
    let verdict: Verdict

    /// The nonce for the client's next proof, where it is time for a new one.
    var newNonce: String?

    /// What is to be done with a request.
    enum Verdict: Sendable {
        /// It may be forwarded, with the body that was read for the decision.
        case granted(any GatewayGrant, body: [UInt8]?)
        /// The user must do something first. The `acr_values` are for a client that came with a token (RFC 9470 §3).
        case advised(Advice, acrValues: [String])
        /// The transaction was spent before for this very request, with this outcome.
        case alreadyTaken(String, outcome: JSONValue)
        /// Its sender is refused before any policy is asked.
        case refused(CallerRefusal)
        /// It is denied.
        case denied(AccessDenial)
    }
}

/// Why a request is refused for what it says of its sender.
enum CallerRefusal: Sendable, Hashable {
    /// Its token, or the proof of its key, is not valid here.
    case credentials(CredentialRefusal)
    /// It came with the session cookie from a page that may not use it.
    case foreignPage
    /// Its credentials are valid, and of a kind that the route does not take.
    case kind
}

/// How a client hears that its token or proof was refused.
struct CredentialRefusal: Sendable, Hashable {
    /// 401 or 403.
    let status: Int

    /// What is wrong, for the client's developer.
    let detail: String

    /// The value of `WWW-Authenticate`.
    let challenge: String

    /// The nonce for the next proof.
    var nonce: String?
}

/// That a request may be forwarded, and by whom it was granted.
protocol GatewayGrant: Sendable {
    /// The user's name, for the service; `nil` for a client that calls for itself.
    var user: String? { get }

    /// The transaction that was spent for it; `nil` without one.
    var transaction: String? { get }

    /// Signs a token that tells the service who calls; `nil` about nobody.
    ///
    /// - Throws: when nothing can be signed.
    func token(_ identity: ServiceIdentity, issuer: String, of request: SpentRequest?) async throws -> Secret?

    /// Whether the caller of a connection that stays open would be let in again now.
    func isStillGranted() async -> Bool

    /// Sends the request of the spent transaction, once, and sees to it that its outcome is recorded. Done also when
    /// the task is cancelled.
    func forwarding(
        _ send: @escaping @Sendable () async -> (Response, UpstreamOutcome)
    ) async -> ForwardingResult<Response>
}
