import AssentCore
package import AssentStore

/// Why the engine did not do what it was asked to do. Errors are equal when their codes are.
///
/// The engine knows neither HTTP nor the words of any wire: the server maps the code once per wire.
package struct EngineError: AssentError {
    /// What is wrong, for programs.
    package let code: Code

    /// What is wrong, for people; never a secret.
    package let detail: String

    /// The name that the error is about, for example of an unknown realm.
    package let subject: String?

    /// An error. Without `detail` it says what its code says.
    package init(_ code: Code, _ detail: String? = nil, about subject: String? = nil) {
        self.code = code
        self.detail = detail ?? code.sentence
        self.subject = subject
    }

    /// Whether the same request may succeed later. Nothing has changed then.
    package var isTransient: Bool { Self.transientCodes.contains(code) }

    private static let transientCodes: Set<Code> = [.stepBeingAnswered, .tooManyRequests, .busy, .unavailable]
}

extension EngineError {
    /// The database cannot serve: nothing was changed, and the same request may succeed later.
    package static let unavailable = EngineError(.unavailable)

    /// Nobody knows whether it was done, and it may still become true: look before the same is done again.
    package static let outcomeUnknown = EngineError(.outcomeUnknown)

    /// There is no live session, or none that may do this.
    package static let sessionRequired = EngineError(.sessionRequired)

    /// The caller may not do this.
    package static let forbidden = EngineError(.forbidden)

    /// The transaction cannot be approved here, whatever the reason: unknown, expired, of another session, or in
    /// another state.
    package static let transactionUnreadable = EngineError(.transactionUnreadable)

    /// Something in the engine or in its database is broken: `detail` is for the operator.
    package static func internalFailure(_ detail: String) -> EngineError { EngineError(.internalFailure, detail) }

    /// The request is malformed.
    package static func invalidRequest(_ detail: String) -> EngineError { EngineError(.invalidRequest, detail) }

    /// What a failed store means. Only when the database cannot be reached is it worth another try.
    package init(_ error: StoreError) {
        switch error.code {
        case .unavailable: self = .unavailable
        case .outcomeUnknown: self = .outcomeUnknown
        case .statement: self.init(.internalFailure, "The server failed. Its log says why.")
        default: self.init(.internalFailure, "The server's database is damaged.")
        }
    }
}
