public import AssentCore
public import Foundation

/// Secrets in a directory of sealed files, crash-safe, for several processes at once.
///
/// Each value is a file of its own (AES-256-GCM under a random data key, bound to vault, store, name and version); one
/// manifest says which file is current. Header and manifest are signed by a key that only the
/// ``/AssentCore/KeyProvider`` can use and whose public part comes from it, and the data key is wrapped to another such
/// key (``ECIES``). So a record that is swapped, missing, forged or rolled back is detected, and the others stay
/// readable. An update costs the same however many secrets there are, up to the length of one of 64 lists of names.
///
/// Putting back an old copy of the *whole* directory while no process has the vault open is detected only where the
/// provider has a ``/AssentCore/RollbackCounter``; ``VaultInfo/isRollbackProtected`` says whether it has.
///
/// In memory, values are wiped when the last ``/AssentCore/Secret`` is released, and so are the buffers that the cipher
/// wrote them to; copies that the operating system or a caller made are not. `docs/vault.md` has the format and the
/// errors.
public actor FileVault: SecretStore {
    /// What the vault's file said when it was last read, and who vouches for it.
    struct Contents {
        let bytes: [UInt8]
        let header: VaultHeader
        let sealer: VaultSealer
        let providerKeys: ProviderKeys
        let manifest: VaultManifest
    }

    static let vaultFile = "vault"
    static let shardLimit = 1 << 24
    private static let updateLock: Int64 = 0
    private static let readAttempts = 8

    /// Which of an app's stores it is.
    public nonisolated let store: String

    let files: any VaultDirectory
    let random: any RandomSource
    private let clock: any WallClock
    private let lockTimeout: TimeInterval
    private let leases = NameQueue()
    private let updates = NameQueue()
    private let thread = FileThread()

    var keys: VaultProviders
    let surroundings: VaultSurroundings
    var contents: Contents?
    var shardCache: [UInt8: (file: SealedFile, shard: VaultShard)] = [:]
    var sweepIsDue = true

    /// Runs on a thread of its own: reading and writing files blocks.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    init(
        files: any VaultDirectory, store: String, keys: VaultKeys, surroundings: VaultSurroundings,
        lockTimeout: TimeInterval
    ) {
        self.files = files
        self.store = store
        self.keys = keys.providers(for: surroundings)
        self.surroundings = surroundings
        clock = surroundings.clock
        random = surroundings.random
        self.lockTimeout = lockTimeout
    }

    /// Opens the vault in `directory`, which is made (mode 0700) when it is missing.
    ///
    /// - Parameters:
    ///   - directory: a directory for this vault alone, accessible to nobody else.
    ///   - store: which of the app's stores it is, 1 to 200 bytes. A vault opens only under the name that it was made
    ///     with, so that one of the same user's vaults cannot be put in another's place.
    ///   - keys: what may guard the vault, and how much protection is insisted on. A vault opens only with the provider
    ///     that it was made with; see ``rekey(to:)``.
    ///   - createIfMissing: whether to make a new vault when there is none.
    ///   - lockTimeout: how many seconds an update waits for other processes' updates.
    ///   - clock: judges deadlines.
    ///   - random: makes keys, salts and file names.
    /// - Returns: the open vault.
    /// - Throws: ``/AssentCore/SecretStoreError``: `keyUnavailable`, `keyLocked`, `keyLost`, `wrongKey`,
    ///   `protectionMismatch`, `truncated`, `tampered`, `rolledBack`, `anotherStore`, `newerFormat`, `olderFormat`,
    ///   `absent`, `busy`, `diskFull`, `notPermitted`, `storageFailed`; `CancellationError`.
    public static func open(
        _ directory: URL, store: String = "default", keys: VaultKeys, createIfMissing: Bool = true,
        lockTimeout: TimeInterval = 10, clock: any WallClock = SystemClock(), random: any RandomSource = SystemRandom()
    ) async throws -> FileVault {
        try VaultHeader.check(store: store)
        let surroundings = VaultSurroundings(directory: directory, clock: clock, random: random)
        let path = directory.path(percentEncoded: false)
        let files: PosixDirectory
        if let existing = try storing({ try PosixDirectory.existing(path, privacy: .onlyThisUser) }) {
            files = existing
        } else {
            guard createIfMissing else { throw noVault }
            // Where nothing can guard a vault, not even its directory is made.
            _ = try await keys.providers(for: surroundings).providerForNewVault()
            files = try storing { try PosixDirectory(path, creating: true, privacy: .onlyThisUser) }
        }
        #if canImport(Darwin)
        try excludeFromBackup(directory)
        #endif
        let vault = FileVault(
            files: files, store: store, keys: keys, surroundings: surroundings, lockTimeout: lockTimeout)
        try await vault.start(createIfMissing: createIfMissing)
        return vault
    }

    static let noVault = SecretStoreError(.absent, "There is no vault in this directory. Check its path.")
    static let mainFileMissing = SecretStoreError.tampered(
        "The vault's main file is missing, though there are records.")

    func start(createIfMissing: Bool) async throws {
        if try Self.storing({ try files.read(Self.vaultFile, limit: VaultFile.sizeLimit) }) == nil {
            guard createIfMissing else {
                let hasRecords = try Self.storing { try files.list().contains { Self.isSealedFile($0) } }
                throw hasRecords ? Self.mainFileMissing : Self.noVault
            }
            try await create()
        }
        let current = try await current()
        // Housekeeping that fails does not keep the vault shut: another process may be writing, or the disk may be
        // read-only.
        if let lock = try? files.tryLock(at: Self.updateLock) {
            defer { lock.release() }
            if (try? files.read(Self.vaultFile, limit: VaultFile.sizeLimit)) == current.bytes { try? sweep(current) }
        }
    }

    /// The secret called `name`, or `nil` when there is none. Never anything but what was stored under this name.
    ///
    /// - Throws: ``/AssentCore/SecretStoreError`` with code `tampered` or `truncated` when this record is damaged;
    ///   others stay readable.
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

    /// Sets or removes a secret; see ``/AssentCore/SecretStore/update(_:to:expected:)``.
    ///
    /// A damaged record can be overwritten or removed. Cancelling the task does not stop it. When this throws, the old
    /// value is still there; only when the very last step failed (`diskFull`, `storageFailed`, `keyUnavailable`) it may
    /// be the new one, so read it again.
    /// - Throws: ``/AssentCore/SecretStoreError``: `versionMismatch`, `invalidInput`, and what opening a vault throws.
    @discardableResult
    public func update(_ name: String, to value: Secret?, expected: ExpectedVersion) async throws -> UInt64 {
        let name = try SecretName.normalized(name)
        try SecretName.check(value)
        // What a cancelled task got from a server must still be kept, and a device, whose callers take turns, gives a
        // cancelled task none.
        return try await Task {
            try await updating { try await self.apply(name, value, expected, to: $0) }
        }.value
    }

    /// Removes every secret, also those that are damaged.
    public func removeAll() async throws {
        try await Task { try await updating { try await self.clear($0) } }.value
    }

    /// Waits until no task and no other process holds `name`. Tasks of this vault take turns in order of arrival;
    /// between processes there is no order.
    ///
    /// - Throws: ``/AssentCore/SecretStoreError`` with code `busy` at the deadline, `CancellationError` when cancelled.
    public func lease(_ name: String, deadline: Date) async throws -> any SecretLease {
        let name = try SecretName.normalized(name)
        let offset = VaultSealer.lockOffset(of: name, vaultID: try await current().header.vaultID)
        return try await lock(leases, name, offset, deadline)
    }

    /// How many tasks hold or wait for a lease on `name` through this vault.
    nonisolated func leaseCount(_ name: String) -> Int { leases.count(name) }

    private func lock(_ queue: NameQueue, _ name: String, _ offset: Int64, _ deadline: Date) async throws -> HeldLease {
        try await queue.hold(name, deadline: deadline, clock: clock) {
            try Self.storing { try files.tryLock(at: offset) }
        }
    }

    func updating<Result>(_ body: (Contents) async throws -> Result) async throws -> Result {
        // Not ended by cancellation: what a cancelled task got from a server must still be kept.
        let lock = try await Task {
            try await self.lock(updates, "", Self.updateLock, clock.now.addingTimeInterval(lockTimeout))
        }.value
        do {
            let current = try await current()
            if sweepIsDue { try? sweep(current) }
            let result: Result
            do { result = try await body(current) } catch { throw Self.storeError(error) }
            await lock.release()
            return result
        } catch {
            await lock.release()
            throw error
        }
    }

    /// Reads without a lock. When a file is gone because another process replaced it meanwhile, reads anew.
    func reading<Result>(_ body: (Contents) throws -> Result) async throws -> Result {
        for _ in 0..<Self.readAttempts {
            let current = try await current()
            do {
                return try Self.storing { try body(current) }
            } catch is MissingFile {
                guard try Self.storing({ try files.read(Self.vaultFile, limit: VaultFile.sizeLimit) }) != current.bytes
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
            throw Self.storeError(error)
        }
    }

    private func createLocked() async throws {
        let names = try files.list()
        if names.contains(Self.vaultFile) { return }
        guard !names.contains(where: { Self.isSealedFile($0) }) else { throw Self.mainFileMissing }
        let vaultID = random.bytes(VaultHeader.identifierLength)
        let provider = try await keys.providerForNewVault()
        let providerKeys = try await ProviderKeys.make(vaultID: vaultID, epoch: 1, provider: provider)
        do {
            let (header, sealer) = try await seal(
                vaultID: vaultID, epoch: 1, providerKeys: providerKeys, level: keys.level)
            try await commit(VaultManifest(), header: header, sealer: sealer, providerKeys: providerKeys)
        } catch let uncertain as UncertainCommit {
            throw uncertain
        } catch {
            try? await providerKeys.remove()
            throw error
        }
    }

    /// A header with a fresh data key, wrapped for `providerKeys`.
    func seal(
        vaultID: [UInt8], epoch: UInt32, providerKeys: ProviderKeys, level: ProtectionLevel
    ) async throws -> (VaultHeader, VaultSealer) {
        let dataKey = Secret(bytes: random.bytes(VaultSealer.dataKeyLength))
        let provider = providerKeys.provider
        let header = VaultHeader(
            vaultID: vaultID, store: store, level: level, protection: provider.protection, kind: provider.kind,
            epoch: epoch, keyDerivation: try await ProviderKeys.asking { try await provider.keyDerivation ?? "" },
            hasCounter: providerKeys.counter != nil, fingerprint: providerKeys.fingerprint,
            wrappedKey: try await providerKeys.wrap(dataKey))
        return (header, VaultSealer(vaultID: vaultID, store: store, dataKey: dataKey))
    }

    /// What the vault's file says now, once its signature was verified.
    func current() async throws -> Contents {
        for _ in 0..<Self.readAttempts {
            let known = contents
            guard let bytes = try Self.storing({ try readVaultFile() }) else {
                throw SecretStoreError.tampered("The vault's main file is missing.")
            }
            if let known, known.bytes == bytes { return known }
            let file = try VaultFile(decoding: bytes)
            guard file.header.store == store, known?.header.vaultID ?? file.header.vaultID == file.header.vaultID else {
                throw SecretStoreError(
                    .anotherStore,
                    "Another vault is in this one's place, one for \(file.header.store.debugDescription). "
                        + "Put the right one back, or give the right directory.")
            }
            let (providerKeys, sealer) = try await verify(file, known: known)
            let manifest = try sealer.manifest(opening: file.sealedManifest, header: file.header)
            if let known, manifest.generation <= known.manifest.generation { throw SecretStoreError.rolledBack }
            guard try await isCurrent(manifest, bytes: bytes, providerKeys: providerKeys) else { continue }
            let read = Contents(
                bytes: bytes, header: file.header, sealer: sealer, providerKeys: providerKeys, manifest: manifest)
            if manifest.generation > contents?.manifest.generation ?? 0 || contents == nil { contents = read }
            return read
        }
        throw SecretStoreError.busy
    }

    private func readVaultFile() throws -> [UInt8]? {
        do {
            return try files.read(Self.vaultFile, limit: VaultFile.sizeLimit)
        } catch let failure as FileFailure {
            guard case .tooLong = failure.reason else { throw failure }
            throw SecretStoreError.tampered("The vault's main file is longer than it can be.")
        }
    }

    private func verify(_ file: VaultFile, known: Contents?) async throws -> (ProviderKeys, VaultSealer) {
        let header = file.header
        let isKnown = known?.header == header
        let providerKeys: ProviderKeys
        if let known, isKnown {
            providerKeys = known.providerKeys
        } else {
            providerKeys = try await ProviderKeys.find(header, keys: keys)
        }
        guard ConstantTime.equal(providerKeys.fingerprint, header.fingerprint) else {
            throw SecretStoreError(
                .wrongKey, "Another key made this vault. Use the key file, token or passphrase that it was made with.")
        }
        guard providerKeys.isSignature(file.signature, of: file.signed) else {
            throw SecretStoreError.tampered("The vault's main file is not what its key signed.")
        }
        if let known, isKnown { return (providerKeys, known.sealer) }
        let derivation = try await ProviderKeys.asking { try await providerKeys.provider.keyDerivation ?? "" }
        guard derivation == header.keyDerivation else {
            throw SecretStoreError.tampered(
                "The key file's scrypt parameters are not those that the vault was made with.")
        }
        let dataKey = try await providerKeys.unwrap(header.wrappedKey)
        return (providerKeys, VaultSealer(vaultID: header.vaultID, store: header.store, dataKey: dataKey))
    }

    /// Compares with the counter outside of the vault. `false` when the file was replaced meanwhile.
    private func isCurrent(_ manifest: VaultManifest, bytes: [UInt8], providerKeys: ProviderKeys) async throws -> Bool {
        guard let counter = providerKeys.counter else { return true }
        let value = try await ProviderKeys.asking { try await counter.value() }
        // The counter follows the file: what is on the disk after the counter was read is not behind it.
        guard try Self.storing({ try readVaultFile() }) == bytes else { return false }
        if manifest.counter < value { throw SecretStoreError.rolledBack }
        guard manifest.counter > value, manifest.counter - value > 1 else { return true }
        let later = try await ProviderKeys.asking { try await counter.value() }
        guard manifest.counter > later, manifest.counter - later > 1 else { return true }
        throw SecretStoreError(
            .rolledBack,
            "The counter against rollback shows less than the vault: it was set back or exchanged. Check the device; if "
                + "it is in order, remove the vault and sign in again.")
    }

    static func storing<Result>(_ body: () throws -> Result) throws -> Result {
        do { return try body() } catch { throw storeError(error) }
    }

    static func storeError(_ error: any Error) -> any Error {
        switch error {
        case let failure as FileFailure: failure.asStoreError
        case let uncertain as UncertainCommit: storeError(uncertain.cause)
        default: error
        }
    }
}

/// A file that the manifest names is not there.
struct MissingFile: Error {}
