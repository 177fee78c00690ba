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
/// Each update is durable when it returns and happens whole or not at all. ``AssentTesting`` publishes the contract as tests.
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

/// Why a secret could not be read or kept. Errors are equal when their codes are; the detail never holds a secret.
public struct SecretStoreError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What went wrong, as a stable name.
    public let code: Code

    /// What exactly, and what to do.
    public let detail: String

    /// An error with its explanation.
    public init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    /// Code and explanation.
    public var description: String { "\(code): \(detail)" }

    /// Errors are equal when their codes are.
    public static func == (left: Self, right: Self) -> Bool { left.code == right.code }

    /// Hashes the code.
    public func hash(into hasher: inout Hasher) { hasher.combine(code) }

    /// A stable name of a kind of failure; more may be added.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The name.
        public let description: String

        private init(_ name: String) { description = name }

        /// Somebody else changed the value meanwhile.
        public static let versionMismatch = Code("versionMismatch")
        /// Somebody else held the name, or the store, until the deadline.
        public static let busy = Code("busy")
        /// A file of the store is shorter than it was, or empty: a write that never ended, or a copy that was cut off.
        public static let truncated = Code("truncated")
        /// A file of the store is not what it was: changed, exchanged, forged or missing.
        public static let tampered = Code("tampered")
        /// An old copy of the store was put in its place.
        public static let rolledBack = Code("rolledBack")
        /// This is a store, but not the one that was asked for: another user's, or one for another purpose.
        public static let anotherStore = Code("anotherStore")
        /// The key, PIN or passphrase does not open this store.
        public static let wrongKey = Code("wrongKey")
        /// The key's guardian cannot be reached or used now. Trying later may help.
        public static let keyUnavailable = Code("keyUnavailable")
        /// The key's guardian refuses every PIN or passphrase after too many wrong ones.
        public static let keyLocked = Code("keyLocked")
        /// The key's guardian works, and does not have this store's key any more.
        public static let keyLost = Code("keyLost")
        /// The store is guarded in another way than was asked for. It takes an explicit change of key.
        public static let protectionMismatch = Code("protectionMismatch")
        /// A newer version of this library wrote the store.
        public static let newerFormat = Code("newerFormat")
        /// A version of this library that was never released wrote the store.
        public static let olderFormat = Code("olderFormat")
        /// The name or the value is not acceptable (empty, too long).
        public static let invalidInput = Code("invalidInput")
        /// There is no store here, and none was to be made.
        public static let absent = Code("absent")
        /// The disk is full, or a quota or a size limit is reached.
        public static let diskFull = Code("diskFull")
        /// The disk is read-only, or owner or mode of a file do not permit the access.
        public static let notPermitted = Code("notPermitted")
        /// The system offers no such store to this process: the kernel, a container or a sandbox does not let it.
        public static let storeUnavailable = Code("storeUnavailable")
        /// The value's time was up, and the store does not give it out any more.
        public static let expired = Code("expired")
        /// Somebody revoked the value, or all of the store, so that nobody can read it any more.
        public static let revoked = Code("revoked")
        /// The user's share of a store that all programs of the user have in common is used up.
        public static let quotaExceeded = Code("quotaExceeded")
        /// Reading or writing failed otherwise.
        public static let storageFailed = Code("storageFailed")
    }
}
