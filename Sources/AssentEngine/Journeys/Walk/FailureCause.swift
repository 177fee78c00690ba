/// Why a journey has failed, when there is more to say than that it has. The raw value is the audit record's reason.
package enum FailureCause: String, Sendable, Hashable, CaseIterable {
    /// Too many attempts.
    case locked
    /// The user declined a transaction.
    case declined
    /// A wrong number or signature on the user's device has ended a transaction.
    case failedOnDevice
    /// Nobody answered on a device in time.
    case expired
    /// The user has no device that could answer.
    case noDevice
    /// A node authenticated a different user than the current one.
    case differentUser
    /// A transaction's journey reached its end without asking anything.
    case nothingAsked
    /// The user was locked since, or was given another password or second factor.
    case outdated
    /// The journey showed more pages than it may.
    case tooManyPages
}
