import AssentCore

/// Asks for a text about the user, for example the e-mail address.
public struct StringAttributeInputCallback: JourneyCallback {
    /// `StringAttributeInputCallback`
    public static let type = "StringAttributeInputCallback"

    /// The callback as it came. Its output `policies` has the server's rules.
    public let fields: CallbackFields

    private var answer: Secret?

    /// Reads the callback.
    public init(_ fields: CallbackFields) { self.fields = fields }

    /// The attribute's name, for example `mail`.
    public var attribute: String { fields.text("name") }

    /// Whether the server insists on a text that is not empty.
    public var isRequired: Bool { fields.truth("required") ?? false }

    /// The text; what the server has already, until it is set.
    public var value: String {
        get { answer?.reveal() ?? fields.text("value") }
        set { answer = Secret(newValue) }
    }

    /// The rules that the text before did not meet, by AM's names.
    public var failedPolicies: [String] { fields.failedPolicies }

    /// The text, when it was set.
    public var answers: [CallbackAnswer?] { [answer.map { .text($0) }] }

    /// Whether no text was set although the server insists on one and has none.
    public var needsAnswer: Bool { answer == nil && isRequired && fields.text("value").isEmpty }
}

/// Asks for a number about the user, for example how many people live with them.
public struct NumberAttributeInputCallback: JourneyCallback {
    /// `NumberAttributeInputCallback`
    public static let type = "NumberAttributeInputCallback"

    /// The callback as it came. Its output `policies` has the server's rules.
    public let fields: CallbackFields

    private var answer: JSONNumber?

    /// Reads the callback.
    public init(_ fields: CallbackFields) { self.fields = fields }

    /// The attribute's name, for example `preferences/limit`.
    public var attribute: String { fields.text("name") }

    /// Whether the server insists on a number.
    public var isRequired: Bool { fields.truth("required") ?? false }

    /// The number; what the server has already, until it is set. `nil`, infinity and NaN take the answer away.
    public var value: Double? {
        get { answer?.double ?? fields.number("value") }
        set { answer = newValue.flatMap(Self.written) }
    }

    /// The rules that the number before did not meet, by AM's names.
    public var failedPolicies: [String] { fields.failedPolicies }

    /// The number, when it was set.
    public var answers: [CallbackAnswer?] { [answer.map { .decimal($0) }] }

    /// Whether no number was set although the server insists on one and has none.
    public var needsAnswer: Bool { answer == nil && isRequired && fields.number("value") == nil }

    /// A whole number without a fraction: 5, and not 5.0.
    private static func written(_ value: Double) -> JSONNumber? {
        guard let whole = Int64(exactly: value) else { return JSONNumber(value) }
        return JSONNumber(whole)
    }
}

/// Asks for a yes or no about the user, for example whether they want news.
public struct BooleanAttributeInputCallback: JourneyCallback {
    /// `BooleanAttributeInputCallback`
    public static let type = "BooleanAttributeInputCallback"

    /// The callback as it came. Its output `policies` has the server's rules.
    public let fields: CallbackFields

    private var answer: Bool?

    /// Reads the callback.
    public init(_ fields: CallbackFields) { self.fields = fields }

    /// The attribute's name, for example `preferences/marketing`.
    public var attribute: String { fields.text("name") }

    /// Whether the server insists on a value.
    public var isRequired: Bool { fields.truth("required") ?? false }

    /// The value; what the server has already, until it is set.
    public var value: Bool {
        get { answer ?? fields.truth("value") ?? false }
        set { answer = newValue }
    }

    /// The rules that the value before did not meet, by AM's names.
    public var failedPolicies: [String] { fields.failedPolicies }

    /// The value, when it was set.
    public var answers: [CallbackAnswer?] { [answer.map { .truth($0) }] }

    /// Whether no value was set although the server insists on one and has none.
    public var needsAnswer: Bool { answer == nil && isRequired && fields.truth("value") == nil }
}
