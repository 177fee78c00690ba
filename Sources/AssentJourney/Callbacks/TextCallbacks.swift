public import AssentCore

/// Asks for the user's name.
public struct NameCallback: JourneyCallback {
    /// `NameCallback`
    public static let type = "NameCallback"

    /// The callback as it came.
    public let fields: CallbackFields

    private var answer: Secret?

    /// Reads the callback.
    public init(_ fields: CallbackFields) { self.fields = fields }

    /// The name; empty until it is set. Setting the empty text is an answer.
    public var name: String {
        get { answer?.reveal() ?? "" }
        set { answer = Secret(newValue) }
    }

    /// The name.
    public var answers: [CallbackAnswer?] { [answer.map { .text($0) }] }

    /// Whether no name was set.
    public var needsAnswer: Bool { answer == nil }
}

/// Asks for a password, or another text that must not be shown while it is typed.
public struct PasswordCallback: JourneyCallback {
    /// `PasswordCallback`
    public static let type = "PasswordCallback"

    /// The callback as it came.
    public let fields: CallbackFields

    private var answer: Secret?

    /// Reads the callback.
    public init(_ fields: CallbackFields) { self.fields = fields }

    /// The password; empty until it is set. It is kept as a ``/AssentCore/Secret``.
    public var password: String {
        get { answer?.reveal() ?? "" }
        set { answer = Secret(newValue) }
    }

    /// Sets the password without it having been an ordinary string.
    public mutating func set(_ password: Secret) { answer = password }

    /// The password.
    public var answers: [CallbackAnswer?] { [answer.map { .text($0) }] }

    /// Whether no password was set.
    public var needsAnswer: Bool { answer == nil }
}

/// Asks for a text, for example a one-time code.
public struct TextInputCallback: JourneyCallback {
    /// `TextInputCallback`
    public static let type = "TextInputCallback"

    /// The callback as it came.
    public let fields: CallbackFields

    private var answer: Secret?

    /// Reads the callback.
    public init(_ fields: CallbackFields) { self.fields = fields }

    /// What the server proposes.
    public var defaultText: String { fields.text("defaultText") }

    /// The text; ``defaultText`` until it is set.
    public var text: String {
        get { answer?.reveal() ?? defaultText }
        set { answer = Secret(newValue) }
    }

    /// The text, or the proposal when there is one.
    public var answers: [CallbackAnswer?] {
        [answer.map { .text($0) } ?? (defaultText.isEmpty ? nil : .text(Secret(defaultText)))]
    }

    /// Whether no text was set and the server proposes none.
    public var needsAnswer: Bool { answer == nil && defaultText.isEmpty }
}

/// A value that the page's script would fill in. Untouched it goes back as it came.
public struct HiddenValueCallback: JourneyCallback {
    /// `HiddenValueCallback`
    public static let type = "HiddenValueCallback"

    /// The callback as it came.
    public let fields: CallbackFields

    private var answer: Secret?

    /// Reads the callback.
    public init(_ fields: CallbackFields) { self.fields = fields }

    /// What the value is for, for example `webAuthnOutcome`.
    public var id: String { fields.output("id")?.string ?? fields.input(at: 0)?.string ?? "" }

    /// The value; until it is set, the one that the server sent to show.
    public var value: String {
        get { answer?.reveal() ?? fields.text("value") }
        set { answer = Secret(newValue) }
    }

    /// The value, when it was set.
    public var answers: [CallbackAnswer?] { [answer.map { .text($0) }] }

    /// What the value is for.
    public var prompt: String { id }
}
