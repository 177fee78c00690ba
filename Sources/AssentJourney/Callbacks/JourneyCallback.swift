import AssentCore

/// One question or message of a journey's step.
///
/// To support one more type, write a `struct` that conforms and name it in ``JourneyConfiguration/callbacks``. Whatever
/// it does, the server gets back exactly the callback that it sent, with nothing changed but the values of the inputs.
public protocol JourneyCallback: Sendable, CustomStringConvertible, CustomReflectable {
    /// The type as AM names it, for example `NameCallback`.
    static var type: String { get }

    /// Reads the callback. Outputs that are missing or of another type than expected get a neutral value.
    init(_ fields: CallbackFields)

    /// The callback as it came.
    var fields: CallbackFields { get }

    /// What goes into the inputs, by position; `nil` leaves an input as it came.
    var answers: [CallbackAnswer?] { get }

    /// Whether the user has still to answer before this should be sent.
    var needsAnswer: Bool { get }

    /// What to ask the user.
    var prompt: String { get }
}

extension JourneyCallback {
    /// The output `prompt`.
    public var prompt: String { fields.text("prompt") }

    /// Nothing to fill in.
    public var answers: [CallbackAnswer?] { [] }

    /// Nothing to ask.
    public var needsAnswer: Bool { false }

    /// The type, and never an answer.
    public var description: String { fields.description }

    /// A mirror that shows the type and never an answer.
    public var customMirror: Mirror {
        Mirror(self, children: ["type": fields.type, "position": fields.position])
    }
}

/// The callback types that a client knows; a value, so that two clients may know different ones.
public struct CallbackTypes: Sendable {
    private var types: [String: any JourneyCallback.Type] = [:]

    /// A list of callback types; of two with the same name the later one counts.
    public init(_ types: [any JourneyCallback.Type]) {
        for type in types { self.types[type.type] = type }
    }

    /// These types and `more`.
    public func adding(_ more: any JourneyCallback.Type...) -> CallbackTypes {
        var all = self
        for type in more { all.types[type.type] = type }
        return all
    }

    /// All types of this library.
    public static let all = CallbackTypes([
        NameCallback.self, PasswordCallback.self, TextInputCallback.self, TextOutputCallback.self,
        SuspendedTextOutputCallback.self, ChoiceCallback.self, ConfirmationCallback.self, HiddenValueCallback.self,
        PollingWaitCallback.self, MetadataCallback.self, ValidatedCreateUsernameCallback.self,
        ValidatedCreatePasswordCallback.self, StringAttributeInputCallback.self, NumberAttributeInputCallback.self,
        BooleanAttributeInputCallback.self, TermsAndConditionsCallback.self, ConsentMappingCallback.self,
        KbaCreateCallback.self, SelectIdPCallback.self,
    ])

    func callback(_ fields: CallbackFields) -> any JourneyCallback {
        types[fields.type]?.init(fields) ?? UnknownCallback(fields)
    }
}

/// A callback of a type that the client does not know. It goes back unchanged unless it is told otherwise.
public struct UnknownCallback: JourneyCallback {
    /// Empty: it stands for every type that has no other.
    public static let type = ""

    /// The callback as it came.
    public let fields: CallbackFields

    /// What was set.
    public private(set) var answers: [CallbackAnswer?] = []

    /// Keeps the callback.
    public init(_ fields: CallbackFields) { self.fields = fields }

    /// Fills in the input at `index`; nothing happens when there is no such input.
    public mutating func answer(_ answer: CallbackAnswer, at index: Int = 0) {
        guard fields.inputNames.indices.contains(index) else { return }
        while answers.count <= index { answers.append(nil) }
        answers[index] = answer
    }
}
