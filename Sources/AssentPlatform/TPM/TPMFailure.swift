#if TPM && os(Linux)
import AssentCore
import CTSS2

/// A response code of the TPM or of the software on the way to it (TPM 2.0 Part 2 §6.6, TSS 2.0 overview §3).
struct TPMFailure: Error {
    let code: TSS2_RC
    /// What was being done, for people.
    let action: String

    /// The TPM's own code without the number of the handle, session or parameter; `nil` when it did not come from the
    /// TPM.
    var response: UInt32? {
        // Layers 11 and 12 are resource managers, which pass the TPM's codes on.
        guard [0, 11, 12].contains((code >> 16) & 0xFF) else { return nil }
        return code & 0x80 != 0 ? code & 0xBF : code & 0xFFF
    }

    private var layer: UInt32 { (code >> 16) & 0xFF }

    enum Response {
        static let initialize: UInt32 = 0x100
        static let failure: UInt32 = 0x101
        static let nvUninitialized: UInt32 = 0x14A
        static let nvSpace: UInt32 = 0x14B
        static let nvDefined: UInt32 = 0x14C
        static let handle: UInt32 = 0x8B
        static let authFail: UInt32 = 0x8E
        static let integrity: UInt32 = 0x9F
        static let badAuth: UInt32 = 0xA2
        static let eccPoint: UInt32 = 0xA7
        static let objectMemory: UInt32 = 0x902
        static let sessionMemory: UInt32 = 0x903
        static let nvRate: UInt32 = 0x920
        static let lockout: UInt32 = 0x921
        static let retry: UInt32 = 0x922
        static let nvUnavailable: UInt32 = 0x923
    }

    /// The same for callers: which kind of failure it is, and what to do.
    var error: KeyProviderError {
        guard let response else {
            switch layer {
            case 10:
                return KeyProviderError(
                    .unavailable, "The TPM cannot be reached (\(action)\(name)). Check that it is switched on and free."
                )
            case 7 where code & 0xFFFF == 27:
                return KeyProviderError(
                    .tampered,
                    "The TPM's answer is not authentic (\(action)). Something between here and the TPM changes it.")
            case 6, 7, 8, 9:
                return Self.nonsense(action + name)
            default:
                return KeyProviderError(
                    .failed, "The software on the way to the TPM failed (\(action)\(name)). See the system's log.")
            }
        }
        return switch response {
        case Response.authFail, Response.badAuth:
            KeyProviderError(.wrongSecret, "The TPM says that the PIN is wrong. Enter the right one.")
        case Response.lockout:
            Self.lockedOut(nil)
        case Response.initialize, Response.failure:
            KeyProviderError(
                .unavailable,
                "The TPM has not started or is in failure mode (\(name)). Restart the machine; if it stays, replace it."
            )
        case Response.integrity:
            Self.changedKey
        case Response.nvSpace:
            KeyProviderError(
                .failed, "The TPM has no room for another counter. Remove those that are not needed: tpm2_nvundefine.")
        case Response.objectMemory, Response.sessionMemory:
            KeyProviderError(
                .unavailable, "Other programs fill the TPM's memory. Use its resource manager: \(TPMDefaults.tcti).")
        case Response.nvRate, Response.nvUnavailable, Response.retry:
            KeyProviderError(
                .unavailable, "The TPM spares its memory and refuses writes for now. Try again in a few seconds.")
        case Response.eccPoint:
            KeyProviderError(.invalidInput, "The TPM says that the peer's point is not on the curve. Ask for another.")
        default:
            KeyProviderError(.failed, "The TPM failed (\(action)\(name)). Look its code up with tpm2_rc_decode.")
        }
    }

    private var name: String { ", code 0x" + String(code, radix: 16) }

    /// The error of a TPM that forgets each try after `seconds`, as far as it said so.
    static func lockedOut(_ seconds: UInt32?) -> KeyProviderError {
        let wait = seconds.map { "Each try is forgotten after \($0) seconds: wait" } ?? "Wait"
        return KeyProviderError(
            .lockedOut,
            "The TPM refuses every PIN after too many wrong ones. \(wait), or let its owner reset it: "
                + "tpm2_dictionarylockout --clear-lockout.", attemptsLeft: 0)
    }

    static let changedKey = KeyProviderError(
        .tampered, "The key's file was changed: the TPM does not accept it. Restore it from a backup.")
    static let otherTPM = KeyProviderError(
        .keyLost,
        "Another TPM made this key, or the TPM was cleared since. The key does not come back; remove it and make another."
    )

    static func nonsense(_ what: String) -> KeyProviderError {
        KeyProviderError(
            .tampered,
            "The TPM's answer makes no sense (\(what)). Check the TPM and the path to it; do not trust either.")
    }
}
#endif
