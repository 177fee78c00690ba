public import AssentCore
public import Foundation

/// Secrets in a directory of sealed files, crash-safe, for several processes at once.
///
/// Each value is a file of its own (AES-256-GCM, bound to vault, name and version); a manifest, authenticated by the key
/// that ``VaultKeyProvider`` guards, says which file is current. So a record that is swapped, missing, forged or rolled back
/// is detected (`tampered`), and the others stay readable. An update costs the same however many secrets there are, up to
/// the length of one of 64 lists of names.
///
/// What it cannot detect: putting back an old copy of the *whole* directory while no process has the vault open. That
/// needs a counter outside of the directory, which a software key does not have.
///
/// In memory, values are wiped when the last ``AssentCore/Secret`` is released; buffers of the cipher and of the file
/// system on the way there are not.
public actor FileVault: SecretStore {
    /// What the vault's file said when it was last read.
    struct Contents {
        let bytes: [UInt8]
        let header: VaultHeader
        let sealer: VaultSealer
        let manifest: VaultManifest
    }

    static let vaultFile = "vault"
    static let vaultFileLimit = 1 << 16
    static let shardLimit = 1 << 24
    private static let updateLock: Int64 = 0

    let files: any VaultDirectory
    let random: any RandomSource
    private let keys: any VaultKeyProvider
    private let clock: any WallClock
    private let lockTimeout: TimeInterval
    private let leases = NameQueue()
    private let updates = NameQueue()
    private let thread = FileThread()

    var contents: Contents?
    var shardCache: [UInt8: (file: SealedFile, shard: VaultShard)] = [:]
    var sweepIsDue = true

    /// Runs on a thread of its own: reading and writing files blocks.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    init(
        files: any VaultDirectory, keys: any VaultKeyProvider, clock: any WallClock, random: any RandomSource,
        lockTimeout: TimeInterval
    ) {
        self.files = files
        self.keys = keys
        self.clock = clock
        self.random = random
        self.lockTimeout = lockTimeout
    }

    /// Opens the vault in `directory`, which is made (mode 0700) when it is missing.
    ///
    /// - Parameters:
    ///   - directory: a directory for this vault alone, accessible to nobody else.
    ///   - keys: what guards the vault. A vault opens only with the key and the protection that it was made with.
    ///   - createIfMissing: whether to make a new vault when there is none.
    ///   - lockTimeout: how many seconds an update waits for other processes' updates.
    ///   - clock: judges deadlines.
    ///   - random: makes keys, salts and file names.
    /// - Returns: the open vault.
    /// - Throws: ``AssentCore/SecretStoreError``: `wrongKey`, `keyUnavailable`, `tampered`, `newerFormat`, `busy`,
    ///   `storageFailed`.
    public static func open(
        _ directory: URL, keys: any VaultKeyProvider, createIfMissing: Bool = true, lockTimeout: TimeInterval = 10,
        clock: any WallClock = SystemClock(), random: any RandomSource = SystemRandom()
    ) async throws -> FileVault {
        let files = try storing {
            try PosixDirectory(
                directory.path(percentEncoded: false), creating: createIfMissing, privacy: .onlyThisUser)
        }
        let vault = FileVault(files: files, keys: keys, clock: clock, random: random, lockTimeout: lockTimeout)
        try await vault.start(createIfMissing: createIfMissing)
        return vault
    }

    func start(createIfMissing: Bool) async throws {
        if try Self.storing({ try files.read(Self.vaultFile, limit: Self.vaultFileLimit) }) == nil {
            guard createIfMissing else {
                throw SecretStoreError(.storageFailed, "There is no vault in this directory. Check its path.")
            }
            try await create()
        }
        let current = try await current()
        // Housekeeping is no reason not to open: another process may be writing, or the disk may be read-only.
        if let lock = try? files.tryLock(at: Self.updateLock) {
            defer { lock.release() }
            if (try? files.read(Self.vaultFile, limit: Self.vaultFileLimit)) == current.bytes { try? sweep(current) }
        }
    }

    /// What guards the vault's key.
    public nonisolated var protection: KeyProtection { keys.protection }

    /// The secret called `name`, or `nil` when there is none. Never anything but what was stored under this name.
    ///
    /// - Throws: ``AssentCore/SecretStoreError`` with code `tampered` when this record is damaged; others stay readable.
    public func value(_ name: String) async throws -> StoredSecret? {
        let name = try SecretName.normalized(name)
        return try await reading { try self.value(name, in: $0) }
    }

    /// All names, sorted.
    public func names() async throws -> [String] {
        try await reading { contents in
            try contents.manifest.shards.keys.flatMap { try self.shard($0, in: contents).liveNames }.sorted()
        }
    }

    /// Sets or removes a secret; see ``AssentCore/SecretStore/update(_:to:expected:)``.
    ///
    /// A damaged record can be overwritten or removed. Cancelling the task does not stop it. When this throws, the old value is still there; only when the very
    /// last step failed (`storageFailed`) it may be the new one, so read it again.
    /// - Throws: ``AssentCore/SecretStoreError``: `versionMismatch`, `invalidInput`, `busy`, `tampered`, `storageFailed`.
    @discardableResult
    public func update(_ name: String, to value: Secret?, expected: ExpectedVersion) async throws -> UInt64 {
        let name = try SecretName.normalized(name)
        try SecretName.check(value)
        return try await updating { try self.apply(name, value, expected, to: $0) }
    }

    /// Removes every secret, also those that are damaged.
    public func removeAll() async throws {
        try await updating { try self.clear($0) }
    }

    /// Waits until no task and no other process holds `name`. Tasks of this vault take turns in order of arrival; between
    /// processes there is no order.
    ///
    /// - Throws: ``AssentCore/SecretStoreError`` with code `busy` at the deadline, `CancellationError` when cancelled.
    public func lease(_ name: String, deadline: Date) async throws -> any SecretLease {
        let name = try SecretName.normalized(name)
        let offset = VaultSealer.lockOffset(of: name, vaultID: try await current().header.vaultID)
        return try await lock(leases, name, offset, deadline)
    }

    /// How many tasks hold or wait for a lease on `name` through this vault.
    nonisolated func leaseCount(_ name: String) -> Int { leases.count(name) }

    private func lock(_ queue: NameQueue, _ name: String, _ offset: Int64, _ deadline: Date) async throws -> HeldLease {
        let turn = try await queue.acquire(name, deadline: deadline, clock: clock)
        do {
            var pause: TimeInterval = 0.001
            while true {
                if let lock = try Self.storing({ try files.tryLock(at: offset) }) {
                    return HeldLease {
                        lock.release()
                        queue.release(turn)
                    }
                }
                let now = clock.now
                guard now < deadline else { throw SecretStoreError.busy }
                try await clock.sleep(until: min(deadline, now.addingTimeInterval(pause)))
                pause = min(pause * 2, 0.05)
            }
        } catch {
            queue.release(turn)
            throw error
        }
    }

    private func updating<Result>(_ body: (Contents) throws -> Result) async throws -> Result {
        // Not ended by cancellation: what a cancelled task got from a server must still be kept.
        let lock = try await Task {
            try await self.lock(updates, "", Self.updateLock, clock.now.addingTimeInterval(lockTimeout))
        }.value
        do {
            let current = try await current()
            if sweepIsDue { try? sweep(current) }
            let result = try Self.storing { try body(current) }
            await lock.release()
            return result
        } catch {
            await lock.release()
            throw error
        }
    }

    /// Reads without a lock. When a file is gone because another process replaced it meanwhile, reads anew.
    private func reading<Result>(_ body: (Contents) throws -> Result) async throws -> Result {
        for _ in 0..<8 {
            let current = try await current()
            do {
                return try Self.storing { try body(current) }
            } catch is MissingFile {
                guard try Self.storing({ try files.read(Self.vaultFile, limit: Self.vaultFileLimit) }) != current.bytes
                else { throw SecretStoreError.tampered("A file of the vault is missing.") }
            }
        }
        return try await updating { contents in
            do { return try body(contents) } catch is MissingFile {
                throw SecretStoreError.tampered("A file of the vault is missing.")
            }
        }
    }

    private func create() async throws {
        let lock = try await lock(updates, "", Self.updateLock, clock.now.addingTimeInterval(lockTimeout))
        do {
            try await createLocked()
            await lock.release()
        } catch {
            await lock.release()
            throw error
        }
    }

    private func createLocked() async throws {
        let names = try Self.storing { try files.list() }
        if names.contains(Self.vaultFile) { return }
        guard !names.contains(where: { Self.isSealedFile($0) }) else {
            throw SecretStoreError.tampered("The vault's main file is missing, though there are records.")
        }
        let dataKey = Secret(bytes: random.bytes(VaultSealer.dataKeyLength))
        let vaultID = random.bytes(VaultHeader.identifierLength)
        let context = VaultHeader.context(vaultID: vaultID, protection: keys.protection, keyKind: keys.kind)
        let header = VaultHeader(
            vaultID: vaultID, protection: keys.protection, keyKind: keys.kind,
            sealedKey: try await keys.seal(dataKey, context: context))
        let sealer = VaultSealer(vaultID: vaultID, dataKey: dataKey)
        _ = try Self.storing { try commit(VaultManifest(), header: header, sealer: sealer) }
    }

    /// What the vault's file says now.
    func current() async throws -> Contents {
        let known = contents
        guard let bytes = try Self.storing({ try files.read(Self.vaultFile, limit: Self.vaultFileLimit) }) else {
            throw SecretStoreError.tampered("The vault's main file is missing.")
        }
        if let known, known.bytes == bytes { return known }
        let (header, sealedManifest) = try VaultHeader.split(bytes)
        if let known, known.header.vaultID != header.vaultID {
            throw SecretStoreError.tampered("Another vault was put in this one's place.")
        }
        let sealer: VaultSealer
        if let known, known.header == header {
            sealer = known.sealer
        } else {
            sealer = VaultSealer(vaultID: header.vaultID, dataKey: try await unseal(header))
        }
        let manifest = try sealer.manifest(opening: sealedManifest, header: header)
        if let known, manifest.generation <= known.manifest.generation {
            throw SecretStoreError.tampered("The whole vault was rolled back.")
        }
        let read = Contents(bytes: bytes, header: header, sealer: sealer, manifest: manifest)
        if manifest.generation > contents?.manifest.generation ?? 0 || contents == nil { contents = read }
        return read
    }

    private func unseal(_ header: VaultHeader) async throws -> Secret {
        guard header.protection == keys.protection else {
            throw SecretStoreError(
                .keyUnavailable,
                "This vault was made with \(header.protection.rawValue) protection. Open it with such a key; "
                    + "another protection needs an explicit change of key.")
        }
        guard header.keyKind == keys.kind else {
            throw SecretStoreError(
                .wrongKey, "A key of another kind sealed this vault. Use the kind that it was made with.")
        }
        let key = try await keys.unseal(header.sealedKey, context: header.context)
        guard key.count == VaultSealer.dataKeyLength else {
            throw SecretStoreError(.wrongKey, "The key provider answered with something that is no key.")
        }
        return key
    }

    static func storing<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let failure as FileFailure {
            throw failure.asStoreError
        } catch let uncertain as UncertainCommit {
            throw (uncertain.cause as? FileFailure)?.asStoreError ?? uncertain.cause
        }
    }
}

/// A file that the manifest names is not there.
struct MissingFile: Error {}
