public import AssentCore

/// Asks for the name of an account that is to be made, under the server's rules for names.
public struct ValidatedCreateUsernameCallback: JourneyCallback {
    /// `ValidatedCreateUsernameCallback`
    public static let type = "ValidatedCreateUsernameCallback"

    /// The callback as it came. Its output `policies` has the server's rules.
    public let fields: CallbackFields

    private var answer: Secret?

    /// Reads the callback.
    public init(_ fields: CallbackFields) { self.fields = fields }

    /// The name; empty until it is set.
    public var name: String {
        get { answer?.reveal() ?? "" }
        set { answer = Secret(newValue) }
    }

    /// The rules that the name before did not meet, by AM's names, for example `MIN_LENGTH` or `UNIQUE`.
    public var failedPolicies: [String] { fields.failedPolicies }

    /// The name.
    public var answers: [CallbackAnswer?] { [answer.map { .text($0) }] }

    /// Whether no name was set.
    public var needsAnswer: Bool { answer == nil }
}

/// Asks for the password of an account that is to be made, under the server's rules for passwords.
public struct ValidatedCreatePasswordCallback: JourneyCallback {
    /// `ValidatedCreatePasswordCallback`
    public static let type = "ValidatedCreatePasswordCallback"

    /// The callback as it came. Its output `policies` has the server's rules.
    public let fields: CallbackFields

    private var answer: Secret?

    /// Reads the callback.
    public init(_ fields: CallbackFields) { self.fields = fields }

    /// Whether the server lets the password be shown while it is typed.
    public var isShown: Bool { fields.truth("echoOn") ?? false }

    /// The password; empty until it is set. It is kept as a ``/AssentCore/Secret``.
    public var password: String {
        get { answer?.reveal() ?? "" }
        set { answer = Secret(newValue) }
    }

    /// Sets the password without it having been an ordinary string.
    public mutating func set(_ password: Secret) { answer = password }

    /// The rules that the password before did not meet, by AM's names, for example `MIN_LENGTH`.
    public var failedPolicies: [String] { fields.failedPolicies }

    /// The password.
    public var answers: [CallbackAnswer?] { [answer.map { .text($0) }] }

    /// Whether no password was set.
    public var needsAnswer: Bool { answer == nil }
}

extension CallbackFields {
    /// What the answer before did not meet, by AM's names. Each is a text that holds JSON.
    var failedPolicies: [String] {
        texts("failedPolicies").compactMap { text in
            (try? JSONValue.parse(Array(text.utf8)))?["policyRequirement"]?.string
        }
    }
}
