public import AssentCore

/// Why something with transaction signing did not work, as a stable name.
///
/// Here are the names of the list of errors in `docs/transaction-signing.md`, by which a server refuses what a device,
/// a user or a relying party asks. `AssentSigning` adds those of the SDK alone. A server may send names that this
/// version does not know.
public struct SigningErrorCode: ErrorCode {
    /// The name.
    public let rawValue: String

    /// A code by its name.
    public init(rawValue: String) { self.rawValue = rawValue }
}

extension SigningErrorCode {
    /// Malformed, out of bounds, or it does not decrypt.
    public static let invalidRequest = Self("invalid_request")
    /// The server speaks another version of the protocol.
    public static let versionUnsupported = Self("version_unsupported")
    /// The request is encrypted to a key that is not used any more.
    package static let unknownKey = Self("unknown_key")
    /// The proof's nonce is unknown or old.
    package static let useNonce = Self("use_nonce")
    package static let badProof = Self("bad_proof")
    package static let replay = Self("replay")
    /// The server does not know the container.
    public static let unknownContainer = Self("unknown_container")
    /// The container is blocked; ask for its status.
    public static let containerBlocked = Self("container_blocked")
    /// The container's store may have been copied; ask for its status.
    public static let containerSuspect = Self("container_suspect")
    /// The container has ended; ask for its status.
    public static let containerRevoked = Self("container_revoked")
    /// A new container may not approve yet.
    public static let approvalsNotYet = Self("approvals_not_yet")
    /// The container's keys have expired.
    public static let keyExpired = Self("key_expired")
    /// The key was replaced.
    public static let keyRetired = Self("key_retired")
    /// The code is unknown, used or expired: nobody learns which.
    public static let invalidCode = Self("invalid_code")
    /// The user has as many containers as allowed.
    public static let deviceLimit = Self("device_limit")
    package static let ruleUnsupported = Self("rule_unsupported")
    /// The enrolment cannot be finished; begin again with a new invite.
    public static let commitmentChanged = Self("commitment_changed")
    /// The enrolment has ended; begin again with a new invite.
    public static let enrolmentVoid = Self("enrolment_void")
    /// The user must authenticate: the keys cannot be renewed yet without that.
    public static let freshAuthenticationRequired = Self("fresh_authentication_required")
    /// The digits of an enrolment are not those that the server has: somebody may be in between.
    public static let digitsWrong = Self("digits_wrong")
    /// The transaction is unknown, or somebody else's.
    public static let transactionUnknown = Self("tx_unknown")
    /// It must be fetched first.
    public static let transactionNotFetched = Self("tx_not_fetched")
    /// The transaction has expired.
    public static let transactionExpired = Self("tx_expired")
    /// The one who asked for the transaction took it back.
    public static let transactionCanceled = Self("tx_canceled")
    /// A wrong number or signature has ended the transaction.
    public static let transactionFailed = Self("tx_failed")
    /// It was decided otherwise, or on another device.
    public static let alreadyDecided = Self("already_decided")
    /// Status, effect, key or reason are not the document's.
    public static let statusNotAllowed = Self("status_not_allowed")
    /// The decision is about something else than the document, or the keys are for another offer than the last one.
    package static let hashMismatch = Self("hash_mismatch")
    package static let badSignature = Self("bad_signature")
    /// The number was wrong, which has ended the transaction.
    public static let matchWrong = Self("match_wrong")
    package static let matchUsed = Self("match_used")
    /// The key must be opened again: its evaluation is not confirmed, used, or older than five minutes.
    public static let unlockRequired = Self("unlock_required")
    /// The password slot is locked until the user authenticates.
    package static let locked = Self("locked")
    package static let wait = Self("wait")
    /// The server's key of the slot was destroyed.
    package static let shredded = Self("shredded")
    /// The password is of another generation than the server's.
    public static let wrongGeneration = Self("wrong_generation")
    /// The password must be changed first.
    public static let passwordExpired = Self("password_expired")
    /// The password may not be changed yet.
    public static let passwordTooYoung = Self("password_too_young")
    /// The server was restored from a backup, and does not know what it has signed; the user must authenticate at the
    /// issuer.
    public static let serverRolledBack = Self("server_rolled_back")
    package static let tooLarge = Self("too_large")
    /// Too many calls.
    public static let rateLimited = Self("rate_limited")
    /// The server has no time; nothing happened.
    public static let busy = Self("busy")
    /// The server cannot say whether something happened: repeat the same.
    public static let unavailable = Self("unavailable")
    /// No issuer is at this address, or this caller has nothing with that name.
    public static let notFound = Self("not_found")
    /// The caller is not signed in at the issuer, or its access token does not allow this.
    public static let unauthorized = Self("unauthorized")
    package static let forbidden = Self("forbidden")
}
