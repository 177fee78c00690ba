package import AssentCore

/// One thing that a page asks or tells, by AM's names of callbacks.
package struct CallbackPrompt: Sendable, Hashable {
    /// AM's name, for example `NameCallback`.
    package let type: String

    /// What is told, in order.
    package let outputs: [JSONObject.Member]

    /// What is asked; empty for a callback that only tells.
    package let inputs: [CallbackInput]

    /// A callback.
    package init(_ type: String, outputs: [JSONObject.Member], inputs: [CallbackInput] = []) {
        self.type = type
        self.outputs = outputs
        self.inputs = inputs
    }

    /// Asks for a user name.
    package static func name(_ prompt: String) -> CallbackPrompt {
        CallbackPrompt("NameCallback", outputs: [member("prompt", prompt)], inputs: [.text()])
    }

    /// Asks for a password.
    package static func password(_ prompt: String) -> CallbackPrompt {
        CallbackPrompt("PasswordCallback", outputs: [member("prompt", prompt)], inputs: [.text()])
    }

    /// Asks for a text.
    package static func textInput(_ prompt: String, default text: String = "") -> CallbackPrompt {
        CallbackPrompt(
            "TextInputCallback", outputs: [member("prompt", prompt), member("defaultText", text)], inputs: [.text(text)]
        )
    }

    /// Tells something. AM writes the kind of message as a string: `0` is information, `1` a warning, `2` an error.
    package static func textOutput(_ message: String, kind: String = "0") -> CallbackPrompt {
        CallbackPrompt("TextOutputCallback", outputs: [member("message", message), member("messageType", kind)])
    }

    /// Asks to choose one of several.
    package static func choice(_ prompt: String, choices: [String], default index: Int) -> CallbackPrompt {
        CallbackPrompt(
            "ChoiceCallback",
            outputs: [
                member("prompt", prompt), .init(name: "choices", value: .array(choices.map(JSONValue.string))),
                .init(name: "defaultChoice", value: .integer(index)),
            ], inputs: [.index(of: choices.count, initial: index)])
    }

    /// Asks to press one of several buttons.
    package static func confirmation(_ options: [String], default index: Int) -> CallbackPrompt {
        CallbackPrompt(
            "ConfirmationCallback",
            outputs: [
                member("prompt", ""), .init(name: "messageType", value: 0),
                .init(name: "options", value: .array(options.map(JSONValue.string))),
                .init(name: "optionType", value: -1), .init(name: "defaultOption", value: .integer(index)),
            ], inputs: [.index(of: options.count, initial: index)])
    }

    /// Tells the client, not the user, something.
    package static func metadata(_ data: JSONValue) -> CallbackPrompt {
        CallbackPrompt("MetadataCallback", outputs: [.init(name: "data", value: data)])
    }

    /// The callback as AM writes it, at its place on the page, counted from 0: its inputs are called `IDToken` and the
    /// place counted from 1, whether or not the callbacks before it have inputs.
    package func json(at index: Int) -> JSONValue {
        var object = JSONObject([
            .init(name: "type", value: .string(type)),
            .init(
                name: "output",
                value: .array(outputs.map { ["name": .string($0.name), "value": $0.value] })),
        ])
        if !inputs.isEmpty {
            object["input"] = .array(
                inputs.map { ["name": .string($0.name(at: index)), "value": $0.initial] })
        }
        object["_id"] = .integer(index)
        return .object(object)
    }

    private static func member(_ name: String, _ text: String) -> JSONObject.Member {
        .init(name: name, value: .string(text))
    }
}

/// One value that a callback asks for.
package struct CallbackInput: Sendable, Hashable {
    /// What follows `IDToken` and the number in its name; mostly nothing.
    package let suffix: String

    /// What stands there before the user has answered.
    package let initial: JSONValue

    /// For a choice: how many there are. `nil` for a text.
    package let choices: Int?

    /// The most bytes of a text.
    package static let textLimit = 4096

    /// A text.
    package static func text(_ initial: String = "", suffix: String = "") -> CallbackInput {
        CallbackInput(suffix: suffix, initial: .string(initial), choices: nil)
    }

    /// An index from 0.
    package static func index(of count: Int, initial: Int) -> CallbackInput {
        CallbackInput(suffix: "", initial: .integer(initial), choices: count)
    }

    func name(at index: Int) -> String { "IDToken\(index + 1)\(suffix)" }
}

/// What the user has answered to one callback.
package struct CallbackAnswer: Sendable, Hashable {
    /// One value for each input.
    package let values: [String]

    /// The first value, or an empty text.
    package var text: String { values.first ?? "" }

    /// The first value as an index; only meaningful for a choice, where it is one of the choices.
    package var index: Int { Int(text) ?? 0 }
}
