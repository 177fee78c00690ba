import AssentCore

/// Asks the user to accept terms. A server that wants them accepted asks again until they are.
public struct TermsAndConditionsCallback: JourneyCallback {
    /// `TermsAndConditionsCallback`
    public static let type = "TermsAndConditionsCallback"

    /// The callback as it came.
    public let fields: CallbackFields

    private var answer: Bool?

    /// Reads the callback.
    public init(_ fields: CallbackFields) { self.fields = fields }

    /// The terms to show.
    public var terms: String { fields.text("terms") }

    /// Which version of them it is.
    public var version: String { fields.text("version") }

    /// When they were made, as the server writes it (ISO 8601).
    public var createdAt: String { fields.text("createDate") }

    /// Whether the user accepts them; false until it is set.
    public var isAccepted: Bool {
        get { answer ?? false }
        set { answer = newValue }
    }

    /// What the user said.
    public var answers: [CallbackAnswer?] { [answer.map { .truth($0) }] }

    /// Whether the user has said neither yes nor no.
    public var needsAnswer: Bool { answer == nil }
}

/// Asks the user to agree that something of what is known of them is passed on, for example to another company.
public struct ConsentMappingCallback: JourneyCallback {
    /// `ConsentMappingCallback`
    public static let type = "ConsentMappingCallback"

    /// The callback as it came.
    public let fields: CallbackFields

    private var answer: Bool?

    /// Reads the callback.
    public init(_ fields: CallbackFields) { self.fields = fields }

    /// What the server calls it.
    public var name: String { fields.text("name") }

    /// What to call it for the user.
    public var displayName: String { fields.text("displayName") }

    /// The text to show; empty when the server sent none.
    public var message: String { fields.text("message") }

    /// What is passed on, by the names of the attributes.
    public var attributes: [String] { fields.texts("fields") }

    /// How much is passed on, in the server's words, for example `Actual Profile`.
    public var accessLevel: String { fields.text("accessLevel") }

    /// The picture to show, as the server names it; empty when it sent none.
    public var icon: String { fields.text("icon") }

    /// Whether the journey goes on only when the user agrees.
    public var isRequired: Bool { fields.truth("isRequired") ?? false }

    /// Whether the user agrees; false until it is set.
    public var isAccepted: Bool {
        get { answer ?? false }
        set { answer = newValue }
    }

    /// What the user said.
    public var answers: [CallbackAnswer?] { [answer.map { .truth($0) }] }

    /// Whether the user has said neither yes nor no.
    public var needsAnswer: Bool { answer == nil }

    /// What the user agrees to.
    public var prompt: String { displayName.isEmpty ? name : displayName }
}

/// Asks for a question by which the user is known later, and its answer.
public struct KbaCreateCallback: JourneyCallback {
    /// `KbaCreateCallback`
    public static let type = "KbaCreateCallback"

    /// The callback as it came.
    public let fields: CallbackFields

    private var chosen: Secret?
    private var given: Secret?

    /// Reads the callback.
    public init(_ fields: CallbackFields) { self.fields = fields }

    /// The questions that the server proposes.
    public var questions: [String] { fields.texts("predefinedQuestions") }

    /// Whether the user may have a question of their own.
    public var allowsOwnQuestion: Bool { fields.truth("allowUserDefinedQuestions") ?? true }

    /// The question: one of ``questions``, or the user's own; empty until it is set.
    public var question: String {
        get { chosen?.reveal() ?? "" }
        set { chosen = Secret(newValue) }
    }

    /// The answer; empty until it is set.
    public var answer: String {
        get { given?.reveal() ?? "" }
        set { given = Secret(newValue) }
    }

    /// Question and answer.
    public var answers: [CallbackAnswer?] { [chosen.map { .text($0) }, given.map { .text($0) }] }

    /// Whether one of the two was not set.
    public var needsAnswer: Bool { chosen == nil || given == nil }
}
