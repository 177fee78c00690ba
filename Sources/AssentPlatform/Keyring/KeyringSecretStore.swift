#if Keyring && os(Linux)
public import AssentCore
import AssentVault
public import Foundation
import Glibc

/// Secrets in the memory of the Linux kernel, in a keyring of this user (keyrings(7)), for several processes at once.
///
/// ```swift
/// let store = try KeyringSecretStore(store: "example.bank", timeToLive: 3600)
/// try await store.update("token", to: token, expected: .any)
/// ```
///
/// For a short job or a service on a host with no disk to write to. Nothing is in a file, nothing outlives the kernel,
/// and values may expire by themselves. It is **not** sealed: any program of the same user can read and change it, and
/// so can root. Other users have no access. Where a keyring vanished (restart, see ``KeyringAnchor``) the store is
/// empty and versions begin anew; a ``/AssentVault/FileVault`` keeps what must stay.
///
/// Each value is a keyring of its own, which one step puts in the former one's place: a reader sees the old value or
/// the new one, and of a process that is killed meanwhile nothing stays behind. `docs/vault.md` has the layout and the
/// errors.
///
/// The kernel bounds what a user other than root may keep: by default 200 keys and 20,000 bytes, of which a value takes
/// three keys and some 200 bytes beyond its own.
public actor KeyringSecretStore: SecretStore {
    /// How many secrets a store holds at most.
    public static let entryLimit = 1000

    private static let storeNameLimit = 200
    private static let longestTimeToLive: TimeInterval = 10 * 366 * 86_400
    private static let updateLock: Int64 = 0
    private static let attempts = 8

    private let store: String
    private let kernel: KeyringContents
    private let lockFile: String
    private let lockDirectory: String
    private let lockTimeout: TimeInterval
    private let clock: any WallClock
    private let leases = NameQueue()
    private let updates = NameQueue()
    private let thread = FileThread()

    /// Runs on a thread of its own: the lock's file may lie anywhere.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// A store in the kernel. Nothing is looked at or made before the first call.
    ///
    /// - Parameters:
    ///   - store: which of the user's stores it is, 1 to 200 bytes without NUL. All programs of the user that give the
    ///     same name and anchor share it: name it after the app.
    ///   - anchor: which keyring holds it, and so how long it lives.
    ///   - timeToLive: for how many seconds each value is given out after it was written, 1 to 10 years; `nil` for as
    ///     long as the keyring lives. The kernel wipes it then.
    ///   - lockDirectory: where processes exclude each other: a directory of this user alone, made (mode 0700) when it
    ///     is missing, and the same for all of them. Only empty files lie there. By default
    ///     `/dev/shm/assent-keyring-<uid>`.
    ///   - lockTimeout: how many seconds an update waits for other processes' updates.
    ///   - clock: judges deadlines and times to live.
    /// - Throws: ``/AssentCore/SecretStoreError`` with code `invalidInput`.
    public init(
        store: String = "default", anchor: KeyringAnchor = .user, timeToLive: TimeInterval? = nil,
        lockDirectory: URL? = nil, lockTimeout: TimeInterval = 10, clock: any WallClock = SystemClock()
    ) throws {
        guard (1...Self.storeNameLimit).contains(store.utf8.count), !store.utf8.contains(0) else {
            throw SecretStoreError(
                .invalidInput, "A store's name has 1 to \(Self.storeNameLimit) bytes, none of them NUL. Choose another."
            )
        }
        guard timeToLive.map({ (1...Self.longestTimeToLive).contains($0) }) ?? true else {
            throw SecretStoreError(.invalidInput, "A time to live is 1 second to 10 years. Choose another.")
        }
        self.store = store
        kernel = KeyringContents(store: store, anchor: anchor, timeToLive: timeToLive, clock: clock)
        lockFile = Hex.encode(SHA2.sha256(Array("\(anchor) \(store)".utf8)).prefix(16)) + ".lock"
        self.lockDirectory = lockDirectory?.path(percentEncoded: false) ?? "/dev/shm/assent-keyring-\(geteuid())"
        self.lockTimeout = lockTimeout
        self.clock = clock
    }

    /// Whether the kernel lets this process use this store now. Containers often forbid it.
    public var availability: KeyAvailability {
        do {
            try kernel.probe()
            return .available
        } catch {
            return .unavailable(reason: (error as? SecretStoreError)?.detail ?? "\(error)")
        }
    }

    /// Whether the store can be used now; ``availability`` says why not.
    public var isAvailable: Bool { availability == .available }

    /// The secret called `name`, or `nil` when there is none.
    ///
    /// - Throws: ``/AssentCore/SecretStoreError``: `expired`, `revoked`, `tampered`, `storeUnavailable`,
    ///   `notPermitted`, `invalidInput`, `storageFailed`. Other secrets stay readable.
    public func value(_ name: String) throws -> StoredSecret? {
        let name = try SecretName.normalized(name)
        return try kernel.value(name)
    }

    /// All names, sorted; also of values that expired and were not removed.
    public func names() async throws -> [String] {
        for _ in 0..<Self.attempts {
            if let names = try kernel.names() { return names }
        }
        return try await updating {
            guard let names = try self.kernel.names() else { throw KeyringFailure.damaged("Keys vanish all the time.") }
            return names
        }
    }

    /// Sets or removes a secret; see ``/AssentCore/SecretStore/update(_:to:expected:)``.
    ///
    /// What expired, was revoked or damaged can be overwritten or removed when `expected` is `any`; what has expired
    /// also by its version. When this throws, the old value is still there.
    /// - Throws: ``/AssentCore/SecretStoreError``: `versionMismatch`, `quotaExceeded`, `busy`, and what reading throws.
    @discardableResult
    public func update(_ name: String, to value: Secret?, expected: ExpectedVersion) async throws -> UInt64 {
        let name = try SecretName.normalized(name)
        try SecretName.check(value)
        return try await updating { try self.kernel.update(name, to: value, expected: expected) }
    }

    /// Removes every secret, also what expired, was revoked or damaged, and also when all of the store was.
    public func removeAll() async throws {
        try await updating { try self.kernel.removeAll() }
    }

    /// Waits until no task and no other process with the same lock directory holds `name`.
    ///
    /// - Throws: ``/AssentCore/SecretStoreError`` with code `busy` at the deadline, `CancellationError` when cancelled.
    public func lease(_ name: String, deadline: Date) async throws -> any SecretLease {
        let name = try SecretName.normalized(name)
        let offset = VaultSealer.lockOffset(of: name, vaultID: Array(store.utf8))
        return try await lock(leases, name, offset, deadline)
    }

    private func lock(_ queue: NameQueue, _ name: String, _ offset: Int64, _ deadline: Date) async throws -> HeldLease {
        try await queue.hold(name, deadline: deadline, clock: clock) {
            do {
                // Opened each time: a directory of a temporary file system may be removed and made again.
                return try PosixDirectory(
                    lockDirectory, creating: true, privacy: .onlyThisUser, lockFile: lockFile
                ).tryLock(at: offset)
            } catch let failure as FileFailure {
                throw failure.asStoreError
            }
        }
    }

    private func updating<Result: Sendable>(_ body: () throws -> Result) async throws -> Result {
        // Not ended by cancellation: what a cancelled task got from a server must still be kept.
        let lock = try await Task {
            try await self.lock(updates, "", Self.updateLock, clock.now.addingTimeInterval(lockTimeout))
        }.value
        do {
            let result = try await retrying(body)
            await lock.release()
            return result
        } catch {
            await lock.release()
            throw error
        }
    }

    /// The kernel gives the quota of removed keys back in the background, a moment later.
    private func retrying<Result>(_ body: () throws -> Result) async throws -> Result {
        for attempt in 0..<Self.attempts {
            do {
                return try body()
            } catch let error as SecretStoreError where error.code == .quotaExceeded {
                let pause = 0.001 * Double(1 << attempt)
                await Task { try? await clock.sleep(until: clock.now.addingTimeInterval(pause)) }.value
            }
        }
        return try body()
    }
}
#endif
