public import AssentCore
public import AssentJOSE
import AssentSigningProtocol

/// Judges bundles of evidence about signed transactions, without a server, a clock or the network.
///
/// A relying party gets a bundle from the issuer (`GET …/transactions/<txn>/evidence`) and keeps it. Who has the
/// issuer's identity key, got in another way than with the bundle, can judge it at any time:
///
/// ```swift
/// let verifier = try EvidenceVerifier(trusting: JWK(JSONValue.parse(identityKey)))
/// let judgement = try verifier.judge(bundle)
/// guard judgement.isAccepted, let decision = judgement.decisions.first else {
///     return "not proved: \(judgement.contradicted)"
/// }
/// return "\(decision.transactionID) was answered with \(decision.status), for: \(decision.texts)"
/// ```
public struct EvidenceVerifier: Sendable {
    private let root: KeyThumbprint

    /// The longest bundle, in bytes.
    public static let sizeLimit = EvidenceBundle.limit

    /// A verifier that trusts one identity key.
    ///
    /// - Parameter identity: the issuer's identity key, a P-256 key.
    /// - Throws: ``EvidenceError`` with code `notAKey`.
    public init(trusting identity: JWK) throws(EvidenceError) {
        guard identity.verifies(.es256) else {
            throw EvidenceError(.notAKey, "An identity key is on P-256, and this key is not.")
        }
        try self.init(trustingThumbprint: identity.thumbprint)
    }

    /// A verifier that trusts the identity key with this thumbprint (RFC 7638, SHA-256 as base64url).
    ///
    /// - Parameter thumbprint: the thumbprint.
    /// - Throws: ``EvidenceError`` with code `notAKey`.
    public init(trustingThumbprint thumbprint: String) throws(EvidenceError) {
        guard let root = KeyThumbprint(text: thumbprint) else {
            throw EvidenceError(.notAKey, "This is not the thumbprint of an identity key.")
        }
        self.root = root
    }

    /// Judges a bundle.
    ///
    /// - Parameter bundle: the file's content, JSON of at most ``sizeLimit`` bytes.
    /// - Returns: what the bundle proves, what it only claims, and what is wrong with it.
    /// - Throws: ``EvidenceError`` with code `notABundle`.
    public func judge(_ bundle: [UInt8]) throws(EvidenceError) -> EvidenceJudgement {
        let read: EvidenceBundle
        do {
            read = try EvidenceBundle(reading: bundle)
        } catch {
            throw EvidenceError(.notABundle, "This is not a bundle of evidence. \(error.detail)")
        }
        return EvidenceJudgement(EvidenceVerification.report(on: read, trust: root))
    }
}

/// Why there is no judgement. Errors are equal when their codes are.
public struct EvidenceError: AssentError {
    /// What is wrong, as a stable name.
    public let code: Code

    /// What is wrong, in full sentences.
    public let detail: String

    /// What to do about it.
    public var suggestion: String? {
        code == .notAKey ? "Give the issuer's identity key as a JWK, or its thumbprint." : nil
    }

    /// An error with its explanation.
    public init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    /// A stable name of a reason; more may be added.
    public struct Code: ErrorCode {
        /// The name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The bytes are not a bundle: they break its form or its bounds.
        public static let notABundle = Code("notABundle")
        /// The trusted key cannot be an identity key.
        public static let notAKey = Code("notAKey")
    }
}
