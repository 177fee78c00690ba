public import AssentCore
public import AssentSigningProtocol

/// Why something with transaction signing did not work. Errors are equal when their codes are; no text in them holds a
/// secret, a code, a number or what a transaction says.
public struct SigningError: AssentError {
    /// What went wrong, as a stable name.
    public let code: Code

    /// What happened, in full sentences for people.
    public let detail: String

    /// What to do about it; `nil` when there is nothing to add.
    public let suggestion: String?

    /// Attempts that are left, where the server says so.
    public internal(set) var remaining: Int?

    /// How many seconds to wait before the next try, where the server says so.
    public internal(set) var retryAfter: Int?

    /// With a wrong password: evaluations that are left before the keys are destroyed for ever.
    public internal(set) var spare: Int?

    /// With a password that does not open: its state, where it is known.
    public internal(set) var passwordState: PasswordSlotState?

    /// With code `invalidPassword`: the rule that it breaks.
    public internal(set) var rule: PasswordRule?

    /// With code `inexplicitContainer`: the users among whom the app has to choose.
    public internal(set) var users: [String] = []

    /// With the refusal of a decision that was sent again, and is dropped: its transaction.
    public internal(set) var transactionID: String?

    /// Whether the same call may succeed later. Every call of this module may be repeated: the server does it once.
    public let isTransient: Bool

    /// How long to wait, what is left, and the rule, where they are known.
    public var notes: [String] {
        var notes: [String] = []
        if let retryAfter { notes.append("next try in \(Self.duration(retryAfter))") }
        if let remaining { notes.append("tries left: \(remaining)") }
        if let rule { notes.append(rule.sentence) }
        return notes
    }

    private static func duration(_ seconds: Int) -> String {
        seconds < 120 ? "\(seconds) s" : "\((seconds + 59) / 60) minutes"
    }

    /// An error with its explanation. Without one it has the sentence of its code.
    public init(_ code: Code, _ detail: String? = nil, suggestion: String? = nil) {
        self.code = code
        self.detail = detail ?? code.meaning?.sentence ?? "The server refused it."
        self.suggestion = suggestion ?? code.meaning?.suggestion
        isTransient = code.meaning?.isTransient ?? false
    }

    /// A stable name of a kind of failure; more may be added. What the server refuses has the server's own name.
    public typealias Code = SigningErrorCode

    init(_ error: SigningProtocolError) {
        switch error.code {
        case .documentRefused: self.init(.documentRefused, error.detail)
        case .offerRefused: self.init(.offerRefused, error.detail)
        case .modeUnsupported: self.init(.unsupportedOperation, error.detail)
        case .versionUnsupported: self.init(.versionUnsupported, error.detail)
        case .untrustedIdentity: self.init(.untrustedIdentity, error.detail)
        default: self.init(.serverAuthentication, "The server's reply is not good. \(error.detail)")
        }
    }

    /// A value of the protocol, whose errors the app hears as its own.
    static func mapped<Value>(
        _ value: @autoclosure () throws(SigningProtocolError) -> Value
    ) throws(SigningError) -> Value {
        do {
            return try value()
        } catch {
            throw SigningError(error)
        }
    }

    /// Refuses a text of the app that may not be shown, or has not so many characters.
    static func check(_ text: String, _ count: ClosedRange<Int>, at place: String) throws(SigningError) {
        do {
            try ShownText.check(text, count, at: place)
        } catch {
            throw SigningError(.invalidArgument, error.detail)
        }
    }
}

extension SigningErrorCode {
    // MARK: Of the SDK

