public import AssentCore

/// Why a key, a signature, a token or an encrypted message was refused or could not be made.
///
/// Errors are equal when their codes are; the detail never holds a secret.
public struct JOSEError: AssentError {
    /// What went wrong, as a stable name.
    public let code: Code

    /// What happened, in full sentences for people.
    public let detail: String

    /// What to do about it; `nil` when there is nothing to add.
    public var suggestion: String? { code.suggestion }

    /// An error with its explanation. Without one it has the sentence of its code.
    public init(_ code: Code, _ detail: String? = nil) {
        self.code = code
        self.detail = detail ?? code.sentence
    }

    /// A stable name of a kind of failure; more may be added.
    public struct Code: ErrorCode {
        /// The name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        // MARK: Form

        /// It does not have the form of what it should be.
        public static let malformed = Code("malformed")
        /// It is longer, or has more parts, than allowed.
        public static let tooLarge = Code("tooLarge")
        /// The header demands an extension (`crit`, `b64`, `zip`) that is not supported.
        public static let unsupportedExtension = Code("unsupportedExtension")

        // MARK: Keys

        /// The values do not make a key: a point off the curve, a wrong length, text that is not DER.
        public static let invalidKey = Code("invalidKey")
        /// A key of a type or on a curve that is not supported.
        public static let unsupportedKey = Code("unsupportedKey")
        /// The key is too short for its algorithm.
        public static let weakKey = Code("weakKey")
        /// Private or symmetric key values stand where only a public key may.
        public static let privateKeyRefused = Code("privateKeyRefused")
        /// No key fits the header's `kid` and `alg`.
        public static let noMatchingKey = Code("noMatchingKey")

        // MARK: Algorithms

        /// The algorithm is not supported; `none` never is.
        public static let unsupportedAlgorithm = Code("unsupportedAlgorithm")
        /// The algorithm is supported, but not one that the caller accepts here.
        public static let algorithmNotAllowed = Code("algorithmNotAllowed")
        /// The algorithm does not belong to the key, or the key is not meant for this use.
        public static let algorithmMismatch = Code("algorithmMismatch")

        // MARK: Results

        /// The signature or the authentication code is not that of the content under the key.
        public static let invalidSignature = Code("invalidSignature")
        /// The message was not encrypted to this key, or was changed. Never says which.
        public static let decryptionFailed = Code("decryptionFailed")
        /// The key could not do its work.
        public static let keyFailed = Code("keyFailed")

        // MARK: Claims

        /// `typ` is not the required type.
        public static let wrongType = Code("wrongType")
        /// `iss` is somebody else.
        public static let wrongIssuer = Code("wrongIssuer")
        /// `aud` does not name the audience.
        public static let wrongAudience = Code("wrongAudience")
        /// `exp` has passed.
        public static let expired = Code("expired")
        /// `nbf` has not come yet.
        public static let notYetValid = Code("notYetValid")
        /// `iat` lies in the future.
        public static let issuedInFuture = Code("issuedInFuture")
        /// `iat` lies further back than allowed.
        public static let tooOld = Code("tooOld")
        /// A required claim is absent.
        public static func missingClaim(_ name: String) -> Code { Code("missingClaim(\(name))") }
        /// A claim has a value that its definition does not allow.
        public static func malformedClaim(_ name: String) -> Code { Code("malformedClaim(\(name))") }

        // MARK: DPoP

        /// `htm` is another method.
        public static let wrongMethod = Code("wrongMethod")
        /// `htu` is another URI.
        public static let wrongURI = Code("wrongURI")
        /// `ath` is not the digest of the access token.
        public static let wrongAccessToken = Code("wrongAccessToken")
        /// `nonce` is absent or not one that is accepted; the answer is `use_dpop_nonce` (RFC 9449 §8).
        public static let wrongNonce = Code("wrongNonce")
    }
}
