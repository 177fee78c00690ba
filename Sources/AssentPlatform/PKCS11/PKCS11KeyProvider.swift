#if PKCS11 && os(Linux)
public import AssentCore
public import AssentVault
import CP11Kit
import Crypto
public import Foundation

/// Keys in a PKCS#11 token (PKCS #11 v2.40, OASIS): a smart card, a YubiKey, an HSM, or SoftHSM.
///
/// ```swift
/// let token = PKCS11KeyProvider(module: "/usr/lib/opensc-pkcs11.so", token: "ana", pin: pin)
/// let vault = try await FileVault.open(directory, keys: .requireHardware(token))
/// ```
///
/// The token is found by its label, never by a slot number, which changes. Keys are made inside it (P-256,
/// `CKA_SENSITIVE`, not `CKA_EXTRACTABLE`), and a key that can be read out is not used. A public key is trusted only
/// after the token has shown that it holds the private part.
///
/// The PIN is asked for when a key is first needed. PKCS#11 then regards the whole *process* as logged in until the
/// last session ends: anyone who runs code in it can use the keys. A token that is pulled out and inserted again asks
/// anew.
///
/// What it cannot do: a shared secret leaves the token (only the private key stays inside), SoftHSM is software
/// although it speaks PKCS#11, and PKCS#11 has no counters, so a vault rolled back as a whole is not noticed.
public actor PKCS11KeyProvider: KeyProvider {
    /// Begins the `CKA_ID` of each key made here, so that other programs' keys are left alone.
    private static let idPrefix = Array("assent".utf8)

    private let path: String
    private let label: String
    private let serial: String?
    private let presence: (any UserPresence)?
    private let existing: [String: [UInt8]]
    private let lockTimeout: TimeInterval
    private let clock: any WallClock
    private let random: any RandomSource

    private let thread = FileThread()
    private let turns = NameQueue()
    private var module: PKCS11Module?
    private var session: PKCS11Session?

    /// Runs on a thread of its own: a token may take seconds.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// Keys in the token called `token`. Nothing is loaded before the first call.
    ///
    /// - Parameters:
    ///   - module: the absolute path of the token's PKCS#11 module. Its code runs in this process.
    ///   - token: the token's label, as `pkcs11-tool -L` shows it.
    ///   - serial: the token's serial number, for when several tokens have one label.
    ///   - pin: who knows the PIN; `nil` for tokens with a keypad of their own, or without a PIN.
    ///   - existing: keys that another program made, such as those in a YubiKey's PIV slots: a name of ours and the
    ///     key's `CKA_ID`. They are used and never removed.
    ///   - lockTimeout: how many seconds making a key waits for others who make keys through the same module.
    ///   - clock: bounds how long making a key waits for other processes.
    ///   - random: makes the `CKA_ID`s.
    public init(
        module: String, token: String, serial: String? = nil, pin: (any UserPresence)?,
        existing: [String: [UInt8]] = [:], lockTimeout: TimeInterval = 10, clock: any WallClock = SystemClock(),
        random: any RandomSource = SystemRandom()
    ) {
        path = module
        label = token
        self.serial = serial
        presence = pin
        self.existing = existing
        self.lockTimeout = lockTimeout
        self.clock = clock
        self.random = random
    }

    /// `pkcs11`
    public nonisolated var kind: String { "pkcs11" }

    /// What a PKCS#11 token promises. Whether it really is a device, PKCS#11 does not prove.
    public nonisolated var protection: KeyProtection { .hardware }

    /// What ``/AssentVault/KeyOptions`` can count on: keys in a chip that agree on secrets, and, when somebody was
    /// named who knows the PIN, the user's presence by it. There is no biometry.
    public nonisolated var capabilities: KeyCapabilities {
        KeyCapabilities(wrappings: [.ecies], hasSeparateChip: true, presence: presence == nil ? [] : [.pin])
    }

    /// Whether the module loads, the token is there, its PIN is not locked, and it knows ECDSA and ECDH.
    public var availability: KeyAvailability {
        do {
            let module = try loaded()
            let (slot, info) = try PKCS11Session.slot(module, token: label, serial: serial)
            if PKCS11Session.PINState(info) == .locked { throw PKCS11Failure.lockedOut }
            if info.flags & CKF_LOGIN_REQUIRED != 0, info.flags & CKF_USER_PIN_INITIALIZED == 0 {
                throw PKCS11Failure(code: CKR_USER_PIN_NOT_INITIALIZED, action: "logging in").error
            }
            for mechanism in [CKM_ECDSA, CKM_ECDH1_DERIVE] {
                var info = CK_MECHANISM_INFO()
                let result = try module.function(\.C_GetMechanismInfo)(slot, mechanism, &info)
                try module.check("asking what the token can do", result)
            }
            return .available
        } catch let error as KeyProviderError {
            if session == nil { module = nil }
            return KeyAvailability(error)
        } catch let failure as PKCS11Failure {
            if session == nil { module = nil }
            return KeyAvailability(failure.error)
        } catch {
            return .unavailable(reason: "The token cannot be asked.")
        }
    }

    /// The names of the keys that were made here, and of the existing ones that are in the token.
    public func keyNames() async throws -> [String] {
        try await perform { session, _ in
            let objects = try session.find([
                PKCS11Attribute(CKA_CLASS, number: CKO_PRIVATE_KEY), PKCS11Attribute(CKA_KEY_TYPE, number: CKK_EC),
                PKCS11Attribute(CKA_TOKEN, true),
            ])
            var names: Set<String> = []
            for object in objects {
                guard let id = try session.value(CKA_ID, of: object) else { continue }
                if id.starts(with: Self.idPrefix), let text = try session.value(CKA_LABEL, of: object) {
                    let name = String(decoding: text, as: UTF8.self)
                    if (try? KeyName.check(name)) != nil { names.insert(name) }
                }
                names.formUnion(existing.filter { $0.value == id }.keys)
            }
            return names.sorted()
        }
    }

    /// The ES256 key called `name`, after the token has shown that it holds it.
    public func signingKey(named name: String) async throws -> (any SigningKey)? {
        guard let found = try await find(name, .signing) else { return nil }
        return try PKCS11SigningKey(self, found)
    }

    /// Makes an ES256 key in the token; other algorithms are `unsupported`.
    public func makeSigningKey(named name: String, algorithm: SignatureAlgorithm) async throws -> any SigningKey {
        try KeyName.check(name)
        guard algorithm == .es256 else {
            throw KeyProviderError(.unsupported, "Tokens sign with ES256 only here. Ask for that.")
        }
        return try PKCS11SigningKey(self, try await make(name, .signing))
    }

    /// The key agreement key called `name`, after the token has shown that it holds it.
    public func agreementKey(named name: String) async throws -> (any KeyAgreementKey)? {
        try await find(name, .agreement).map { PKCS11AgreementKey(self, $0) }
    }

    /// Makes a P-256 key agreement key in the token.
    public func makeAgreementKey(named name: String) async throws -> any KeyAgreementKey {
        try KeyName.check(name)
        return PKCS11AgreementKey(self, try await make(name, .agreement))
    }

    /// Removes the keys called `name` from the token; existing keys of other programs are `unsupported`.
    public func removeKey(named name: String) async throws {
        try KeyName.check(name)
        guard existing[name] == nil else {
            throw KeyProviderError(
                .unsupported, "Another program made this key. Remove it with that program, and leave it out here.")
        }
        try await perform { session, _ in
            for use in [PKCS11KeyUse.signing, .agreement] {
                for (object, id) in try self.privateKeys(name, use, in: session) {
                    guard session.canWrite else { throw PKCS11Failure.readOnly }
                    let publicKeys = try session.find([
                        PKCS11Attribute(CKA_CLASS, number: CKO_PUBLIC_KEY), PKCS11Attribute(CKA_ID, id),
                    ])
                    session.handles[id] = nil
                    try session.destroy(object)
                    for publicKey in publicKeys { try session.destroy(publicKey) }
                }
            }
        }
    }

    /// Signs with, or agrees by, the private key with this `CKA_ID`.
    func use<Result: Sendable>(
        _ key: PKCS11KeyReference, _ body: (PKCS11Session, CK_OBJECT_HANDLE, Secret?) throws -> Result
    ) async throws -> Result {
        try await perform(asking: key.asksEachTime) { session, pin in
            if let known = session.handles[key.id] { return try body(session, known, pin) }
            let objects = try session.find([
                PKCS11Attribute(CKA_CLASS, number: CKO_PRIVATE_KEY), PKCS11Attribute(CKA_ID, key.id),
            ])
            guard let object = objects.first else { throw PKCS11Failure.keyLost }
            guard objects.count == 1 else { throw Self.ambiguous }
            try session.verifyGuarded(object, isOurs: key.id.starts(with: Self.idPrefix))
            session.handles[key.id] = object
            return try body(session, object, pin)
        }
    }

    private func find(_ name: String, _ use: PKCS11KeyUse) async throws -> PKCS11KeyReference? {
        try KeyName.check(name)
        let found = try await perform { session, _ -> PKCS11KeyReference? in
            let keys = try self.privateKeys(name, use, in: session)
            guard let (object, id) = keys.first else { return nil }
            guard keys.count == 1 else { throw Self.ambiguous }
            return try self.reference(object, id, use, in: session)
        }
        guard let found else { return nil }
        try await self.use(found) { session, object, pin in
            try session.provePossession(found.point, key: object, use: use, contextPIN: pin)
        }
        return found
    }

    private func make(_ name: String, _ use: PKCS11KeyUse) async throws -> PKCS11KeyReference {
        let exists = KeyProviderError(
            .keyExists, "There is a key called \(name) in the token already. Find it, or choose another name.")
        guard existing[name] == nil else { throw exists }
        // The PIN is asked for before, not while others wait.
        try await perform { _, _ in }
        let lock = try await ModuleLock(path, clock: clock, timeout: lockTimeout)
        defer { lock.release() }
        return try await perform { session, _ in
            guard try self.privateKeys(name, use, in: session).isEmpty else { throw exists }
            let id = Self.idPrefix + [use.rawValue] + random.bytes(13)
            do {
                try session.generate(name: name, id: id, use: use)
            } catch let failure as PKCS11Failure {
                // Not to be repeated: the key may be there.
                if failure.endsSession { self.session = nil }
                throw failure.error
            }
            let keys = try self.privateKeys(name, use, in: session)
            guard let (object, found) = keys.first, keys.count == 1, found == id else { throw Self.ambiguous }
            return try self.reference(object, id, use, in: session)
        }
    }

    private func privateKeys(
        _ name: String, _ use: PKCS11KeyUse, in session: PKCS11Session
    ) throws -> [(CK_OBJECT_HANDLE, [UInt8])] {
        let wanted = existing[name].map { PKCS11Attribute(CKA_ID, $0) } ?? PKCS11Attribute(CKA_LABEL, name)
        let objects = try session.find([
            PKCS11Attribute(CKA_CLASS, number: CKO_PRIVATE_KEY), PKCS11Attribute(CKA_KEY_TYPE, number: CKK_EC),
            PKCS11Attribute(CKA_TOKEN, true), wanted,
            PKCS11Attribute(use == .signing ? CKA_SIGN : CKA_DERIVE, true),
        ])
        return try objects.compactMap { object in
            guard let id = try session.value(CKA_ID, of: object) else { return nil }
            guard existing[name] != nil || id.starts(with: Self.idPrefix + [use.rawValue]) else { return nil }
            return (object, id)
        }
    }

    private func reference(
        _ object: CK_OBJECT_HANDLE, _ id: [UInt8], _ use: PKCS11KeyUse, in session: PKCS11Session
    ) throws -> PKCS11KeyReference {
        try session.verifyGuarded(object, isOurs: id.starts(with: Self.idPrefix))
        return PKCS11KeyReference(
            id: id, point: try session.publicPoint(id: id, privateKey: object),
            asksEachTime: try session.flag(CKA_ALWAYS_AUTHENTICATE, of: object) ?? false)
    }

    /// Runs `body` in a session that is logged in, one caller at a time. A session that somebody else closed is opened
    /// again, once.
    private func perform<Result: Sendable>(
        asking: Bool = false, _ body: (PKCS11Session, Secret?) throws -> Result
    ) async throws -> Result {
        let turn = try await turns.acquire("", deadline: .distantFuture, clock: clock)
        defer { turns.release(turn) }
        var isRepeated = false
        while true {
            let session = try await opened()
            let pin = asking ? try await ask(session, PKCS11Session.PINState(tokenInfo(session)), isRetry: false) : nil
            do {
                return try body(session, pin)
            } catch let failure as PKCS11Failure {
                if failure.endsSession { end() }
                if failure.isStaleObject { session.handles = [:] }
                if !isRepeated, failure.isStaleObject || (failure.endsSession && !failure.isRemoval) {
                    isRepeated = true
                    continue
                }
                throw failure.error
            }
        }
    }

    private func end() {
        session = nil
        module = nil
    }

    private func loaded() throws -> PKCS11Module {
        if let module { return module }
        let loaded = try PKCS11Module(path: path)
        module = loaded
        return loaded
    }

    private func opened() async throws -> PKCS11Session {
        if let session { return session }
        do {
            let session = try PKCS11Session(try loaded(), token: label, serial: serial)
            try await login(session)
            self.session = session
            return session
        } catch let failure as PKCS11Failure {
            end()
            throw failure.error
        } catch {
            // Some modules look for tokens only when they are initialized.
            end()
            throw error
        }
    }

    private func tokenInfo(_ session: PKCS11Session) throws -> CK_TOKEN_INFO {
        do {
            return try session.module.tokenInfo(session.slot)
        } catch let failure as PKCS11Failure {
            end()
            throw failure.error
        }
    }

    // In small steps, and with no C structure alive over an `await`: Swift 6.3.1 crashes when it optimizes that.
    private func login(_ session: PKCS11Session) async throws {
        guard try needsLogin(session) else { return }
        try await SecretTries.run(
            asking: { try await pin(session, after: $0) }, using: { try logIn(session, with: $0) })
    }

    private func needsLogin(_ session: PKCS11Session) throws -> Bool {
        let info = try session.module.tokenInfo(session.slot)
        return try info.flags & CKF_LOGIN_REQUIRED != 0 && !session.isLoggedIn()
    }

    /// The PIN, or `nil` when the token has a keypad of its own.
    private func pin(_ session: PKCS11Session, after wrong: KeyProviderError?) async throws -> Secret? {
        let (state, hasKeypad) = try situation(session)
        guard state != .locked else { throw PKCS11Failure.lockedOut }
        if hasKeypad { return nil }
        return try await ask(session, state, isRetry: wrong != nil)
    }

    private func situation(_ session: PKCS11Session) throws -> (PKCS11Session.PINState, hasKeypad: Bool) {
        let info = try session.module.tokenInfo(session.slot)
        return (PKCS11Session.PINState(info), info.flags & CKF_PROTECTED_AUTHENTICATION_PATH != 0)
    }

    /// Logs in; a wrong PIN is an error that says how many tries are left.
    private func logIn(_ session: PKCS11Session, with pin: Secret?) throws {
        do {
            try session.login(pin)
        } catch let failure as PKCS11Failure where failure.error.code == .wrongSecret {
            let state = PKCS11Session.PINState(try session.module.tokenInfo(session.slot))
            guard state != .locked else { throw PKCS11Failure.lockedOut }
            let warning =
                switch state {
                case .finalTry: " One try is left: a wrong one locks the token."
                case .low: " The token counts wrong tries and will lock."
                case .fine, .locked: ""
                }
            throw KeyProviderError(
                .wrongSecret, failure.error.detail + warning, attemptsLeft: state.attemptsLeft)
        }
    }

    private func ask(_ session: PKCS11Session, _ state: PKCS11Session.PINState, isRetry: Bool) async throws -> Secret {
        guard let presence else {
            throw KeyProviderError(
                .userAbsent, "The token needs a PIN, and nobody was named who knows it. Give the PIN.")
        }
        let pin = try await presence.secret(
            for: PresenceRequest(.pin, providerName: label, attemptsLeft: state.attemptsLeft, isRetry: isRetry))
        guard (1...255).contains(pin.count) else {
            throw KeyProviderError(.invalidInput, "A PIN has 1 to 255 bytes. Enter the right one.")
        }
        return pin
    }

    private static let ambiguous = KeyProviderError(
        .tampered,
        "Several keys of the token have this name or CKA_ID. Remove those that are not yours: pkcs11-tool -O.")
}
#endif
