import AssentCore

/// Why a message of the transaction signing protocol (TSP/1) was refused. Errors are equal when their codes are; no
/// text in them holds a secret or what a message says.
package struct SigningProtocolError: AssentError {
    /// What is wrong, as a stable name.
    package let code: Code

    /// What is wrong, in a sentence.
    package let detail: String

    /// The member that is wrong, as a path (`keys[2].label`); `nil` when it is not about one.
    package let member: String?

    /// Nothing can be done with a message that was refused.
    package var suggestion: String? { nil }

    /// An error with its explanation.
    package init(_ code: Code, _ detail: String, member: String? = nil) {
        (self.code, self.detail, self.member) = (code, detail, member)
    }

    /// A stable name of a reason; more may be added.
    package struct Code: ErrorCode {
        package let rawValue: String

        /// A code by its name.
        package init(rawValue: String) { self.rawValue = rawValue }

        /// It does not have the form of what it should be.
        package static let malformed = Code("malformed")
        package static let tooLarge = Code("tooLarge")
        package static let versionUnsupported = Code("versionUnsupported")
        /// A member has another type, or is out of its bounds.
        package static let invalidMember = Code("invalidMember")
        package static let missingMember = Code("missingMember")
        package static let unknownMember = Code("unknownMember")
        /// It is another message than the one expected here.
        package static let wrongType = Code("wrongType")
        /// The key that signed it, or that it is encrypted to, is not known here.
        package static let unknownKey = Code("unknownKey")
        package static let invalidSignature = Code("invalidSignature")
        /// It cannot be decrypted: the key is another one, or something was changed.
        package static let decryptionFailed = Code("decryptionFailed")
        /// It is encrypted for somebody else, or by somebody else, than expected.
        package static let wrongRecipient = Code("wrongRecipient")
        package static let wrongIssuer = Code("wrongIssuer")
        /// It is for somebody else.
        package static let wrongAudience = Code("wrongAudience")
        package static let wrongRequest = Code("wrongRequest")
        /// It was made outside of the time of the certificate of the key that signed it.
        package static let outsideCertificate = Code("outsideCertificate")
        /// No chain leads from the trusted identity key to this one.
        package static let untrustedIdentity = Code("untrustedIdentity")
        /// The document breaks a rule that every device checks.
        package static let documentRefused = Code("documentRefused")
        /// The offer breaks a rule that every device checks.
        package static let offerRefused = Code("offerRefused")
        package static let modeUnsupported = Code("modeUnsupported")
        /// It is not a point of the VOPRF's curve, or no key of it.
        package static let invalidElement = Code("invalidElement")
        package static let invalidProof = Code("invalidProof")
    }

    package static func invalid(_ member: String, _ why: String) -> SigningProtocolError {
        SigningProtocolError(.invalidMember, "The member \(member) \(why).", member: member)
    }
}
