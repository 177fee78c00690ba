import AssentCore
import HTTPTypes

/// A reply that refuses a registration, its change or its end, in words for people.
struct RegistrationRefusal {
    private let status: Int
    private let code: String?
    private let description: String?
    private let wait: Int?
    private let assentError: String?

    /// How long a server's own explanation may be, in bytes.
    private static let descriptionLimit = 200

    init(_ reply: ProviderExchange.Reply) {
        status = reply.status
        code = reply.oauthError
        assentError = reply.assentError
        let said = reply.object?["error_description"]?.string ?? ""
        let isFine = (1...Self.descriptionLimit).contains(said.utf8.count) && said.utf8.allSatisfy(\.isASCIIPrintable)
        description = isFine ? said : nil
        // Seconds (RFC 9110 §10.2.3), a day at most; a date is not read.
        wait = reply.fields[.retryAfter].flatMap { Int($0) }.flatMap { (1...86_400).contains($0) ? $0 : nil }
    }

    /// Whether the server may have done all the same what it was asked for: it says that it failed or does not know, or
    /// it speaks of a copy of the request whose first may have been carried out.
    private var isUncertain: Bool {
        !(300..<500).contains(status) || status == 408 || code == "invalid_dpop_proof"
    }

    /// Why nothing was registered, or perhaps nothing. `hadToken` says that there was an initial access token.
    func error(hadToken: Bool) -> TokenError {
        let (detail, suggestion) = TokenError.words(about: assentError) ?? words(hadToken: hadToken)
        return TokenError(
            isUncertain ? .registrationUnknown : .registrationRefused, explained(detail), suggestion: suggestion,
            status: status, oauthError: code
        ).saying(assentError)
    }

    /// Why the registration was not changed, or perhaps not.
    var changeError: TokenError {
        let (detail, suggestion) = changeWords
        return TokenError(
            isUncertain ? .registrationUnknown : .registrationRefused, explained(detail), suggestion: suggestion,
            status: status, oauthError: code)
    }

    /// Why the registration has not ended.
    var endingError: TokenError {
        TokenError(
            .registrationRefused, explained("The provider did not end the registration of this installation."),
            suggestion: waiting ?? "Try again, and check this machine's clock.", status: status, oauthError: code)
    }

    private var waiting: String? {
        guard status == 429 else { return nil }
        return wait.map { "Try again in \($0) \($0 == 1 ? "second" : "seconds")." } ?? Self.later
    }

    private func explained(_ detail: String) -> String {
        description.map { "\(detail) It says: \($0)" } ?? detail
    }

    private func words(hadToken: Bool) -> (detail: String, suggestion: String) {
        switch (status, code) {
        case (429, _): return ("The provider was asked to register too often.", waiting ?? Self.later)
        case (401, _) where hadToken:
            return (
                "The provider does not accept the initial access token: it is unknown, expired or used up.",
                "Ask the provider's operator for another one."
            )
        case (401, _):
            return (
                "The provider wants an initial access token before it registers an installation of this app.",
                "Ask the provider's operator for one, and set initialAccessToken "
                    + "(at the command line: assent register --token-file)."
            )
        case (403, _):
            return (
                "The provider registers no more installations of this app.",
                "Ask the provider's operator to allow more."
            )
        case (_, "invalid_redirect_uri"):
            return ("The app does not have this redirect URI at the provider.", "Check the client's redirect URI.")
        case (_, "invalid_software_statement"), (_, "unapproved_software_statement"):
            return (
                "The provider does not accept the software statement, or wants one.",
                "Ask the app's publisher for one that this provider accepts, and set softwareStatement."
            )
        case (_, "invalid_client_metadata"):
            return (
                "The provider does not register an installation with these settings.",
                "Check the app's id, its scopes and its name at the provider."
            )
        case (_, "invalid_dpop_proof"):
            return (
                "The provider did not accept the proof of this installation's key.",
                "Check this machine's clock, and try again."
            )
        default: return ("The provider registered no installation.", Self.laterOrCheck(status))
        }
    }

    private var changeWords: (detail: String, suggestion: String) {
        switch (status, code) {
        case (_, "invalid_dpop_proof"):
            return (
                "The provider did not accept the proof of this installation's key. \(TokenError.changeUncertain)",
                "Check this machine's clock, and try again."
            )
        case _ where isUncertain: return (TokenError.changeUncertain, TokenError.sameAgain)
        case (429, _): return ("The provider was asked to change the registration too often.", waiting ?? Self.later)
        case (_, "invalid_redirect_uri"):
            return (
                "The app does not have the configuration's redirect URI at the provider. \(Self.unchanged)",
                "Check the client's redirect URI."
            )
        case (_, "invalid_software_statement"), (_, "unapproved_software_statement"):
            return (
                "The provider does not accept the software statement, or wants one. \(Self.unchanged)",
                "Ask the app's publisher for one that this provider accepts, and set softwareStatement."
            )
        case (_, "invalid_client_metadata"):
            return (
                "The provider does not take the configuration's settings for this installation. \(Self.unchanged)",
                "Check the app's id, its scopes and its name at the provider."
            )
        default:
            return (
                "The provider did not change the registration of this installation. \(Self.unchanged)",
                "Check the app at the provider. If it lets nobody change a registration, unregister this installation: "
                    + "the next sign-in registers it anew."
            )
        }
    }

    private static let unchanged = "The registration stays as it was."

    private static let later = "Try again later."

    private static func laterOrCheck(_ status: Int) -> String {
        status >= 500 || status == 408
            ? "Try again later: the next try registers anew." : "Check the app at the provider."
    }
}

extension TokenError {
    /// There is no answer that says whether a client was registered. The next try makes another key, so that a client
    /// which was registered is one that nobody can use.
    static func registrationUnknown(_ error: TokenError?, status: Int? = nil) -> TokenError {
        let detail = error.map { "\($0.detail) " } ?? ""
        return TokenError(
            .registrationUnknown,
            "\(detail)Nobody knows whether the provider has registered this installation.",
            suggestion: "Try again: the next try registers anew, and nobody can use what this one may have made.",
            status: status, transportError: error?.transportError)
    }

    /// There is no answer that says whether the registration was changed. The next try sends the same again.
    static func changeUnknown(_ error: TokenError?, status: Int? = nil) -> TokenError {
        let detail = error.map { "\($0.detail) " } ?? ""
        return TokenError(
            .registrationUnknown, "\(detail)\(changeUncertain)", suggestion: sameAgain, status: status,
            transportError: error?.transportError)
    }

    fileprivate static let changeUncertain =
        "Nobody knows whether the provider has changed the registration of this installation."

    fileprivate static let sameAgain = "Try again: the next try sends the same change, which does no harm."

    /// Whether the server may have registered a client although the registration ended with this error, so that its key
    /// must not be registered again. `hadToken` says that there was an initial access token.
    ///
    /// Where something between repeats the request, the first copy may have used the initial access token up, or taken
    /// the app's last place; the second copy is then refused for that. With 429 the key is kept: the server counts a
    /// request before it registers anything, so the first copy can have registered only if it was the last that the
    /// minute allowed. An app that tries again and again in a busy minute would else make a key each time.
    func mayHaveRegistered(hadToken: Bool) -> Bool {
        guard code == .registrationRefused else { return code == .registrationUnknown }
        return status == 403 || hadToken && status == 401 && oauthError != "use_dpop_nonce"
    }
}
