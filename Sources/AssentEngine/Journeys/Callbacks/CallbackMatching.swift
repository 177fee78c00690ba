import AssentCore

/// Compares what a client has sent back with what a page has asked.
struct CallbackMatching {
    let asked: [CallbackPrompt]

    /// The answers, one for each callback in its order.
    ///
    /// Every callback must come back, in order. Vendors' apps leave out those that only show something, so these may be
    /// missing.
    /// - Throws: ``EngineError`` `wrongCallbackCount`, `missingCallback`, `invalidAnswer`.
    func responses(in returned: [ReturnedCallback]?) throws(EngineError) -> [CallbackResponse] {
        guard let returned, returned.count <= asked.count,
            returned.count >= asked.filter({ !$0.inputs.isEmpty }).count
        else { throw EngineError(.wrongCallbackCount) }
        var rest = returned[...]
        var responses: [CallbackResponse] = []
        for (index, prompt) in asked.enumerated() {
            if let next = rest.first, next.kind == prompt.kind {
                responses.append(try Self.response(to: prompt, place: index + 1, in: next))
                rest = rest.dropFirst()
            } else if prompt.inputs.isEmpty {
                responses.append(CallbackResponse(values: []))
            } else {
                throw EngineError(.missingCallback)
            }
        }
        guard rest.isEmpty else { throw EngineError(.missingCallback) }
        return responses
    }

    private static func response(
        to prompt: CallbackPrompt, place: Int, in returned: ReturnedCallback
    ) throws(EngineError) -> CallbackResponse {
        let inputs = prompt.inputs
        guard !inputs.isEmpty else { return CallbackResponse(values: []) }
        guard let given = returned.inputs, given.count == inputs.count else { throw EngineError(.missingCallback) }
        var values: [String] = []
        for (input, value) in zip(inputs, given) {
            let name = InputName(place: place, part: input.part)
            if let givenName = value.name, givenName != name { throw EngineError(.missingCallback) }
            values.append(try text(value.value, for: input, called: name))
        }
        return CallbackResponse(values: values)
    }

    private static func text(
        _ value: ReturnedInput.Value, for input: CallbackInput, called name: InputName
    ) throws(EngineError) -> String {
        switch input.initial {
        case .text:
            guard case .text(let text) = value, text.utf8.count <= CallbackInput.textLimit, !text.utf8.contains(0)
            else { throw invalid(name, "must be a text of at most \(CallbackInput.textLimit) bytes without NUL.") }
            return text
        case .index(_, let count):
            // A choice may come as a number or as its text.
            let index: Int64? =
                switch value {
                case .number(let number): number
                case .text(let text): Int64(text)
                case .none: nil
                }
            guard let index, index >= 0, index < Int64(count) else {
                throw invalid(name, "must be a number from 0 to \(count - 1).")
            }
            return String(index)
        }
    }

    private static func invalid(_ name: InputName, _ detail: String) -> EngineError {
        EngineError(.invalidAnswer, detail, about: "\(name.place)\(name.part)")
    }
}
