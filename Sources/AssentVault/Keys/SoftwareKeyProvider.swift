public import AssentCore
import Crypto
public import Foundation

/// Private keys in a file of their own: P-256, for signing (ES256) and for key agreement.
///
/// Under a passphrase (scrypt, RFC 7914) someone who gets the file can try passphrases, each at the cost of
/// ``ScryptCost``. Without one the keys are ``/AssentCore/KeyProtection/unprotected``: anyone who can read the file has
/// them; keep it off the backups that hold the vault.
///
/// The file is made with the first key, with mode 0600. It must be a regular file of the user who runs this, readable
/// by nobody else, in a directory that nobody else can write to. Several processes may use one file.
public actor SoftwareKeyProvider: KeyProvider {
    /// Whether a passphrase seals the file, and who knows it.
    private enum Sealing {
        case unprotected
        case passphrase(any UserPresence, cost: ScryptCost)
    }

    private let name: String
    private var sealing: Sealing
    private let directory: @Sendable (_ creating: Bool) throws -> any VaultDirectory
    private let random: any RandomSource
    private let clock: any WallClock
    private let lockTimeout: TimeInterval
    private let thread = FileThread()
    private var unsealed: (seal: KeyFile.Seal, key: SymmetricKey)?

    /// Runs on a thread of its own: files and scrypt block.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Keys in `file`, under a passphrase that `passphrase` knows or asks for.
    ///
    /// It is asked for at the first use and then remembered, as the key that scrypt made of it, until this is released.
    /// `cost` is for a new file; a file that exists has its own. A change waits `lockTimeout` seconds for other
    /// processes.
    public init(
        file: URL, passphrase: any UserPresence, cost: ScryptCost = .standard, lockTimeout: TimeInterval = 30,
        random: any RandomSource = SystemRandom(), clock: any WallClock = SystemClock()
    ) {
        self.init(
            name: file.lastPathComponent, sealing: .passphrase(passphrase, cost: cost), lockTimeout: lockTimeout,
            random: random, clock: clock, directory: Self.opener(file))
    }

    /// Keys in `file`, which everybody who can read it can use. A change waits `lockTimeout` seconds for other
    /// processes.
    public init(
        unprotectedFile file: URL, lockTimeout: TimeInterval = 30, random: any RandomSource = SystemRandom(),
        clock: any WallClock = SystemClock()
    ) {
        self.init(
            name: file.lastPathComponent, sealing: .unprotected, lockTimeout: lockTimeout, random: random,
            clock: clock, directory: Self.opener(file))
    }

    /// Keys in a file of `directory`, for tests.
    init(
        name: String, passphrase: (any UserPresence)? = nil, cost: ScryptCost = .standard,
        directory: @escaping @Sendable (_ creating: Bool) throws -> any VaultDirectory
    ) {
        self.init(
            name: name, sealing: passphrase.map { .passphrase($0, cost: cost) } ?? .unprotected, lockTimeout: 30,
            random: SystemRandom(), clock: SystemClock(), directory: directory)
    }

    private init(
        name: String, sealing: Sealing, lockTimeout: TimeInterval, random: any RandomSource, clock: any WallClock,
        directory: @escaping @Sendable (_ creating: Bool) throws -> any VaultDirectory
    ) {
        self.name = name
        self.sealing = sealing
        protection =
            switch sealing {
            case .unprotected: .unprotected
            case .passphrase: .software
            }
        self.random = random
        self.clock = clock
        self.lockTimeout = lockTimeout
        self.directory = directory
    }

    private static func opener(_ file: URL) -> @Sendable (Bool) throws -> any VaultDirectory {
        let parent = file.deletingLastPathComponent().path(percentEncoded: false)
        let lock = file.lastPathComponent + ".lock"
        return { creating in
            try PosixDirectory(parent, creating: creating, privacy: .othersMustNotWrite, lockFile: lock)
        }
    }

    /// `software`
    public nonisolated var kind: String { "software" }

    /// `software` under a passphrase, `unprotected` without one.
    public nonisolated let protection: KeyProtection

    /// Whether the file can be read, or can be made.
    public var availability: KeyAvailability {
        do {
            guard let content = try read() else { return .available }
            _ = try matchingSeal(of: content)
            return .available
        } catch let error as KeyProviderError {
            return .unavailable(reason: error.detail)
        } catch {
            return .unavailable(reason: "The key file cannot be read.")
        }
    }

    /// The parameters of scrypt of the file, or of the file that would be made; `nil` without a passphrase.
    public var keyDerivation: String? {
        get throws {
            guard case .passphrase(_, let cost) = sealing else { return nil }
            guard let content = try read() else { return cost.description }
            return try matchingSeal(of: content)?.cost.description
        }
    }

    /// The names of all keys in the file.
    public func keyNames() async throws -> [String] {
        Set(try await load()?.keys.keys.map(\.name) ?? []).sorted()
    }

    /// The ES256 key called `name`.
    public func signingKey(named name: String) async throws -> (any SigningKey)? {
        try await find(KeyFile.Slot(name: name, kind: .signing)).map { key in
            try Self.made { try SoftwareSigner(key) }
        }
    }

    /// Makes an ES256 key; other algorithms are `unsupported`.
    public func makeSigningKey(named name: String, algorithm: SignatureAlgorithm) async throws -> any SigningKey {
        try KeyName.check(name)
        guard algorithm == .es256 else {
            throw KeyProviderError(.unsupported, "Software keys here sign with ES256 only. Ask for that.")
        }
        let raw = P256.Signing.PrivateKey().rawRepresentation
        let key = Secret(SymmetricKey(data: raw))
        try await add(key, at: KeyFile.Slot(name: name, kind: .signing))
        return try Self.made { try SoftwareSigner(key) }
    }

    /// The key agreement key called `name`.
    public func agreementKey(named name: String) async throws -> (any KeyAgreementKey)? {
        try await find(KeyFile.Slot(name: name, kind: .agreement)).map { key in
            try Self.made { try SoftwareAgreement(key) }
        }
    }

    /// Makes a P-256 key agreement key.
    public func makeAgreementKey(named name: String) async throws -> any KeyAgreementKey {
        try KeyName.check(name)
        let raw = P256.KeyAgreement.PrivateKey().rawRepresentation
        let key = Secret(SymmetricKey(data: raw))
        try await add(key, at: KeyFile.Slot(name: name, kind: .agreement))
        return try Self.made { try SoftwareAgreement(key) }
    }

    /// Removes the keys called `name` from the file. What the disk itself still holds of the old file cannot be wiped.
    public func removeKey(named name: String) async throws {
        try KeyName.check(name)
        let slots = [KeyFile.Kind.signing, .agreement].map { KeyFile.Slot(name: name, kind: $0) }
        guard let file = try await load(), slots.contains(where: { file.keys[$0] != nil }) else { return }
        try await change { file in for slot in slots { file.keys[slot] = nil } }
    }

    /// Seals the file anew under another passphrase and a fresh salt, at once and whole, for this and all other
    /// processes.
    ///
    /// The keys stay the same: an old copy of the file still opens with the old passphrase. Change the vault's key
    /// afterwards (``FileVault/rekey(to:)``), so that such a copy is worth nothing.
    /// The cost stays, since a vault remembers it.
    /// - Parameter passphrase: knows or asks for the new passphrase; from now on it answers for this provider.
    /// - Throws: ``/AssentCore/KeyProviderError`` with code `unsupported` without a passphrase, `unavailable` without a
    ///   file.
    public func changePassphrase(to passphrase: any UserPresence) async throws {
        guard case .passphrase(_, let cost) = sealing else {
            throw KeyProviderError(
                .unsupported, "This key file has no passphrase. Move the vault to a file with one: assent vault rekey.")
        }
        let directory = try Self.guarded { try self.directory(false) }
        let lock = try await lock(directory)
        defer { lock.release() }
        guard let content = try read(), let old = try await decode(content).seal else {
            throw KeyProviderError(.unavailable, "There is no key file yet, so there is no passphrase to change.")
        }
        let file = try await decode(content).file
        let chosen = try await Self.checked(
            passphrase.secret(for: PresenceRequest(.newPassphrase, providerName: name)))
        let seal = KeyFile.Seal(cost: old.cost, salt: random.bytes(KeyFile.Seal.saltLength))
        let key = try seal.cost.key(chosen, salt: seal.salt)
        let bytes = try file.encoded(seal: seal, key: key)
        try Self.guarded { try replace(with: bytes, in: directory) }
        sealing = .passphrase(passphrase, cost: cost)
        unsealed = (seal, key)
    }

    private func find(_ slot: KeyFile.Slot) async throws -> Secret? {
        try KeyName.check(slot.name)
        return try await load()?.keys[slot]
    }

    private func add(_ key: Secret, at slot: KeyFile.Slot) async throws {
        try await change { file in
            guard file.keys[slot] == nil else {
                throw KeyProviderError(
                    .keyExists, "There is a key called \(slot.name) already. Find it, or choose another name.")
            }
            file.keys[slot] = key
        }
    }

    private func load() async throws -> KeyFile? {
        guard let content = try read() else { return nil }
        return try await decode(content).file
    }

    private func decode(_ content: [UInt8]) async throws -> (file: KeyFile, seal: KeyFile.Seal?, key: SymmetricKey?) {
        guard let seal = try matchingSeal(of: content) else {
            return (try KeyFile(decoding: content, key: nil), nil, nil)
        }
        if let unsealed, unsealed.seal == seal {
            return (try KeyFile(decoding: content, key: unsealed.key), seal, unsealed.key)
        }
        return try await SecretTries.run(
            asking: { wrong in try await ask(.passphrase, isRetry: wrong != nil) },
            using: { passphrase in
                let key = try seal.cost.key(passphrase, salt: seal.salt)
                let file = try KeyFile(decoding: content, key: key)
                unsealed = (seal, key)
                return (file, seal, key)
            })
    }

    private func ask(_ kind: PresenceRequest.Kind, isRetry: Bool = false) async throws -> Secret {
        guard case .passphrase(let presence, _) = sealing else { throw KeyProviderError.damagedFile }
        return try Self.checked(
            await presence.secret(for: PresenceRequest(kind, providerName: name, isRetry: isRetry)))
    }

    private static func checked(_ passphrase: Secret) throws -> Secret {
        guard (1...1_024).contains(passphrase.count) else {
            throw KeyProviderError(.invalidInput, "A passphrase has 1 to 1,024 bytes. Enter another.")
        }
        return passphrase
    }

    /// How the file is sealed, which must be what this provider was made for.
    private func matchingSeal(of content: [UInt8]) throws -> KeyFile.Seal? {
        let seal = try KeyFile.seal(of: content)
        switch (sealing, seal) {
        case (.unprotected, nil), (.passphrase, _?): return seal
        case (.unprotected, _?):
            throw KeyProviderError(.unavailable, "The key file is under a passphrase. Give the passphrase.")
        case (.passphrase, nil):
            throw KeyProviderError(
                .unavailable,
                "The key file is not under a passphrase. Name the right file; to protect the vault, change its key.")
        }
    }

    private func read() throws -> [UInt8]? {
        try Self.guarded {
            do {
                return try directory(false).read(name, limit: KeyFile.sizeLimit, isPrivate: true)
            } catch let failure as FileFailure {
                guard case .missing = failure.reason else { throw failure }
                return nil
            }
        }
    }

    /// Reads, changes and replaces the file while no other process does.
    private func change(_ body: (inout KeyFile) throws -> Void) async throws {
        let directory = try Self.guarded { try self.directory(true) }
        // Asking a person and scrypt take long: not while others wait for the lock.
        let fresh = try await load() == nil ? try await freshSeal() : nil
        let lock = try await lock(directory)
        defer { lock.release() }
        var file = KeyFile()
        var seal = fresh?.seal
        var key = fresh?.key
        if let content = try read() {
            (file, seal, key) = try await decode(content)
        } else if seal == nil, case .passphrase = sealing {
            // There was a file just now. Without it nobody has chosen a passphrase, and keys do not go there in clear.
            throw KeyProviderError(.unavailable, "The key file was removed while it was in use. Try again.")
        }
        try body(&file)
        let bytes = try file.encoded(seal: seal, key: key)
        guard bytes.count <= KeyFile.sizeLimit else {
            throw KeyProviderError(.failed, "The key file holds as many keys as it can. Remove some.")
        }
        try Self.guarded { try replace(with: bytes, in: directory) }
        if let seal, let key { unsealed = (seal, key) }
    }

    /// How a file that is made now is sealed; `nil` without a passphrase.
    private func freshSeal() async throws -> (seal: KeyFile.Seal, key: SymmetricKey)? {
        guard case .passphrase(_, let cost) = sealing else { return nil }
        let passphrase = try await ask(.newPassphrase)
        let seal = KeyFile.Seal(cost: cost, salt: random.bytes(KeyFile.Seal.saltLength))
        return (seal, try cost.key(passphrase, salt: seal.salt))
    }

    private func replace(with bytes: [UInt8], in directory: any VaultDirectory) throws {
        // What interrupted changes left behind. Keys are in it that may have been removed since.
        for left in try directory.list() where left.hasPrefix(name + ".") && left.hasSuffix(".tmp") {
            try directory.remove(left)
        }
        let temporary = "\(name).\(Hex.encode(random.bytes(SealedFile.idLength))).tmp"
        do {
            try directory.writeDurably(bytes, to: temporary)
            try directory.rename(temporary, to: name)
        } catch {
            try? directory.remove(temporary)
            throw error
        }
        try directory.syncDirectory()
    }

    private func lock(_ directory: any VaultDirectory) async throws -> any FileLock {
        let deadline = clock.now.addingTimeInterval(lockTimeout)
        let lock = try await clock.poll(until: deadline) { try Self.guarded { try directory.tryLock(at: 0) } }
        guard let lock else {
            throw KeyProviderError(
                .unavailable, "Another process holds the key file. Try again, or see which process hangs.")
        }
        return lock
    }

    private static func made<Key>(_ body: () throws -> Key) throws -> Key {
        do { return try body() } catch { throw KeyProviderError.damagedFile }
    }

    private static func guarded<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let failure as FileFailure {
            throw KeyProviderError(.unavailable, "The key file cannot be used. " + failure.advice)
        }
    }
}
