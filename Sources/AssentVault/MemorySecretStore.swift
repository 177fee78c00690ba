public import AssentCore
public import Foundation

/// Secrets in this process's memory: for tests, and for what must not outlive the process.
///
/// It behaves as ``FileVault`` does, except that nothing is durable and no other process is excluded.
public actor MemorySecretStore: SecretStore {
    private var secrets: [String: StoredSecret] = [:]
    private var removed: [String: UInt64] = [:]
    private var floor: UInt64 = 0
    private let leases = NameQueue()
    private let clock: any WallClock

    /// An empty store. Deadlines of leases are judged by `clock`.
    public init(clock: any WallClock = SystemClock()) {
        self.clock = clock
    }

    /// The secret called `name`, or `nil` when there is none.
    public func value(_ name: String) throws -> StoredSecret? {
        secrets[try SecretName.normalized(name)]
    }

    /// Sets or removes a secret; see ``/AssentCore/SecretStore/update(_:to:expected:)``.
    ///
    /// - Throws: ``/AssentCore/SecretStoreError`` with code `versionMismatch` or `invalidInput`.
    @discardableResult
    public func update(_ name: String, to value: Secret?, expected: ExpectedVersion) throws -> UInt64 {
        let name = try SecretName.normalized(name)
        try SecretName.check(value)
        let live = secrets[name]?.version
        try expected.check(live)
        guard let value else {
            secrets[name] = nil
            if let live { removed[name] = live }
            if removed.count > VaultLimits.removedNames {
                floor = max(floor, removed.values.max() ?? 0)
                removed = [:]
            }
            return 0
        }
        guard live != nil || secrets.count < VaultLimits.entries else { throw SecretStoreError.tooMany }
        let version = (live ?? removed[name] ?? floor) + 1
        removed[name] = nil
        secrets[name] = StoredSecret(value: value, version: version)
        return version
    }

    /// All names, sorted.
    public func names() -> [String] {
        secrets.keys.sorted()
    }

    /// Removes every secret.
    public func removeAll() {
        floor = max(floor, secrets.values.map(\.version).max() ?? 0, removed.values.max() ?? 0)
        secrets = [:]
        removed = [:]
    }

    /// Waits until no task of this process holds `name`, in order of arrival.
    ///
    /// - Throws: ``/AssentCore/SecretStoreError`` with code `busy` at the deadline, `CancellationError` when cancelled.
    public func lease(_ name: String, deadline: Date) async throws -> any SecretLease {
        let turn = try await leases.acquire(try SecretName.normalized(name), deadline: deadline, clock: clock)
        return HeldLease { [leases] in leases.release(turn) }
    }
}

extension SecretStoreError {
    static let tooMany = SecretStoreError(
        .invalidInput, "A store holds at most \(VaultLimits.entries) secrets. Remove some that are not needed any more."
    )
}
