/// A reader of fingers or faces that an app brings along where the system does not guard keys with one itself.
///
/// On Apple's platforms nobody needs it: the Secure Enclave asks, and loses a key of `biometryCurrentSet` by itself.
public protocol BiometricProvider: Sendable {
    /// What stands for the set of enrolled fingers and faces: other bytes after any of them was added or removed, the
    /// same ones otherwise; `nil` when there are none. (`LAContext.evaluatedPolicyDomainState` is such a value.)
    func enrollment() async throws -> [UInt8]?

    /// Waits until the user has proved to be there. How long one proof lasts is this provider's own decision.
    ///
    /// - Throws: `KeyProviderError` with code `userAbsent` when they decline or nobody comes, `lockedOut` after too
    ///   many tries, `CancellationError` when the task was cancelled.
    func confirm(_ reason: String) async throws
}
