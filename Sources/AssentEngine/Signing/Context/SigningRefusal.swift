import AssentCore
package import AssentSigningProtocol
import AssentStore

/// Why transaction signing did not do what it was asked to do: an entry of the list of errors in
/// `docs/transaction-signing.md`. Errors are equal when their codes are.
package struct SigningRefusal: AssentError {
    /// The name of the error on the wire.
    package let code: SigningErrorCode
    /// What is wrong, for people; never a secret.
    package let detail: String
    /// How many tries are left, for `digits_wrong`.
    package let remaining: Int?
    /// After how many seconds the same request may be answered otherwise.
    package let retryAfter: Int64?

    /// An error. Without `detail` it says what its code says.
    package init(_ code: SigningErrorCode, _ detail: String? = nil, remaining: Int? = nil, retryAfter: Int64? = nil) {
        self.code = code
        self.detail = detail ?? code.sentence
        self.remaining = remaining
        self.retryAfter = retryAfter
    }

    /// The answer to whatever was thrown: what the protocol has a code for as it is, anything else as `unavailable`,
    /// which says nothing about its cause, but whether it is known that nothing was done.
    package init(answering error: any Error) {
        switch error {
        case let error as StoreError where error.code == .outcomeUnknown:
            self.init(answering: EngineError.outcomeUnknown)
        case let error as EngineError where error.code == .outcomeUnknown:
            self.init(.unavailable, "It is not known whether this was done. Repeat the same request later.")
        case let error as SigningRefusal: self = error
        case let error as EngineError where error.code == .busy: self.init(.busy)
        case let error as EngineError where error.code == .tooManyRequests: self.init(.rateLimited)
        case let error as EngineError where error.code == .invalidRequest: self.init(.invalidRequest, error.detail)
        default: self.init(.unavailable)
        }
    }

    /// Whether the same request may succeed later. Nothing is known to have happened then.
    package var isTransient: Bool { [.busy, .unavailable, .rateLimited].contains(code) }
}
