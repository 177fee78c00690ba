#if TPM && os(Linux)
public import AssentCore
public import AssentVault
import Crypto
public import Foundation

/// Keys and counters in a TPM 2.0, through tpm2-tss (ESYS).
///
/// ```swift
/// let tpm = TPMKeyProvider(directory: directory.appending(path: "tpm"), pin: pin)
/// let vault = try await FileVault.open(directory, keys: .requireHardware(tpm))
/// ```
///
/// Keys are made in the TPM (P-256, bound to it) below a storage root key of the owner hierarchy. A TPM has no room for
/// keys, so each lies wrapped in a file of `directory`, of use to this TPM only. Their PIN is enforced by the TPM,
/// which refuses all of them for a time after too many wrong tries. A key whose file was exchanged for another's does
/// not answer to the user's PIN; *without* a PIN, anyone who may use the TPM can put a key of their own there.
///
/// Each operation has a connection and an encrypted session of its own. Someone who only listens on the bus learns
/// nothing. Someone who also changes what goes over it is not kept out, since nobody says beforehand which storage root
/// key is the right one.
///
/// Counters are NV indexes, by name, for the whole TPM: name them after a vault's id. Anyone who may use the TPM as
/// owner can make them jump ahead, never back, and can remove them, which is noticed.
public actor TPMKeyProvider: KeyProvider {
    private static let changeLock: Int64 = 0
    /// Its own, so that the keys may lie in the directory of a vault that is being changed.
    private static let lockFile = "tpm.lock"
    private static let suffixes: [TPMKeyUse: String] = [.signing: ".sign.tpm", .agreement: ".agree.tpm"]

    private let path: String
    private let tcti: String
    private let parent: TPMParent
    private let presence: (any UserPresence)?
    private let clock: any WallClock
    private let random: any RandomSource
    private let lockTimeout: TimeInterval

    private let thread = FileThread()
    private let turns = NameQueue()
    /// Known after it was right, so that it is asked for once.
    private var pin: Secret?

    /// Runs on a thread of its own: a TPM takes its time.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Keys of a TPM. Nothing is opened before the first call.
    ///
    /// - Parameters:
    ///   - directory: where the wrapped keys lie; made (mode 0700) with the first key.
    ///   - tcti: how to reach the TPM, as tpm2-tools take it.
    ///   - parent: the key below which keys are made.
    ///   - pin: who knows the PIN of the keys; `nil` for keys without one.
    ///   - lockTimeout: how many seconds a change waits for other processes.
    ///   - clock: bounds how long a change waits for other processes.
    ///   - random: makes names of temporary files.
    public init(
        directory: URL, tcti: String = TPMDefaults.tcti, parent: TPMParent = .ownerHierarchy,
        pin: (any UserPresence)?, lockTimeout: TimeInterval = 10, clock: any WallClock = SystemClock(),
        random: any RandomSource = SystemRandom()
    ) {
        path = directory.path(percentEncoded: false)
        self.tcti = tcti
        self.parent = parent
        presence = pin
        self.clock = clock
        self.random = random
        self.lockTimeout = lockTimeout
    }

    /// `tpm2`
    public nonisolated var kind: String { "tpm2" }

    /// A TPM is a device. (A simulated one, such as swtpm, says that it is, too.)
    public nonisolated var protection: KeyProtection { .hardware }

    /// What ``/AssentVault/KeyOptions`` can count on: keys in a chip that agree on secrets, and, when somebody was
    /// named who knows the PIN, the user's presence by it. There is no biometry.
    public nonisolated var capabilities: KeyCapabilities {
        KeyCapabilities(wrappings: [.ecies], hasSeparateChip: true, presence: presence == nil ? [] : [.pin])
    }

    /// Whether the TPM answers, can hold our storage root key, and is not locked against wrong PINs.
    public var availability: KeyAvailability {
        do {
            let tpm = try TPMConnection(tcti, parent: parent)
            let lockout = try tpm.lockout()
            if presence != nil, lockout.tries >= lockout.limit { throw TPMFailure.lockedOut(lockout.interval) }
            return .available
        } catch let error as KeyProviderError {
            return KeyAvailability(error)
        } catch let failure as TPMFailure {
            return KeyAvailability(failure.error)
        } catch {
            return .unavailable(reason: "The TPM cannot be asked.")
        }
    }

    /// The names of the keys whose files are in the directory.
    public func keyNames() async throws -> [String] {
        guard let files = try existingDirectory() else { return [] }
        return Set(try Self.guarded { try files.list() }.compactMap { Self.key($0)?.name }).sorted()
    }

    /// The ES256 key called `name`.
    public func signingKey(named name: String) async throws -> (any SigningKey)? {
        guard let found = try await find(name, .signing) else { return nil }
        return try TPMSigningKey(self, name, found)
    }

    /// Makes an ES256 key in the TPM; other algorithms are `unsupported`.
    public func makeSigningKey(named name: String, algorithm: SignatureAlgorithm) async throws -> any SigningKey {
        try KeyName.check(name)
        guard algorithm == .es256 else {
            throw KeyProviderError(.unsupported, "The TPM signs with ES256 only here. Ask for that.")
        }
        return try TPMSigningKey(self, name, try await make(name, .signing))
    }

    /// The key agreement key called `name`.
    public func agreementKey(named name: String) async throws -> (any KeyAgreementKey)? {
        try await find(name, .agreement).map { TPMAgreementKey(self, name, $0) }
    }

    /// Makes a P-256 key agreement key in the TPM.
    public func makeAgreementKey(named name: String) async throws -> any KeyAgreementKey {
        try KeyName.check(name)
        return TPMAgreementKey(self, name, try await make(name, .agreement))
    }

    /// Removes the files of the keys called `name`, and the counter from the TPM. A copy of a file that somebody kept
    /// works as long as the TPM is not cleared.
    public func removeKey(named name: String) async throws {
        try KeyName.check(name)
        if let files = try existingDirectory() {
            let lock = try await lock(files)
            defer { lock.release() }
            try Self.guarded {
                for suffix in Self.suffixes.values { try files.remove(name + suffix) }
                try files.syncDirectory()
            }
        }
        try await removeCounter(name)
    }

    /// The NV counter called `name`, or `nil` when the TPM has none of that name.
    public func rollbackCounter(named name: String) async throws -> (any RollbackCounter)? {
        try KeyName.check(name)
        return try await hasCounter(name) ? TPMCounter(self, name) : nil
    }

    /// Makes an NV counter; its first number is higher than any that a counter of this TPM ever had.
    public func makeRollbackCounter(named name: String) async throws -> (any RollbackCounter)? {
        try KeyName.check(name)
        try await makeCounter(name)
        return TPMCounter(self, name)
    }

    // MARK: Use

    /// Uses the key in the file called `name`, if it still is the one with this public point.
    func use<Result: Sendable>(
        _ name: String, _ use: TPMKeyUse, point: [UInt8], _ body: (TPMConnection, UInt32) throws -> Result
    ) async throws -> Result {
        guard let blob = try read(name, use) else {
            throw KeyProviderError(
                .keyLost, "The key's file is gone: somebody removed it. Restore it from a backup, or make another key.")
        }
        guard blob.blob.publicPart.point == point else { throw TPMFailure.changedKey }
        return try await withPIN { pin in
            try self.withKey(blob, use, pin: pin, body)
        }
    }

    private func withKey<Result>(
        _ blob: (blob: TPMKeyBlob, rootName: [UInt8]), _ use: TPMKeyUse, pin: Secret?,
        _ body: (TPMConnection, UInt32) throws -> Result
    ) throws -> Result {
        guard blob.blob.publicPart.isKey(use, hasPIN: presence != nil) else {
            throw KeyProviderError(
                .tampered,
                "The file's key is not as it was made here (use, PIN, or whether it may leave the TPM). Restore the file, "
                    + "or say whether there is a PIN as when the key was made.")
        }
        let tpm = try TPMConnection(tcti, parent: parent)
        guard tpm.rootName == blob.rootName else { throw TPMFailure.otherTPM }
        do {
            return try tpm.withKey(blob.blob, pin: pin) { try body(tpm, $0) }
        } catch let failure as TPMFailure where failure.error.code == .lockedOut {
            throw TPMFailure.lockedOut(try? tpm.lockout().interval)
        } catch let failure as TPMFailure where failure.error.code == .wrongSecret {
            let lockout = try tpm.lockout()
            guard lockout.tries < lockout.limit else { throw TPMFailure.lockedOut(lockout.interval) }
            let left = Int(lockout.limit - lockout.tries)
            throw KeyProviderError(
                .wrongSecret, failure.error.detail + " \(left) wrong tries are left before the TPM locks.",
                attemptsLeft: left)
        } catch let failure as TPMFailure where failure.action == "loading a key" && failure.response != nil {
            // Public and private part do not belong together, or one was changed.
            throw failure.error.code == .failed ? TPMFailure.changedKey : failure.error
        }
    }

    /// Calls `body` with the PIN, which is asked for until it is right, one caller at a time.
    private func withPIN<Result: Sendable>(_ body: (Secret?) throws -> Result) async throws -> Result {
        let turn = try await turns.acquire("", deadline: .distantFuture, clock: clock)
        defer { turns.release(turn) }
        guard presence != nil else { return try Self.mapped { try body(nil) } }
        return try await SecretTries.run(
            asking: { try await known(after: $0) },
            using: { candidate in
                do {
                    let result = try Self.mapped { try body(candidate) }
                    pin = candidate
                    return result
                } catch let error as KeyProviderError where error.code == .wrongSecret {
                    pin = nil
                    throw error
                }
            })
    }

    private func known(after wrong: KeyProviderError?) async throws -> Secret {
        if let pin { return pin }
        return try await ask(.pin, after: wrong)
    }

    private func ask(_ kind: PresenceRequest.Kind, after wrong: KeyProviderError?) async throws -> Secret {
        guard let presence else {
            throw KeyProviderError(.userAbsent, "The key needs a PIN, and nobody was named who knows it. Give the PIN.")
        }
        let answer = try await presence.secret(
            for: PresenceRequest(
                kind, providerName: "TPM", attemptsLeft: wrong?.attemptsLeft, isRetry: wrong != nil))
        guard (1...255).contains(answer.count) else {
            throw KeyProviderError(.invalidInput, "A PIN has 1 to 255 bytes. Enter the right one.")
        }
        return answer
    }

    private func find(_ name: String, _ use: TPMKeyUse) async throws -> [UInt8]? {
        try KeyName.check(name)
        guard let blob = try read(name, use) else { return nil }
        guard let point = blob.blob.publicPart.point else { throw TPMFailure.changedKey }
        // The TPM accepts the public part only together with its private part, and the PIN shows whose key it is.
        try await withPIN { pin in try self.withKey(blob, use, pin: pin) { try self.prove($0, $1, use, point) } }
        return point
    }

    private func prove(_ tpm: TPMConnection, _ key: UInt32, _ use: TPMKeyUse, _ point: [UInt8]) throws {
        switch use {
        case .signing:
            _ = try tpm.sign(Array(SHA256.hash(data: random.bytes(32) + Array("assent key check".utf8))), key: key)
        case .agreement:
            _ = try tpm.agree(Array(P256.KeyAgreement.PrivateKey().publicKey.x963Representation), key: key)
        }
    }

    private func make(_ name: String, _ use: TPMKeyUse) async throws -> [UInt8] {
        let files = try Self.guarded { try directory(creating: true) }
        try await settlePIN(files)
        let lock = try await lock(files)
        defer { lock.release() }
        let file = name + (Self.suffixes[use] ?? "")
        let exists = KeyProviderError(
            .keyExists, "There is a key called \(name) already. Find it, or choose another name.")
        guard try Self.guarded({ try files.read(file, limit: TPMKeyBlob.sizeLimit, isPrivate: true) }) == nil else {
            throw exists
        }
        let (blob, bytes) = try Self.mapped {
            let tpm = try TPMConnection(tcti, parent: parent)
            let blob = try tpm.create(use, pin: pin)
            return (blob, try blob.encoded(rootName: tpm.rootName))
        }
        guard blob.publicPart.isKey(use, hasPIN: presence != nil), let point = blob.publicPart.point else {
            throw TPMFailure.nonsense("a key of another kind than was asked for")
        }
        try Self.guarded {
            let temporary = ".\(Hex.encode(random.bytes(8))).tmp"
            defer { try? files.remove(temporary) }
            try files.writeDurably(bytes, to: temporary)
            guard try files.link(temporary, to: file) else { throw exists }
            try files.syncDirectory()
        }
        return point
    }

    /// All keys of a directory have one PIN: a new key gets that of the others, or a new one when it is the first.
    private func settlePIN(_ files: PosixDirectory) async throws {
        guard presence != nil, pin == nil else { return }
        for file in try Self.guarded({ try files.list() }).sorted() {
            guard let (name, use) = Self.key(file) else { continue }
            _ = try await find(name, use)
            return
        }
        let turn = try await turns.acquire("", deadline: .distantFuture, clock: clock)
        defer { turns.release(turn) }
        if pin == nil { pin = try await ask(.newPIN, after: nil) }
    }

    // MARK: Files

    private func read(_ name: String, _ use: TPMKeyUse) throws -> (blob: TPMKeyBlob, rootName: [UInt8])? {
        guard let files = try existingDirectory() else { return nil }
        let file = name + (Self.suffixes[use] ?? "")
        guard let bytes = try Self.guarded({ try files.read(file, limit: TPMKeyBlob.sizeLimit, isPrivate: true) })
        else {
            return nil
        }
        return try TPMKeyBlob.decode(bytes)
    }

    private static func key(_ file: String) -> (name: String, use: TPMKeyUse)? {
        for (use, suffix) in suffixes where file.hasSuffix(suffix) {
            let name = String(file.dropLast(suffix.count))
            if (try? KeyName.check(name)) != nil { return (name, use) }
        }
        return nil
    }

    private func directory(creating: Bool) throws -> PosixDirectory {
        try PosixDirectory(path, creating: creating, privacy: .onlyThisUser, lockFile: Self.lockFile)
    }

    private func existingDirectory() throws -> PosixDirectory? {
        try Self.guarded {
            do {
                return try directory(creating: false)
            } catch let failure as FileFailure {
                guard case .missing = failure.reason else { throw failure }
                return nil
            }
        }
    }

    func lock(_ files: PosixDirectory) async throws -> any FileLock {
        let deadline = clock.now.addingTimeInterval(lockTimeout)
        let lock = try await clock.poll(until: deadline) {
            try Self.guarded { try files.tryLock(at: Self.changeLock) }
        }
        guard let lock else {
            throw KeyProviderError(
                .unavailable, "Another process is changing keys or counters. Try again, or see which one hangs.")
        }
        return lock
    }

    // MARK: Counters

    private func hasCounter(_ name: String) async throws -> Bool {
        try await withCounter(name) { _, counter in counter != nil }
    }

    /// One caller at a time, in all processes that share the directory: increasing and reading are two steps.
    func withCounter<Result: Sendable>(
        _ name: String, _ body: (TPMConnection, UInt32?) throws -> Result
    ) async throws -> Result {
        let files = try Self.guarded { try directory(creating: true) }
        let lock = try await lock(files)
        defer { lock.release() }
        return try Self.mapped {
            let tpm = try TPMConnection(tcti, parent: parent)
            let place = try TPMCounterPlace(name).find(in: tpm)
            if let place, !place.isCounted { try tpm.increment(place.handle) }
            return try body(tpm, place?.handle)
        }
    }

    private func makeCounter(_ name: String) async throws {
        try await withCounter(name) { tpm, counter in
            guard counter == nil else {
                throw KeyProviderError(
                    .keyExists, "The TPM has a counter called \(name) already. Find it, or choose another name.")
            }
            try TPMCounterPlace(name).make(in: tpm)
        }
    }

    private func removeCounter(_ name: String) async throws {
        guard try existingDirectory() != nil else { return }
        try await withCounter(name) { tpm, counter in if let counter { try tpm.undefine(counter) } }
    }

    private static func mapped<Result>(_ body: () throws -> Result) throws -> Result {
        do { return try body() } catch let failure as TPMFailure { throw failure.error }
    }

    private static func guarded<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let failure as FileFailure {
            throw KeyProviderError(.unavailable, "The directory of the TPM's keys cannot be used. " + failure.advice)
        }
    }
}

/// The key of a TPM below which keys are made, and which wraps them.
public enum TPMParent: Hashable, Sendable {
    /// A storage root key that is derived from the owner hierarchy's seed each time. Needs an owner without a password.
    case ownerHierarchy
    /// A persistent storage key by its handle, for example `0x81000001`, which the owner has made. A real TPM is faster
    /// so.
    case persistent(UInt32)
}
#endif
