/// A number outside of a vault that only ever grows, so that an old copy of the whole vault is noticed: a TPM's NV
/// counter (TPM 2.0 Part 1 §37), or a generation that a server keeps.
///
/// Anyone who can write this user's files must not be able to lower or replace it. `AssentTesting` publishes the
/// contract as tests (`RollbackCounterContract`).
public protocol RollbackCounter: Sendable {
    /// The current number. The first may be any.
    ///
    /// - Throws: ``KeyProviderError``.
    func value() async throws -> UInt64

    /// Adds one, for good, and returns the new number. Of two callers at once, each gets a number of its own.
    ///
    /// - Throws: ``KeyProviderError``; the number may then have grown or not.
    func increment() async throws -> UInt64
}
