/// Why a secret could not be read or kept. Errors are equal when their codes are; the detail never holds a secret.
public struct SecretStoreError: AssentError {
    /// What went wrong, as a stable name.
    public let code: Code

    /// What happened, in full sentences for people.
    public let detail: String

    /// What to do about it; `nil` when there is nothing to add.
    public let suggestion: String?

    /// An error with its explanation.
    public init(_ code: Code, _ detail: String, suggestion: String? = nil) {
        self.code = code
        self.detail = detail
        self.suggestion = suggestion
    }

    /// Whether the same call may succeed later without anybody changing anything: another task or process holds the
    /// store. A key that cannot be used now is put right by somebody: the token is plugged in, the right file is named.
    public var isTransient: Bool { code == .busy }

    /// A stable name of a kind of failure; more may be added.
    public struct Code: ErrorCode {
        /// The name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Somebody else changed the value meanwhile.
        public static let versionMismatch = Code("versionMismatch")
        /// Somebody else held the name, or the store, until the deadline.
        public static let busy = Code("busy")
        /// A file of the store is shorter than it was, or empty: a write that never ended, or a copy that was cut off.
        public static let truncated = Code("truncated")
        /// A file of the store is not what it was: changed, exchanged, forged or missing.
        public static let tampered = Code("tampered")
        /// An old copy of the store was put in its place.
        public static let rolledBack = Code("rolledBack")
        /// This is a store, but not the one that was asked for: another user's, or one for another purpose.
        public static let anotherStore = Code("anotherStore")
        /// The key, PIN or passphrase does not open this store.
        public static let wrongKey = Code("wrongKey")
        /// The key provider cannot be reached or used now. Trying later may help.
        public static let keyUnavailable = Code("keyUnavailable")
        /// The key provider refuses every PIN or passphrase after too many wrong ones.
        public static let keyLocked = Code("keyLocked")
        /// The key provider works, and does not have this store's key any more.
        public static let keyLost = Code("keyLost")
        /// The store is guarded in another way than was asked for. It takes an explicit change of key.
        public static let protectionMismatch = Code("protectionMismatch")
        /// A newer version of this library wrote the store.
        public static let newerFormat = Code("newerFormat")
        /// A version of this library that was never released wrote the store.
        public static let olderFormat = Code("olderFormat")
        /// The name or the value is not acceptable (empty, too long).
        public static let invalidInput = Code("invalidInput")
        /// There is no store here, and none was to be made.
        public static let absent = Code("absent")
        /// The disk is full, or a quota or a size limit is reached.
        public static let diskFull = Code("diskFull")
        /// The disk is read-only, or owner or mode of a file do not permit the access.
        public static let notPermitted = Code("notPermitted")
        /// The system offers no such store to this process: the kernel, a container or a sandbox does not let it.
        public static let storeUnavailable = Code("storeUnavailable")
        /// The value's time was up, and the store does not give it out any more.
        public static let expired = Code("expired")
        /// Somebody revoked the value, or all of the store, so that nobody can read it any more.
        public static let revoked = Code("revoked")
        /// The user's share of a store that all programs of the user have in common is used up.
        public static let quotaExceeded = Code("quotaExceeded")
        /// Reading or writing failed otherwise.
        public static let storageFailed = Code("storageFailed")
    }
}
