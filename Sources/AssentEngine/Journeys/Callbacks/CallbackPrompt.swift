package import AssentCore

/// One thing that a page asks or shows. What it looks like on a wire or in a browser, the server says.
package enum CallbackPrompt: Sendable, Hashable {
    /// Asks for a user name.
    case name(String)
    /// Asks for a password.
    case password(String)
    /// Asks for a text, with what stands in its field before the user has answered.
    case textInput(String, default: String = "")
    /// Shows a message.
    case textOutput(String, kind: MessageKind = .information)
    /// Asks to choose one of several; the default is an index.
    case choice(String, choices: [String], default: Int)
    /// Asks to press one of several buttons; the default is an index.
    case confirmation([String], default: Int)
    /// Gives the client a value that the user does not see, to be sent back.
    case hiddenValue(id: String, value: String)
    /// Tells the client, not the user, what is to be approved.
    case approval(PendingApproval)
    /// A callback that only its node and its client know.
    case custom(CustomCallback)

    /// What kind of message is shown.
    package enum MessageKind: Int, Sendable, Hashable, CaseIterable {
        /// Information.
        case information = 0
        /// A warning.
        case warning = 1
        /// An error.
        case error = 2
        /// A script for clients that run it; others neither run nor show it.
        case script = 4
    }
}

extension CallbackPrompt {
    /// What kind of callback it is. The raw value is the vendor's name, which clients send back.
    package var kind: CallbackKind {
        switch self {
        case .name: .name
        case .password: .password
        case .textInput: .textInput
        case .textOutput: .textOutput
        case .choice: .choice
        case .confirmation: .confirmation
        case .hiddenValue: .hiddenValue
        case .approval: .metadata
        case .custom(let callback): callback.kind
        }
    }

    /// What it asks for; empty for a callback that only shows something.
    package var inputs: [CallbackInput] {
        switch self {
        case .name, .password: [.text()]
        case .textInput(_, let text): [.text(text)]
        case .choice(_, let choices, let index): [.index(of: choices.count, initial: index)]
        case .confirmation(let options, let index): [.index(of: options.count, initial: index)]
        case .hiddenValue(let id, _): [.text(id)]
        case .textOutput, .approval: []
        case .custom(let callback): callback.inputs
        }
    }
}

/// What kind of callback a prompt is, by the vendor's name, for example `NameCallback`.
package struct CallbackKind: RawRepresentable, Sendable, Hashable {
    /// The name.
    package let rawValue: String

    /// A kind; any name will do.
    package init(rawValue: String) { self.rawValue = rawValue }

    /// `NameCallback`
    package static let name = CallbackKind(rawValue: "NameCallback")
    /// `PasswordCallback`
    package static let password = CallbackKind(rawValue: "PasswordCallback")
    /// `TextInputCallback`
    package static let textInput = CallbackKind(rawValue: "TextInputCallback")
    /// `TextOutputCallback`
    package static let textOutput = CallbackKind(rawValue: "TextOutputCallback")
    /// `ChoiceCallback`
    package static let choice = CallbackKind(rawValue: "ChoiceCallback")
    /// `ConfirmationCallback`
    package static let confirmation = CallbackKind(rawValue: "ConfirmationCallback")
    /// `HiddenValueCallback`
    package static let hiddenValue = CallbackKind(rawValue: "HiddenValueCallback")
    /// `MetadataCallback`
    package static let metadata = CallbackKind(rawValue: "MetadataCallback")
}

/// A callback that only its node and its client know: the server passes it on, and a hosted page cannot ask it.
package struct CustomCallback: Sendable, Hashable {
    /// The name that the client knows it by.
    package let kind: CallbackKind

    /// What it tells the client, in order.
    package let outputs: JSONObject

    /// What it asks for.
    package let inputs: [CallbackInput]

    /// A callback.
    package init(_ name: String, outputs: JSONObject = JSONObject(), inputs: [CallbackInput] = []) {
        kind = CallbackKind(rawValue: name)
        self.outputs = outputs
        self.inputs = inputs
    }
}

/// One value that a callback asks for.
package struct CallbackInput: Sendable, Hashable {
    /// What stands there before the user has answered.
    package enum Initial: Sendable, Hashable {
        /// A text.
        case text(String)
        /// One of this many choices, by its index from 0.
        case index(Int, of: Int)
    }

    /// Which of the callback's values it is, for example `jws`; empty when there is one only.
    package let part: String

    /// What stands there before the user has answered.
    package let initial: Initial

    /// The most bytes of a text.
    package static let textLimit = 4096

    /// A text.
    package static func text(_ initial: String = "", part: String = "") -> CallbackInput {
        CallbackInput(part: part, initial: .text(initial))
    }

    /// An index from 0.
    package static func index(of count: Int, initial: Int) -> CallbackInput {
        CallbackInput(part: "", initial: .index(initial, of: count))
    }
}
