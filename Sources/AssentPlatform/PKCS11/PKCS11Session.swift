#if PKCS11 && os(Linux)
import AssentCore
import CP11Kit

/// A session with one token. Touched only on its provider's thread.
final class PKCS11Session {
    let module: PKCS11Module
    let handle: CK_SESSION_HANDLE
    let slot: CK_SLOT_ID
    /// Whether keys can be made and removed.
    let canWrite: Bool
    /// Private keys by their `CKA_ID`, as long as this session lives.
    var handles: [[UInt8]: CK_OBJECT_HANDLE] = [:]

    /// Opens a session with the token that has this label.
    init(_ module: PKCS11Module, token label: String, serial: String?) throws {
        let (slot, info) = try Self.slot(module, token: label, serial: serial)
        self.module = module
        self.slot = slot
        var handle: CK_SESSION_HANDLE = 0
        let open = try module.function(\.C_OpenSession)
        var result = CKR_TOKEN_WRITE_PROTECTED
        if info.flags & CKF_WRITE_PROTECTED == 0 {
            result = open(slot, CKF_SERIAL_SESSION | CKF_RW_SESSION, nil, nil, &handle)
        }
        canWrite = result != CKR_TOKEN_WRITE_PROTECTED
        if !canWrite { result = open(slot, CKF_SERIAL_SESSION, nil, nil, &handle) }
        try module.check("opening a session", result)
        self.handle = handle
    }

    /// Finds the token. One of several with the same label is never guessed.
    static func slot(
        _ module: PKCS11Module, token label: String, serial: String?
    ) throws -> (slot: CK_SLOT_ID, info: CK_TOKEN_INFO) {
        let slots = try module.slots(label: label, serial: serial)
        guard let first = slots.first else {
            throw KeyProviderError(
                .unavailable, "No token with this label is there. Insert it, or see the labels: pkcs11-tool -L.")
        }
        guard slots.count == 1 else {
            throw KeyProviderError(
                .unavailable, "\(slots.count) tokens have this label. Name the serial number too, or remove the others."
            )
        }
        return first
    }

    deinit {
        if let close = try? module.function(\.C_CloseSession) { _ = close(handle) }
    }

    /// What the token says of its PIN.
    enum PINState {
        case fine
        case low
        case finalTry
        case locked

        init(_ info: CK_TOKEN_INFO) {
            self =
                if info.flags & CKF_USER_PIN_LOCKED != 0 {
                    .locked
                } else if info.flags & CKF_USER_PIN_FINAL_TRY != 0 {
                    .finalTry
                } else if info.flags & CKF_USER_PIN_COUNT_LOW != 0 {
                    .low
                } else {
                    .fine
                }
        }

        /// The count, where PKCS#11 has one: it says only "low" and "one left".
        var attemptsLeft: Int? {
            switch self {
            case .fine, .low: nil
            case .finalTry: 1
            case .locked: 0
            }
        }
    }

    /// Logs in; `nil` leaves it to the token's own keypad.
    func login(_ pin: Secret?, as user: CK_USER_TYPE = CKU_USER) throws {
        let login = try module.function(\.C_Login)
        let result: CK_RV =
            if let pin {
                pin.withUnsafeBytes { bytes in
                    // C_Login takes a mutable pointer but must not write (PKCS #11 v2.40 §5.6).
                    let start = UnsafeMutablePointer(mutating: bytes.bindMemory(to: CK_UTF8CHAR.self).baseAddress)
                    return login(handle, user, start, CK_ULONG(bytes.count))
                }
            } else {
                login(handle, user, nil, 0)
            }
        // The login is the process's, not the session's: another provider here has done it.
        if result == CKR_USER_ALREADY_LOGGED_IN, user == CKU_USER { return }
        try module.check("logging in", result)
    }

    /// Whether this process is logged in to the token already, through this session or another.
    func isLoggedIn() throws -> Bool {
        var info = CK_SESSION_INFO()
        try module.check("asking for the session's state", try module.function(\.C_GetSessionInfo)(handle, &info))
        return [CKS_RO_USER_FUNCTIONS, CKS_RW_USER_FUNCTIONS].contains(info.state)
    }

    /// Makes a P-256 key pair that stays in the token; its attributes are checked after, since a module may ignore
    /// them.
    func generate(name: String, id: [UInt8], use: PKCS11KeyUse) throws {
        guard canWrite else { throw PKCS11Failure.readOnly }
        let shared = [
            PKCS11Attribute(CKA_TOKEN, true), PKCS11Attribute(CKA_LABEL, name), PKCS11Attribute(CKA_ID, id),
        ]
        let publicPart =
            shared + [
                PKCS11Attribute(CKA_PRIVATE, false), PKCS11Attribute(CKA_EC_PARAMS, Self.p256),
                PKCS11Attribute(CKA_VERIFY, use == .signing),
            ]
        let privatePart =
            shared + [
                PKCS11Attribute(CKA_PRIVATE, true), PKCS11Attribute(CKA_SENSITIVE, true),
                PKCS11Attribute(CKA_EXTRACTABLE, false), PKCS11Attribute(CKA_SIGN, use == .signing),
                PKCS11Attribute(CKA_DERIVE, use == .agreement), PKCS11Attribute(CKA_UNWRAP, false),
            ]
        var mechanism = CK_MECHANISM(mechanism: CKM_EC_KEY_PAIR_GEN, pParameter: nil, ulParameterLen: 0)
        var publicKey: CK_OBJECT_HANDLE = 0
        var privateKey: CK_OBJECT_HANDLE = 0
        try publicPart.withTemplate { publicTemplate, publicCount in
            try privatePart.withTemplate { privateTemplate, privateCount in
                try module.check(
                    "making a key",
                    try module.function(\.C_GenerateKeyPair)(
                        handle, &mechanism, publicTemplate, publicCount, privateTemplate, privateCount, &publicKey,
                        &privateKey))
            }
        }
        do {
            try verifyGuarded(privateKey, isOurs: true)
        } catch {
            // A key that can be read must not stay.
            try? destroy(privateKey)
            try? destroy(publicKey)
            throw error
        }
    }

    /// Fails unless the token says that this key cannot be read, and (when we made it) that it never could be.
    func verifyGuarded(_ key: CK_OBJECT_HANDLE, isOurs: Bool) throws {
        var demands: [(CK_ATTRIBUTE_TYPE, Bool)] = [(CKA_SENSITIVE, true), (CKA_EXTRACTABLE, false)]
        if isOurs { demands += [(CKA_ALWAYS_SENSITIVE, true), (CKA_NEVER_EXTRACTABLE, true), (CKA_LOCAL, true)] }
        for (attribute, demanded) in demands {
            guard try flag(attribute, of: key) == demanded else {
                throw KeyProviderError(
                    .tampered,
                    "This key can be read out of the token, or could be once, so it is not used. Remove it, and use a "
                        + "token that keeps keys (CKA_SENSITIVE, not CKA_EXTRACTABLE).")
            }
        }
    }

    /// The named curve P-256 as DER (RFC 5480 §2.1.1.1).
    static let p256: [UInt8] = [0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]
}

/// What a key is for.
enum PKCS11KeyUse: UInt8 {
    case signing = 1
    case agreement = 2
}
#endif
