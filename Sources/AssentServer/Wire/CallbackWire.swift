import AssentCore
import AssentEngine

extension CallbackPrompt {
    /// The callback as AM writes it, at its place on the page, counted from 1.
    func json(place: Int) -> JSONValue {
        var object: JSONObject = [
            "type": .string(kind.rawValue),
            "output": .array(outputs.members.map { ["name": .string($0.name), "value": $0.value] }),
        ]
        if !inputs.isEmpty {
            object["input"] = .array(
                inputs.map { input in
                    let name = InputName(place: place, part: input.part)
                    return ["name": .string(name.text), "value": input.initial.json]
                })
        }
        object["_id"] = .integer(place - 1)
        return .object(object)
    }

    /// What the callback tells the client, by AM's names and in AM's order.
    private var outputs: JSONObject {
        switch self {
        case .name(let prompt), .password(let prompt): ["prompt": .string(prompt)]
        case .textInput(let prompt, let text): ["prompt": .string(prompt), "defaultText": .string(text)]
        // AM writes this number as a string, and the one of a confirmation as a number.
        case .textOutput(let message, let kind):
            ["message": .string(message), "messageType": .string("\(kind.rawValue)")]
        case .choice(let prompt, let choices, let index):
            [
                "prompt": .string(prompt), "choices": .array(choices.map(JSONValue.string)),
                "defaultChoice": .integer(index),
            ]
        case .confirmation(let options, let index):
            [
                "prompt": "", "messageType": 0, "options": .array(options.map(JSONValue.string)), "optionType": -1,
                "defaultOption": .integer(index),
            ]
        case .hiddenValue(let id, let value): ["value": .string(value), "id": .string(id)]
        case .approval(let approval): ["data": approval.json]
        case .custom(let callback): callback.outputs
        }
    }
}

extension PendingApproval {
    /// The `data` of the Metadata callback: what is bound, for the client to compare with the request that it will
    /// repeat.
    var json: JSONValue {
        var object: JSONObject = ["_type": "AssentTransaction", "transactionId": .string(id)]
        object["method"] = method.map(JSONValue.string)
        object["resource"] = .string(resource)
        object["contentType"] = contentType.map(JSONValue.string)
        object["bodySHA256"] = bodySHA256.map(JSONValue.string)
        object["display"] = .array(lines.map { ["label": .string($0.label), "value": .string($0.value)] })
        object["expiresAt"] = .integer(expiresAt)
        return .object(object)
    }
}

extension CallbackInput.Initial {
    fileprivate var json: JSONValue {
        switch self {
        case .text(let text): .string(text)
        case .index(let index, _): .integer(index)
        }
    }
}

extension InputName {
    private static let prefix = "IDToken"

    /// The name as AM writes it, for example `IDToken2`.
    var text: String { "\(Self.prefix)\(place)\(part)" }

    /// Reads AM's name. Any other becomes one that no value has.
    init(text: String) {
        let rest = text.dropFirst(Self.prefix.count)
        let digits = rest.prefix { $0.isASCII && $0.isNumber }
        self.init(place: Int(digits) ?? 0, part: String(rest.dropFirst(digits.count)))
        if self.text != text { self.init(place: 0) }
    }
}

extension ReturnedCallback {
    init(_ json: JSONValue) {
        self.init(
            kind: json["type"]?.string.map(CallbackKind.init), inputs: json["input"]?.array?.map(ReturnedInput.init))
    }
}

extension ReturnedInput {
    init(_ json: JSONValue) {
        let value: Value? = json["value"].flatMap { value in
            value.string.map { .text($0) } ?? value.integer.map { .number($0) }
        }
        self.init(name: json["name"].map { InputName(text: $0.string ?? "") }, value: value ?? .none)
    }
}
