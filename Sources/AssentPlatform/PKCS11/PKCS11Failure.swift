#if PKCS11 && os(Linux)
import AssentCore
import CP11Kit

/// What a module's function answered other than `CKR_OK`.
struct PKCS11Failure: Error {
    let code: CK_RV
    /// What was being done, for people.
    let action: String

    /// Whether the session is gone, though the token may be there: opening another may help.
    var endsSession: Bool {
        [CKR_SESSION_HANDLE_INVALID, CKR_SESSION_CLOSED, CKR_CRYPTOKI_NOT_INITIALIZED, CKR_USER_NOT_LOGGED_IN]
            .contains(code) || isRemoval
    }

    /// Whether the token is gone.
    var isRemoval: Bool {
        [CKR_DEVICE_REMOVED, CKR_TOKEN_NOT_PRESENT, CKR_TOKEN_NOT_RECOGNIZED, CKR_SLOT_ID_INVALID].contains(code)
    }

    /// Whether an object that was found is there no more.
    var isStaleObject: Bool { [CKR_KEY_HANDLE_INVALID, CKR_OBJECT_HANDLE_INVALID].contains(code) }

    /// The same for callers: which kind of failure it is, and what to do.
    var error: KeyProviderError {
        if isRemoval {
            return KeyProviderError(
                .unavailable, "The token was removed (\(action)\(name)). Insert it again and repeat what you did.")
        }
        return switch code {
        case CKR_SESSION_HANDLE_INVALID, CKR_SESSION_CLOSED, CKR_CRYPTOKI_NOT_INITIALIZED:
            KeyProviderError(
                .unavailable, "The session with the token was closed (\(action)\(name)). Repeat what you did.")
        case CKR_USER_NOT_LOGGED_IN:
            KeyProviderError(
                .unavailable, "The token has logged the user out (\(action)). Repeat what you did to log in again.")
        case CKR_PIN_INCORRECT:
            KeyProviderError(.wrongSecret, "The token says that the PIN is wrong. Enter the right one.")
        case CKR_PIN_INVALID, CKR_PIN_LEN_RANGE:
            KeyProviderError(.wrongSecret, "The token takes no PIN of this length or form. Enter the right one.")
        case CKR_PIN_LOCKED:
            Self.lockedOut
        case CKR_PIN_EXPIRED:
            KeyProviderError(
                .wrongSecret, "The PIN has expired. Choose another with the token's own program, then use that.")
        case CKR_USER_PIN_NOT_INITIALIZED:
            KeyProviderError(
                .unavailable, "The token has no user PIN yet. Set one with the token's own program.")
        case CKR_USER_ANOTHER_ALREADY_LOGGED_IN, CKR_SESSION_READ_WRITE_SO_EXISTS:
            KeyProviderError(
                .unavailable, "This program has logged in as the token's security officer. Log out there first.")
        case CKR_TOKEN_WRITE_PROTECTED, CKR_SESSION_READ_ONLY:
            Self.readOnly
        case CKR_DEVICE_MEMORY:
            KeyProviderError(
                .failed,
                "The token is full (\(action)). Remove keys that are not needed any more, or use another token.")
        case CKR_SESSION_COUNT:
            KeyProviderError(
                .unavailable, "The token serves as many programs as it can. Close one of them and try again.")
        case CKR_MECHANISM_INVALID, CKR_FUNCTION_NOT_SUPPORTED, CKR_CURVE_NOT_SUPPORTED, CKR_DOMAIN_PARAMS_INVALID:
            KeyProviderError(
                .unsupported, "The token cannot do that (\(action)\(name)). Use a token with ECDSA and ECDH on P-256.")
        case CKR_KEY_FUNCTION_NOT_PERMITTED, CKR_KEY_TYPE_INCONSISTENT:
            KeyProviderError(
                .unsupported, "The token does not let this key do that (\(action)\(name)). Make a key for this use.")
        case CKR_KEY_HANDLE_INVALID, CKR_OBJECT_HANDLE_INVALID:
            Self.keyLost
        case CKR_FUNCTION_CANCELED, CKR_FUNCTION_REJECTED:
            KeyProviderError(.userAbsent, "The user did not agree at the token (\(action)). Try again and confirm.")
        default:
            KeyProviderError(
                .failed,
                "The token failed (\(action)\(name)). See its own program or log for the reason, then try again.")
        }
    }

    private var name: String { Self.name(of: code) }

    /// The constant's name of the specification, as p11-kit knows it.
    static func name(of code: CK_RV) -> String {
        guard let text = p11_kit_strerror(code) else { return "" }
        return ": " + String(cString: text) + " (0x" + String(code, radix: 16) + ")"
    }

    static let lockedOut = KeyProviderError(
        .lockedOut,
        "The token is locked after too many wrong PINs. Unlock it with its PUK or security officer PIN (for example "
            + "pkcs11-tool --init-pin, ykman piv access unblock-pin).", attemptsLeft: 0)
    static let readOnly = KeyProviderError(
        .unsupported, "The token is write-protected, so keys can neither be made nor removed. Use another token.")
    static let keyLost = KeyProviderError(
        .keyLost, "The key is not in the token any more: somebody removed it. It does not come back; make another.")

    static func nonsense(_ what: String) -> KeyProviderError {
        KeyProviderError(
            .tampered,
            "The token's answer makes no sense (\(what)). Check the module and the token; do not trust either.")
    }
}
#endif
