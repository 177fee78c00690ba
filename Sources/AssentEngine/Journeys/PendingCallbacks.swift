import AssentCore

/// What a page has asked, as far as it must be remembered to read the answers.
struct PendingCallbacks: Sendable, Hashable {
    private let callbacks: [Callback]

    private struct Callback: Sendable, Hashable {
        let type: String
        let inputs: [CallbackInput]
    }

    init(_ prompts: [CallbackPrompt]) {
        callbacks = prompts.map { Callback(type: $0.type, inputs: $0.inputs) }
    }

    init(_ json: JSONValue) throws {
        callbacks = try (json.array ?? []).map { element in
            guard let type = element["type"]?.string, let inputs = element["inputs"]?.array else {
                throw EngineError(status: 500, "a stored page cannot be read")
            }
            return Callback(
                type: type,
                inputs: inputs.map {
                    CallbackInput(
                        suffix: $0["suffix"]?.string ?? "", initial: .null,
                        choices: $0["choices"]?.integer.flatMap { Int(exactly: $0) })
                })
        }
    }

    var json: JSONValue {
        .array(
            callbacks.map { callback in
                [
                    "type": .string(callback.type),
                    "inputs": .array(
                        callback.inputs.map { input in
                            var object = JSONObject([.init(name: "suffix", value: .string(input.suffix))])
                            object["choices"] = input.choices.map { .integer($0) }
                            return .object(object)
                        }),
                ]
            })
    }

    /// Reads the answers, one for each callback in its order.
    ///
    /// AM wants every callback back, in order. Vendors' apps leave out those that only tell something, so these may be
    /// missing here.
    /// - Throws: ``EngineError`` 400 in AM's words; nothing is changed then.
    func answers(in received: JSONValue?) throws(EngineError) -> [CallbackAnswer] {
        guard let received = received?.array, received.count <= callbacks.count,
            received.count >= callbacks.filter({ !$0.inputs.isEmpty }).count
        else { throw Self.wrongNumber }
        var rest = received[...]
        var answers: [CallbackAnswer] = []
        for (index, callback) in callbacks.enumerated() {
            if let next = rest.first, next["type"]?.string == callback.type {
                answers.append(try Self.answer(to: callback, at: index, in: next))
                rest = rest.dropFirst()
            } else if callback.inputs.isEmpty {
                answers.append(CallbackAnswer(values: []))
            } else {
                throw Self.missing
            }
        }
        guard rest.isEmpty else { throw Self.missing }
        return answers
    }

    private static func answer(
        to callback: Callback, at index: Int, in received: JSONValue
    ) throws(EngineError) -> CallbackAnswer {
        guard !callback.inputs.isEmpty else { return CallbackAnswer(values: []) }
        guard let given = received["input"]?.array, given.count == callback.inputs.count else { throw missing }
        var values: [String] = []
        for (input, value) in zip(callback.inputs, given) {
            let name = input.name(at: index)
            if let givenName = value["name"], givenName.string != name { throw missing }
            values.append(try text(value["value"], for: input, called: name))
        }
        return CallbackAnswer(values: values)
    }

    private static func text(
        _ value: JSONValue?, for input: CallbackInput, called name: String
    ) throws(EngineError) -> String {
        guard let choices = input.choices else {
            guard let text = value?.string, text.utf8.count <= CallbackInput.textLimit, !text.utf8.contains(0) else {
                throw EngineError(
                    status: 400, "\(name) must be a text of at most \(CallbackInput.textLimit) bytes without NUL.")
            }
            return text
        }
        // AM takes a number or its text.
        let index = value?.integer ?? value?.string.flatMap { Int64($0) }
        guard let index, index >= 0, index < Int64(choices) else {
            throw EngineError(status: 400, "\(name) must be a number from 0 to \(choices - 1).")
        }
        return String(index)
    }

    private static let wrongNumber = EngineError(status: 400, "Incorrect number of callbacks found in JSON response")
    private static let missing = EngineError(status: 400, "Required callback not found in JSON response")
}
