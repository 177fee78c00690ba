package import AssentCore

/// Takes the members of a JSON object one by one; what is left over at the end is refused.
package struct MemberReader {
    private let object: JSONObject
    private let place: String
    private var taken = 0

    /// A reader of this object. `place` is where it stands in the message, for errors.
    package init(_ object: JSONObject, at place: String = "") { (self.object, self.place) = (object, place) }

    /// Refuses members that nobody asked for. The parser has refused members that occur twice, so counting is enough.
    package func finish() throws(SigningProtocolError) {
        guard taken == object.members.count else {
            throw SigningProtocolError(
                .unknownMember, "The message has a member that is not known\(place.isEmpty ? "" : " in \(place)").",
                member: place.isEmpty ? nil : place)
        }
    }

    /// The path of a member, for errors.
    package func path(_ name: String) -> String { place.isEmpty ? name : "\(place).\(name)" }

    /// Whether there is such a member.
    package func has(_ name: String) -> Bool { object[name] != nil }

    /// A member as it is.
    package mutating func value(_ name: String) throws(SigningProtocolError) -> JSONValue {
        guard let value = object[name] else {
            throw SigningProtocolError(.missingMember, "The member \(path(name)) is missing.", member: path(name))
        }
        taken += 1
        return value
    }

    /// A member by a rule.
    package mutating func read<Value>(
        _ name: String, _ rule: MemberRule<Value>
    ) throws(SigningProtocolError) -> Value { try rule.read(value(name), path(name)) }

    /// A member by the rule of its type.
    package mutating func read<Value: MemberValue>(_ name: String) throws(SigningProtocolError) -> Value {
        try Value(value(name), at: path(name))
    }

    /// A member that is only ever `true`, or absent.
    package mutating func flag(_ name: String) throws(SigningProtocolError) -> Bool {
        guard has(name) else { return false }
        guard try read(name) else { throw .invalid(path(name), "may only be true, or absent") }
        return true
    }

    /// `v`, which must be 1.
    mutating func version() throws(SigningProtocolError) {
        guard case .number(let number) = try value("v"), let version = StrictJSON.integer(number) else {
            throw .invalid(path("v"), "is not a version")
        }
        guard version == 1 else {
            throw SigningProtocolError(
                .versionUnsupported, "The message is of version \(version); only version 1 is known here.", member: "v")
        }
    }
}
