import AssentCore

extension CallbackPrompt {
    /// The prompt as it is stored between two pages.
    var json: JSONValue {
        switch self {
        case .name(let prompt): ["name": .string(prompt)]
        case .password(let prompt): ["password": .string(prompt)]
        case .textInput(let prompt, let text): ["textInput": .string(prompt), "default": .string(text)]
        case .textOutput(let message, let kind): ["textOutput": .string(message), "kind": .integer(kind.rawValue)]
        case .choice(let prompt, let choices, let index):
            ["choice": .string(prompt), "choices": Self.array(choices), "default": .integer(index)]
        case .confirmation(let options, let index): ["confirmation": Self.array(options), "default": .integer(index)]
        case .hiddenValue(let id, let value): ["hiddenValue": .string(id), "value": .string(value)]
        case .approval(let approval): ["approval": approval.json]
        case .custom(let callback):
            [
                "custom": .string(callback.kind.rawValue), "outputs": .object(callback.outputs),
                "inputs": .array(callback.inputs.map(\.json)),
            ]
        }
    }

    /// Reads what ``json`` has written; `nil` for anything else.
    init?(_ json: JSONValue) {
        switch json.object?.names.first {
        case "name": self = .name(json["name"]?.string ?? "")
        case "password": self = .password(json["password"]?.string ?? "")
        case "textInput":
            self = .textInput(json["textInput"]?.string ?? "", default: json["default"]?.string ?? "")
        case "textOutput":
            guard let kind = json["kind"]?.integer.flatMap({ MessageKind(rawValue: Int($0)) }) else { return nil }
            self = .textOutput(json["textOutput"]?.string ?? "", kind: kind)
        case "choice":
            guard let choices = json["choices"]?.strings, let index = json["default"]?.integer else { return nil }
            self = .choice(json["choice"]?.string ?? "", choices: choices, default: Int(index))
        case "confirmation":
            guard let options = json["confirmation"]?.strings, let index = json["default"]?.integer else { return nil }
            self = .confirmation(options, default: Int(index))
        case "hiddenValue":
            self = .hiddenValue(id: json["hiddenValue"]?.string ?? "", value: json["value"]?.string ?? "")
        case "approval":
            guard let approval = json["approval"].flatMap(PendingApproval.init) else { return nil }
            self = .approval(approval)
        case "custom":
            guard let outputs = json["outputs"]?.object, let inputs = json["inputs"]?.array else { return nil }
            self = .custom(
                CustomCallback(
                    json["custom"]?.string ?? "", outputs: outputs, inputs: inputs.compactMap(CallbackInput.init)))
        default: return nil
        }
    }

    private static func array(_ texts: [String]) -> JSONValue { .array(texts.map(JSONValue.string)) }
}

extension CallbackInput {
    fileprivate var json: JSONValue {
        switch initial {
        case .text(let text): ["part": .string(part), "text": .string(text)]
        case .index(let index, let count): ["part": .string(part), "index": .integer(index), "of": .integer(count)]
        }
    }

    fileprivate init?(_ json: JSONValue) {
        guard let part = json["part"]?.string else { return nil }
        if let text = json["text"]?.string {
            self.init(part: part, initial: .text(text))
        } else if let index = json["index"]?.integer, let count = json["of"]?.integer {
            self.init(part: part, initial: .index(Int(index), of: Int(count)))
        } else {
            return nil
        }
    }
}

extension PendingApproval {
    fileprivate var json: JSONValue {
        var object: JSONObject = [
            "id": .string(id), "journey": .string(journey), "resource": .string(resource),
            "display": .array(display.map(\.json)), "expiresAt": .integer(expiresAt),
        ]
        object["method"] = method.map(JSONValue.string)
        object["contentType"] = contentType.map(JSONValue.string)
        object["bodySHA256"] = bodySHA256.map(JSONValue.string)
        return .object(object)
    }

    fileprivate init?(_ json: JSONValue) {
        guard let id = json["id"]?.string, let journey = json["journey"]?.string,
            let resource = json["resource"]?.string, let display = json["display"]?.array,
            let expiresAt = json["expiresAt"]?.integer
        else { return nil }
        self.init(
            id: id, journey: journey, method: json["method"]?.string, resource: resource,
            contentType: json["contentType"]?.string, bodySHA256: json["bodySHA256"]?.string,
            display: display.map {
                DisplayField(label: $0["label"]?.string ?? "", value: $0["value"]?.string ?? "")
            }, expiresAt: expiresAt)
    }
}
