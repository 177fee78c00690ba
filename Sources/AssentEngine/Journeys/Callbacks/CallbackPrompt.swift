import AssentCore

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

extension CallbackPrompt {
    /// Under which name a prompt is stored. A prompt needs one to be written, and a way to be read for each: the
    /// compiler asks for both.
    private enum StoredName: String {
        case name, password, textInput, textOutput, choice, confirmation, hiddenValue, approval, custom
    }

    /// The prompt as it is stored between two pages.
    var json: JSONValue {
        switch self {
        case .name(let prompt): Self.stored(.name, .string(prompt))
        case .password(let prompt): Self.stored(.password, .string(prompt))
        case .textInput(let prompt, let text): Self.stored(.textInput, .string(prompt), ["default": .string(text)])
        case .textOutput(let message, let kind):
            Self.stored(.textOutput, .string(message), ["kind": .integer(kind.rawValue)])
        case .choice(let prompt, let choices, let index):
            Self.stored(.choice, .string(prompt), ["choices": Self.array(choices), "default": .integer(index)])
        case .confirmation(let options, let index):
            Self.stored(.confirmation, Self.array(options), ["default": .integer(index)])
        case .hiddenValue(let id, let value): Self.stored(.hiddenValue, .string(id), ["value": .string(value)])
        case .approval(let approval): Self.stored(.approval, approval.stored)
        case .custom(let callback):
            Self.stored(
                .custom, .string(callback.kind.rawValue),
                ["outputs": .object(callback.outputs), "inputs": .array(callback.inputs.map(\.json))])
        }
    }

    private static func stored(_ name: StoredName, _ value: JSONValue, _ others: JSONObject = [:]) -> JSONValue {
        var object = JSONObject()
        object[name.rawValue] = value
        for member in others.members { object[member.name] = member.value }
        return .object(object)
    }

    /// Reads what ``json`` has written; `nil` for anything else.
    init?(_ json: JSONValue) {
        guard let name = json.object?.names.first.flatMap(StoredName.init), let value = json[name.rawValue] else {
            return nil
        }
        let text = value.string ?? ""
        let index = json["default"]?.integer.map { Int($0) }
        switch name {
        case .name: self = .name(text)
        case .password: self = .password(text)
        case .textInput: self = .textInput(text, default: json["default"]?.string ?? "")
        case .textOutput:
            guard let kind = json["kind"]?.integer.flatMap({ MessageKind(rawValue: Int($0)) }) else { return nil }
            self = .textOutput(text, kind: kind)
        case .choice:
            guard let choices = json["choices"]?.strings, let index else { return nil }
            self = .choice(text, choices: choices, default: index)
        case .confirmation:
            guard let options = value.strings, let index else { return nil }
            self = .confirmation(options, default: index)
        case .hiddenValue: self = .hiddenValue(id: text, value: json["value"]?.string ?? "")
        case .approval:
            guard let approval = PendingApproval(stored: value) else { return nil }
            self = .approval(approval)
        case .custom:
            guard let outputs = json["outputs"]?.object, let inputs = json["inputs"]?.array else { return nil }
            self = .custom(
                CustomCallback(text, outputs: outputs, inputs: inputs.compactMap(CallbackInput.init)))
        }
    }

    private static func array(_ texts: [String]) -> JSONValue { .array(texts.map(JSONValue.string)) }
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
    /// `PollingWaitCallback`
    package static let pollingWait = CallbackKind(rawValue: "PollingWaitCallback")
}
