import AssentCore

/// Why a server does not do what a device, a user or a relying party asks: the names of the list of errors in
/// `docs/transaction-signing.md`. A server may send names that this version does not know.
package struct RefusalCode: ErrorCode {
    package let rawValue: String

    /// A code by its name.
    package init(rawValue: String) { self.rawValue = rawValue }
}

extension RefusalCode {
    /// Malformed, out of bounds, or it does not decrypt.
    package static let invalidRequest = Self(rawValue: "invalid_request")
    package static let versionUnsupported = Self(rawValue: "version_unsupported")
    /// The request is encrypted to a key that is not used any more.
    package static let unknownKey = Self(rawValue: "unknown_key")
    /// The proof's nonce is unknown or old.
    package static let useNonce = Self(rawValue: "use_nonce")
    package static let badProof = Self(rawValue: "bad_proof")
    package static let replay = Self(rawValue: "replay")
    package static let unknownContainer = Self(rawValue: "unknown_container")
    package static let containerBlocked = Self(rawValue: "container_blocked")
    package static let containerSuspect = Self(rawValue: "container_suspect")
    package static let containerRevoked = Self(rawValue: "container_revoked")
    package static let approvalsNotYet = Self(rawValue: "approvals_not_yet")
    package static let keyExpired = Self(rawValue: "key_expired")
    package static let keyRetired = Self(rawValue: "key_retired")
    /// The code is unknown, used or expired: nobody learns which.
    package static let invalidCode = Self(rawValue: "invalid_code")
    package static let deviceLimit = Self(rawValue: "device_limit")
    package static let ruleUnsupported = Self(rawValue: "rule_unsupported")
    package static let commitmentChanged = Self(rawValue: "commitment_changed")
    package static let enrolmentVoid = Self(rawValue: "enrolment_void")
    package static let freshAuthenticationRequired = Self(rawValue: "fresh_authentication_required")
    package static let digitsWrong = Self(rawValue: "digits_wrong")
    /// Unknown, or somebody else's.
    package static let transactionUnknown = Self(rawValue: "tx_unknown")
    package static let transactionNotFetched = Self(rawValue: "tx_not_fetched")
    package static let transactionExpired = Self(rawValue: "tx_expired")
    /// Who asked for it took it back.
    package static let transactionCanceled = Self(rawValue: "tx_canceled")
    /// A wrong number or signature has ended it.
    package static let transactionFailed = Self(rawValue: "tx_failed")
    package static let alreadyDecided = Self(rawValue: "already_decided")
    /// Status, effect, key or reason are not the document's.
    package static let statusNotAllowed = Self(rawValue: "status_not_allowed")
    /// The decision is about something else than the document, or the keys are for another offer than the last one.
    package static let hashMismatch = Self(rawValue: "hash_mismatch")
    package static let badSignature = Self(rawValue: "bad_signature")
    package static let matchWrong = Self(rawValue: "match_wrong")
    package static let matchUsed = Self(rawValue: "match_used")
    /// There is no confirmed evaluation that may be taken.
    package static let unlockRequired = Self(rawValue: "unlock_required")
    /// The password slot is locked until the user authenticates.
    package static let locked = Self(rawValue: "locked")
    package static let wait = Self(rawValue: "wait")
    /// The server's key of the slot was destroyed.
    package static let shredded = Self(rawValue: "shredded")
    package static let wrongGeneration = Self(rawValue: "wrong_generation")
    package static let passwordExpired = Self(rawValue: "password_expired")
    package static let passwordTooYoung = Self(rawValue: "password_too_young")
    /// The server does not know what it has signed: it was restored from a backup.
    package static let serverRolledBack = Self(rawValue: "server_rolled_back")
    package static let tooLarge = Self(rawValue: "too_large")
    package static let rateLimited = Self(rawValue: "rate_limited")
    package static let busy = Self(rawValue: "busy")
    /// The database cannot be reached, or nobody knows whether it has answered.
    package static let unavailable = Self(rawValue: "unavailable")
    /// There is no such thing for this caller.
    package static let notFound = Self(rawValue: "not_found")
    /// There is no session, or no access token that may do this.
    package static let unauthorized = Self(rawValue: "unauthorized")
    package static let forbidden = Self(rawValue: "forbidden")
}
