public import Foundation

/// A secret with the version it was read at.
public struct StoredSecret: Sendable, Equatable {
    /// The value.
    public let value: Secret

    /// Counts the updates of this name, from 1.
    public let version: UInt64

    /// A value at a version.
    public init(value: Secret, version: UInt64) {
        self.value = value
        self.version = version
    }
}

/// What an update expects to find.
public enum ExpectedVersion: Hashable, Sendable {
    /// Whatever is there.
    case any
    /// Nothing of this name.
    case absent
    /// Exactly this version.
    case exactly(UInt64)
}

/// Secrets at rest, by name.
///
/// Each update is durable when it returns and happens whole or not at all. `AssentTesting` publishes the contract as
/// tests.
public protocol SecretStore: Sendable {
    /// The secret called `name`, or `nil` when there is none.
    func value(_ name: String) async throws -> StoredSecret?

    /// Sets the secret called `name`, or removes it when `value` is `nil`, if it is still what the caller `expected`.
    ///
    /// - Returns: the new version; 0 after a removal.
    /// - Throws: ``SecretStoreError`` with code `versionMismatch` when somebody else was faster.
    @discardableResult
    func update(_ name: String, to value: Secret?, expected: ExpectedVersion) async throws -> UInt64

    /// All names, sorted.
    func names() async throws -> [String]

    /// Removes every secret.
    func removeAll() async throws

    /// Waits until no task and no other process holds `name`, and holds it until the result is released.
    ///
    /// It bounds itself by `deadline` and never blocks the cooperative thread pool.
    /// - Throws: ``SecretStoreError`` with code `busy` at the deadline, `CancellationError` when cancelled.
    func lease(_ name: String, deadline: Date) async throws -> any SecretLease
}

/// The right to be the only one who works on a name. It ends when ``release()`` is called or the process ends.
public protocol SecretLease: Sendable {
    /// Lets the next one in. Calling it again does nothing.
    func release() async
}

extension SecretStore {
    /// Runs `body` while nobody else, in any process, works on `name`.
    ///
    /// - Throws: ``SecretStoreError`` with code `busy` when `deadline` passed first, and what `body` throws.
    public func withExclusiveAccess<Result>(
        _ name: String, deadline: Date, _ body: () async throws -> Result
    ) async throws -> Result {
        let lease = try await lease(name, deadline: deadline)
        do {
            let result = try await body()
            await lease.release()
            return result
        } catch {
            await lease.release()
            throw error
        }
    }
}