    /// Something that should not happen.
    public static let `internal` = Self("internal")
    /// It is not built.
    public static let notImplemented = Self("notImplemented")
    /// It is not supported: a key behind a password, another mode.
    public static let unsupportedOperation = Self("unsupportedOperation")
    /// An argument is not acceptable.
    public static let invalidArgument = Self("invalidArgument")
    /// A key could not be made.
    public static let keyGeneration = Self("keyGeneration")
    /// The server's policy is weaker than the app allows.
    public static let protectionPolicy = Self("protectionPolicy")
    /// The store's data could not be read.
    public static let secureData = Self("secureData")
    /// No container fits.
    public static let invalidContainer = Self("invalidContainer")
    /// Several containers fit: name the user.
    public static let inexplicitContainer = Self("inexplicitContainer")
    /// The password is wrong.
    public static let wrongPassword = Self("wrongPassword")
    /// The new password breaks a rule.
    public static let invalidPassword = Self("invalidPassword")
    /// A password is needed, and none was given or remembered.
    public static let passwordRequired = Self("passwordRequired")
    /// A key of the container is not there any more.
    public static let credentialsLost = Self("credentialsLost")
    /// This device's keys cannot be used for it.
    public static let unsupportedDevice = Self("unsupportedDevice")
    /// The server could not be reached.
    public static let remote = Self("remote")
    /// A probe of this process has found something that is refused, so nothing was sent.
    public static let integrityFailed = Self("integrityFailed")
    /// A reply is not from the issuer, or not to this request. It counts as no reply.
    public static let serverAuthentication = Self("serverAuthentication")
    /// The issuer's identity key is not the one that this device trusts, or its successor.
    public static let untrustedIdentity = Self("untrustedIdentity")
    /// The app does not know this issuer.
    public static let untrustedIssuer = Self("untrustedIssuer")
    /// The document breaks a rule: it is not shown.
    public static let documentRefused = Self("documentRefused")
    /// The offer breaks a rule: the device does not enrol.
    public static let offerRefused = Self("offerRefused")
    /// The server has replaced its offer each time before this device could commit to it: try again, with the same
    /// invite.
    public static let offerReplaced = Self("offerReplaced")
    /// Another decision about this transaction was signed on this device before.
    public static let decisionPending = Self("decisionPending")
    /// The user has not typed the digits of the enrolment yet; see ``SigningContainer/activated()``.
    public static let notActive = Self("notActive")

    // MARK: Of the server, in the words of an app

    /// The password is locked until the user authenticates at the issuer.
    public static let passwordLocked = Self.locked
    /// The next try must wait.
    public static let passwordWait = Self.wait
    /// The key that the password opens was destroyed.
    public static let passwordDestroyed = Self.shredded

    /// The number that HID's SDK has for this; `nil` where HID has published a name only, or nothing.
    public var hid: Int? { meaning?.hid }

    /// Whether the server takes no decision of this device about the transaction any more.
    package var endsTransaction: Bool {
        let ends: [Self] = [
            .transactionUnknown, .transactionExpired, .transactionCanceled, .transactionFailed, .alreadyDecided,
            .matchWrong,
        ]
        return ends.contains(self)
    }

    struct Meaning {
        var hid: Int?
        var sentence: String
        var suggestion: String?
        var isTransient = false
    }

    var meaning: Meaning? { Self.meanings[self] }

    private static let again = "Ask for a new invite and enrol again."
    private static let authenticate = "Authenticate at the issuer and unlock it there."
    private static let askStatus = "Ask for the container's status."

