extension FormItems {
    /// Parameters as the items of a form: sorted by the bytes of their names, so that the same parameters are always
    /// the same text. A list repeats its name; numbers and truth values are their JSON text.
    ///
    /// - Throws: ``WireError``: `duplicate` for a name that is there twice; `malformed` for an object, an
    ///   empty list, a list in a list and `null`, which have no form.
    public init(parameters: JSONObject) throws(WireError) {
        guard parameters.duplicateNames.isEmpty else {
            throw WireError(.duplicate, "a parameter is there twice; give its values as a list")
        }
        var items: [Item] = []
        let sorted = parameters.members.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
        for member in sorted {
            // Nothing would be sent, and what the resource then does is for all and not for none.
            guard member.value.array?.isEmpty != true else {
                throw WireError(.malformed, "an empty list has no form as a parameter")
            }
            for value in member.value.array ?? [member.value] {
                items.append(Item(member.name, try Self.text(of: value)))
            }
        }
        self.init(items)
    }

    private static func text(of value: JSONValue) throws(WireError) -> String {
        switch value {
        case .string(let text): text
        case .number(let number): number.description
        case .bool(let value): value ? "true" : "false"
        case .null, .array, .object:
            throw WireError(.malformed, "an object, a list in a list or null has no form as a parameter")
        }
    }
}
