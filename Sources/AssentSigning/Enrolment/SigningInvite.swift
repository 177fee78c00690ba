import AssentCore
import AssentSigningProtocol

/// An invitation to enrol this device: the text of a QR code, or a code that the user typed.
public struct SigningInvite: Sendable {
    /// The issuer that the invite names. A QR code proves it only when the device enrols.
    public let issuer: String

    /// The issuer's host, which the app shows unless it has a list of issuers.
    public var host: String {
        let rest = issuer.dropFirst("https://".count)
        return String(rest.prefix { $0 != "/" })
    }

    let code: InviteCode
    let scanned: UnverifiedMessage<Invite>?

    /// Reads the text of a QR code.
    ///
    /// - Throws: ``SigningError`` with code `invalidArgument`.
    public init(scanned text: String) throws(SigningError) {
        do {
            let message = try UnverifiedMessage<Invite>(text)
            scanned = message
            code = message.content.code
            issuer = message.content.issuer
        } catch {
            throw SigningError(.invalidArgument, "The QR code is not an invite. \(error.detail)")
        }
    }

    /// Reads a code that a person typed, for the issuer that the app knows or the user gave: the URL that stands beside
    /// the code, for example `https://am.bank.example/am/signing/realms/root/realms/alpha`. Small letters, blanks and
    /// hyphens are taken, and 0, 1 and 8 are read as O, I and B.
    ///
    /// - Throws: ``SigningError`` with code `invalidArgument` when it was mistyped; nothing is sent for that.
    public init(typed text: String, issuer: String) throws(SigningError) {
        guard let code = InviteCode(typed: text) else {
            throw SigningError(
                .invalidArgument, "The code was mistyped.", suggestion: "Compare it with the page that shows it.")
        }
        guard IssuerName.isValid(issuer) else {
            throw SigningError(.invalidArgument, "The issuer is not an https URL without query and trailing slash.")
        }
        self.code = code
        self.issuer = issuer
        scanned = nil
    }
}