    static let meanings: [Self: Meaning] = [
        .internal: Meaning(hid: 0, sentence: "Something went wrong inside of the SDK."),
        .notImplemented: Meaning(hid: 1, sentence: "This is not built."),
        .unsupportedOperation: Meaning(hid: 2, sentence: "This is not supported."),
        .invalidArgument: Meaning(hid: 3, sentence: "An argument is not acceptable."),
        .keyGeneration: Meaning(hid: 4, sentence: "A key could not be made."),
        .protectionPolicy: Meaning(hid: 5, sentence: "The server asks for less protection than this app allows."),
        .secureData: Meaning(hid: 6, sentence: "The stored data of the container cannot be read."),
        .versionUnsupported: Meaning(hid: 7, sentence: "The server speaks another version of the protocol."),
        .invalidContainer: Meaning(hid: 8, sentence: "No container of this device fits."),
        .inexplicitContainer: Meaning(
            hid: 9, sentence: "Several containers of this device fit.", suggestion: "Name the user."),
        .wrongPassword: Meaning(hid: 100, sentence: "The password is wrong."),
        .invalidPassword: Meaning(hid: 101, sentence: "The new password breaks a rule."),
        .passwordRequired: Meaning(hid: 105, sentence: "A password is needed."),
        .credentialsLost: Meaning(
            hid: 106, sentence: "A key of the container is not there any more.", suggestion: again),
        .unsupportedDevice: Meaning(hid: 200, sentence: "The keys of this device cannot be used for this."),
        .integrityFailed: Meaning(sentence: "A probe of this process has found something that is refused."),
        .remote: Meaning(sentence: "The server could not be reached.", isTransient: true),
        .serverAuthentication: Meaning(
            sentence: "The server's reply is not valid, and is ignored.", isTransient: true),
        .untrustedIdentity: Meaning(
            sentence: "The server's identity key is not the one that this device trusts.",
            suggestion: "Ask the issuer. All devices must enrol again if its identity key was lost."),
        .untrustedIssuer: Meaning(sentence: "This app does not know the issuer of the invite."),
        .documentRefused: Meaning(sentence: "The transaction's document breaks a rule and is not shown."),
        .offerRefused: Meaning(sentence: "The server's offer breaks a rule.", suggestion: again),
        .offerReplaced: Meaning(
            sentence: "The server has replaced its offer each time before this device could commit to it.",
            suggestion: "Try again with the same invite, or renew again.", isTransient: true),
        .decisionPending: Meaning(
            sentence: "Another decision about this transaction was signed on this device before.",
            suggestion: "Send that one again."),
        .notActive: Meaning(
            sentence: "The user has not typed the digits of this enrolment yet.",
            suggestion: "Type them where the code of the enrolment was made, and try again.", isTransient: true),
        .invalidRequest: Meaning(hid: 3, sentence: "The server does not accept the request."),
        .unknownContainer: Meaning(hid: 8, sentence: "The server does not know the container."),
        .containerBlocked: Meaning(sentence: "The container is blocked.", suggestion: askStatus),
        .containerSuspect: Meaning(sentence: "The container may have been copied.", suggestion: askStatus),
        .containerRevoked: Meaning(hid: 106, sentence: "The container has ended.", suggestion: askStatus),
        .approvalsNotYet: Meaning(sentence: "The new container may not approve yet."),
        .keyExpired: Meaning(hid: 102, sentence: "The container's keys have expired.", suggestion: again),
        .keyRetired: Meaning(hid: 102, sentence: "The key was replaced.", suggestion: askStatus),
        .notFound: Meaning(
            sentence: "There is no issuer at this address, or its realm offers no transaction signing.",
            suggestion: "Use the issuer's URL as it stands beside the code."),
        .invalidCode: Meaning(
            hid: 3, sentence: "The code is unknown, used or expired.", suggestion: "Ask for a new invite."),
        .freshAuthenticationRequired: Meaning(
            sentence: "The user must authenticate for this.", suggestion: "Ask the issuer for a code."),
        .unauthorized: Meaning(sentence: "Nobody is signed in at the issuer.", suggestion: "Sign in first."),
        .digitsWrong: Meaning(
            sentence: "The digits of the enrolment are not those of the server: somebody may be in between.",
            suggestion: "Do not try again on this network."),
        .deviceLimit: Meaning(hid: 200, sentence: "The user has as many devices as allowed."),
        .commitmentChanged: Meaning(sentence: "The enrolment cannot be finished.", suggestion: again),
        .enrolmentVoid: Meaning(sentence: "The enrolment has ended.", suggestion: again),
        .transactionUnknown: Meaning(sentence: "The transaction is unknown, or another user's."),
        .transactionNotFetched: Meaning(sentence: "The transaction must be fetched first."),
        .transactionExpired: Meaning(sentence: "The transaction has expired."),
        .transactionCanceled: Meaning(sentence: "The transaction was canceled."),
        .transactionFailed: Meaning(sentence: "The transaction has failed."),
        .alreadyDecided: Meaning(sentence: "The transaction was decided otherwise, or on another device."),
        .statusNotAllowed: Meaning(hid: 3, sentence: "This status is not allowed, or not with this key or reason."),
        .matchWrong: Meaning(sentence: "The number was wrong, and the transaction has ended."),
        .useNonce: Meaning(
            sentence: "The server takes the request for a delayed copy of an older one.",
            suggestion: "Try again in a minute.", isTransient: true),
        .rateLimited: Meaning(sentence: "There were too many calls.", isTransient: true),
        .busy: Meaning(sentence: "The server is busy.", isTransient: true),
        .unavailable: Meaning(sentence: "The server cannot say what became of it.", isTransient: true),
        .ruleUnsupported: Meaning(
            hid: 200, sentence: "The server does not take devices of this kind."),
        .unlockRequired: Meaning(hid: 105, sentence: "The key must be opened first."),
        .passwordLocked: Meaning(
            hid: 100, sentence: "The password is locked until the user authenticates.", suggestion: authenticate),
        .passwordWait: Meaning(hid: 100, sentence: "The next try must wait."),
        .passwordDestroyed: Meaning(hid: 106, sentence: "The key was destroyed.", suggestion: again),
        .wrongGeneration: Meaning(
            sentence: "The password is of another generation than the server's.", suggestion: askStatus),
        .serverRolledBack: Meaning(
            sentence: "The server was restored from a backup.", suggestion: authenticate),
        .passwordExpired: Meaning(
            hid: 103, sentence: "The password has expired.", suggestion: "Change the password first."),
        .passwordTooYoung: Meaning(hid: 104, sentence: "The password may not be changed yet."),
    ]
}
