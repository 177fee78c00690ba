/// Asks to pick one of several.
public struct ChoiceCallback: JourneyCallback {
    /// `ChoiceCallback`
    public static let type = "ChoiceCallback"

    /// The callback as it came.
    public let fields: CallbackFields

    private var answer: Int?

    /// Reads the callback.
    public init(_ fields: CallbackFields) { self.fields = fields }

    /// What there is to pick from.
    public var choices: [String] { fields.texts("choices") }

    /// The index that the server proposes; may be one that does not exist.
    public var defaultChoice: Int { fields.integer("defaultChoice") ?? 0 }

    /// The picked index; ``defaultChoice`` until it is set.
    public var selectedIndex: Int {
        get { answer ?? defaultChoice }
        set { answer = newValue }
    }

    /// The index, when it was set.
    public var answers: [CallbackAnswer?] { [answer.map { .number($0) }] }

    /// Whether nothing was picked. The server's proposal is not the user's answer.
    public var needsAnswer: Bool { answer == nil }

    /// The index of a choice that refuses what the step asks for, by its text.
    package var declineIndex: Int? { choices.firstIndex(where: DeclineText.matches) }
}

/// Asks to press one of several buttons.
public struct ConfirmationCallback: JourneyCallback {
    /// `ConfirmationCallback`
    public static let type = "ConfirmationCallback"

    /// A button.
    public struct Option: Hashable, Sendable {
        /// What to write on it.
        public let title: String
        /// What pressing it sends.
        public let value: Int
    }

    /// The callback as it came.
    public let fields: CallbackFields

    /// The ``Option/value`` of the button that was pressed; `nil` until one was.
    public var selectedValue: Int?

    /// Reads the callback.
    public init(_ fields: CallbackFields) { self.fields = fields }

    /// The buttons. Without texts of its own the server means one of the usual sets: yes and no (0, 1), also with
    /// cancel (2), or OK and cancel (3, 2).
    public var options: [Option] {
        let texts = fields.texts("options")
        if !texts.isEmpty { return texts.enumerated().map { Option(title: $1, value: $0) } }
        switch fields.integer("optionType") {
        case 0: return [Option(title: "Yes", value: 0), Option(title: "No", value: 1)]
        case 1:
            return [Option(title: "Yes", value: 0), Option(title: "No", value: 1), Option(title: "Cancel", value: 2)]
        case 2: return [Option(title: "OK", value: 3), Option(title: "Cancel", value: 2)]
        default: return []
        }
    }

    /// What pressing the proposed button sends, if the server proposes one.
    public var defaultOption: Int? { fields.integer("defaultOption").flatMap { $0 < 0 ? nil : $0 } }

    /// The pressed button.
    public var answers: [CallbackAnswer?] { [selectedValue.map { .number($0) }] }

    /// Whether nothing was pressed although there is something to press.
    public var needsAnswer: Bool { selectedValue == nil && !fields.inputNames.isEmpty }

    /// What a button sends that refuses what the step asks for, by its text.
    package var declineValue: Int? { options.first { DeclineText.matches($0.title) }?.value }

    /// What the only button sends that does not refuse; `nil` when there are several, or when it cannot be told which
    /// one it is.
    package var agreeValue: Int? {
        let others = options.filter { !DeclineText.matches($0.title) }
        guard others.count == 1 else { return nil }
        return others[0].value
    }
}

enum DeclineText {
    static func matches(_ text: String) -> Bool {
        ["decline", "deny", "reject", "refuse", "no", "cancel", "abort"].contains(text.lowercased())
    }
}
