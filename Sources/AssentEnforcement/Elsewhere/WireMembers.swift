import AssentCore

/// The members of one JSON object, each of which is read once. What was not asked for, and what is there twice, is
/// refused: two readers that understand one message differently would decide differently.
struct WireMembers {
    private let object: JSONObject
    private let place: String
    /// Of each member, whether it was asked for.
    private var isKnown: [Bool]

    /// The members of a value that must be an object.
    ///
    /// - Parameters:
    ///   - json: the value.
    ///   - place: where it stands, for errors; empty for the whole message.
    /// - Throws: ``WireError``: it is not an object, or names a member twice.
    init(_ json: JSONValue, at place: String = "") throws(WireError) {
        guard case .object(let object) = json else {
            throw WireError(.malformed, "\(place.isEmpty ? "the message" : place) is not an object")
        }
        guard object.duplicateNames.isEmpty else {
            throw WireError(.duplicate, "a member of \(place.isEmpty ? "the message" : place) is there twice")
        }
        self.object = object
        self.place = place
        isKnown = Array(repeating: false, count: object.members.count)
    }

    /// The value of a member; `nil` where it is not there.
    mutating func value(_ name: String) -> JSONValue? {
        guard let index = object.index(of: name) else { return nil }
        isKnown[index] = true
        return object.members[index].value
    }

    /// The value of a member that must be there.
    mutating func required(_ name: String) throws(WireError) -> JSONValue {
        guard let value = value(name) else { throw fault(name, "is missing") }
        return value
    }

    /// A text of one byte at least and `limit` bytes at most, without control characters.
    mutating func text(_ name: String, upTo limit: Int) throws(WireError) -> String {
        guard let text = try optionalText(name, upTo: limit) else { throw fault(name, "is missing") }
        return text
    }

    /// The same; `nil` where it is not there.
    mutating func optionalText(_ name: String, upTo limit: Int) throws(WireError) -> String? {
        guard let value = value(name) else { return nil }
        return try checked(value, name, upTo: limit)
    }

    /// A list of such texts; an empty list where it is not there.
    mutating func texts(_ name: String, count: Int, upTo limit: Int) throws(WireError) -> [String] {
        guard let value = value(name) else { return [] }
        guard let elements = value.array else { throw fault(name, "is not a list") }
        guard elements.count <= count else { throw fault(name, "has more than \(count) elements", .tooMany) }
        var texts: [String] = []
        for element in elements { texts.append(try checked(element, name, upTo: limit)) }
        return texts
    }

    /// `true` or `false`; `false` where it is not there.
    mutating func flag(_ name: String) throws(WireError) -> Bool {
        guard let value = value(name) else { return false }
        guard let flag = value.bool else { throw fault(name, "is neither true nor false") }
        return flag
    }

    /// A whole number of a range; `nil` where it is not there.
    mutating func optionalInteger(_ name: String, in range: ClosedRange<Int64>) throws(WireError) -> Int64? {
        guard let value = value(name) else { return nil }
        guard let number = value.integer, range.contains(number) else {
            throw fault(name, "is not a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// The members of an object inside; `nil` where it is not there.
    mutating func optionalMembers(_ name: String) throws(WireError) -> WireMembers? {
        guard let value = value(name) else { return nil }
        return try WireMembers(value, at: name)
    }

    /// The members of an object inside that must be there.
    mutating func members(_ name: String) throws(WireError) -> WireMembers {
        try WireMembers(try required(name), at: name)
    }

    /// Refuses members that nobody has asked for.
    func finish() throws(WireError) {
        guard let index = isKnown.firstIndex(of: false) else { return }
        let unknown = object.members[index].name
        // A name comes from the sender, and errors are logged.
        throw fault(DisplayText.escapedForTerminal(String(unknown.prefix(40))), "is not known")
    }

    /// An error about a member.
    func fault(_ name: String, _ what: String, _ code: WireError.Code = .malformed) -> WireError {
        WireError(code, "\(place.isEmpty ? name : "\(place).\(name)") \(what)")
    }

    private func checked(_ value: JSONValue, _ name: String, upTo limit: Int) throws(WireError) -> String {
        guard let text = value.string else { throw fault(name, "is not a text") }
        guard text.utf8.count <= limit else { throw fault(name, "has more than \(limit) bytes", .tooLarge) }
        guard !text.isEmpty, Self.hasNoControls(text) else {
            throw fault(name, "is empty or has control characters")
        }
        return text
    }

    private static func hasNoControls(_ text: String) -> Bool {
        // Nearly all texts are ASCII, for which nothing need be looked up. They are looked at where they lie in memory:
        // through the text's own view that takes several times as long.
        text.utf8.withContiguousStorageIfAvailable { $0.allSatisfy(\.isASCIIPrintable) } == true
            || text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }
}
