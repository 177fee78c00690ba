public import AssentCore

/// A callback as the server sent it: its outputs to show and its inputs to fill in.
///
/// Descriptions and mirrors leave the content out, since a server may prefill inputs with values that are nobody's
/// business.
public struct CallbackFields: Hashable, Sendable {
    /// Everything, members in their order.
    public let json: JSONObject

    /// Where it stands in its step, from 0.
    public let position: Int

    /// The type as AM names it, for example `NameCallback`.
    public let type: String

    /// The names of the inputs, for example `IDToken1`, in their order.
    public let inputNames: [String]

    /// Reads a callback that is `position`th in its step.
    public init(_ json: JSONObject, position: Int) {
        self.json = json
        self.position = position
        type = json["type"]?.string ?? ""
        inputNames = (json["input"]?.array ?? []).map { $0["name"]?.string ?? "" }
    }

    /// The output called `name`, whatever it is.
    public func output(_ name: String) -> JSONValue? {
        json["output"]?.array?.first { $0["name"]?.string == name }?["value"]
    }

    /// The output called `name` as text; empty when it is missing or something else.
    public func text(_ name: String) -> String { output(name)?.string ?? "" }

    /// The output called `name` as texts; empty when it is missing or something else.
    public func texts(_ name: String) -> [String] { output(name)?.strings ?? [] }

    /// The output called `name` as a truth value.
    public func truth(_ name: String) -> Bool? { output(name)?.bool }

    /// The output called `name` as a whole number, which AM writes as a number or as text.
    public func integer(_ name: String) -> Int? {
        guard let value = output(name) else { return nil }
        return value.integer.flatMap { Int(exactly: $0) } ?? value.string.flatMap { Int($0) }
    }

    /// The output called `name` as a number that may have a fraction, which AM writes as a number or as text; `nil` for
    /// infinity and NaN.
    public func number(_ name: String) -> Double? {
        guard let value = output(name) else { return nil }
        let number = value.number?.double ?? value.string.flatMap { Double($0) }
        return number.flatMap { $0.isFinite ? $0 : nil }
    }

    /// What the input at `index` holds already, as the server sent it.
    public func input(at index: Int) -> JSONValue? {
        guard let inputs = json["input"]?.array, inputs.indices.contains(index) else { return nil }
        return inputs[index]["value"]
    }

    /// The callback with `answers` in its inputs by position; everything else as it came.
    package func filled(with answers: [CallbackAnswer?]) -> JSONValue {
        guard var inputs = json["input"]?.array else { return .object(json) }
        for (index, answer) in answers.enumerated() {
            guard let answer, inputs.indices.contains(index), var input = inputs[index].object else { continue }
            input["value"] = answer.json
            inputs[index] = .object(input)
        }
        var filled = json
        filled["input"] = .array(inputs)
        return .object(filled)
    }
}

extension CallbackFields: CustomStringConvertible, CustomReflectable {
    /// Type and position, nothing of the content.
    public var description: String { "\(type) at \(position)" }

    /// A mirror that shows type and position only.
    public var customMirror: Mirror { Mirror(self, children: ["type": type, "position": position]) }
}

/// What goes into one input. Nothing of it shows in descriptions.
public enum CallbackAnswer: Equatable, Sendable {
    /// A text; it may be a password or a code.
    case text(Secret)
    /// A whole number, as choices want it.
    case number(Int)
    /// A number that may have a fraction.
    case decimal(JSONNumber)
    /// A truth value.
    case truth(Bool)

    package var json: JSONValue {
        switch self {
        case .text(let secret): .string(secret.reveal())
        case .number(let number): .integer(number)
        case .decimal(let number): .number(number)
        case .truth(let value): .bool(value)
        }
    }
}

extension CallbackAnswer: CustomStringConvertible, CustomReflectable {
    /// Always the same text.
    public var description: String { "«answer»" }

    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
