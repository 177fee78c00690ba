import AssentCore

/// A line of a ``MessageShape``: a member's name, its place in the part, and its rule.
package struct Member<Root, Value>: Sendable {
    /// Where a part has the member.
    package typealias Place<Leaf> = any KeyPath<Root, Leaf> & Sendable

    let read: @Sendable (inout MemberReader) throws(SigningProtocolError) -> Value
    let write: @Sendable (Root, inout [JSONObject.Member]) -> Void

    /// `nil` alone would be the JSON value null.
    private static var absent: JSONValue? { .none }

    private init(
        _ place: Place<Value>, _ name: String,
        read: @escaping @Sendable (inout MemberReader) throws(SigningProtocolError) -> Value,
        json: @escaping @Sendable (Value) -> JSONValue?
    ) {
        self.read = read
        write = { root, object in
            guard let value = json(root[keyPath: place]) else { return }
            object.append(JSONObject.Member(name: name, value: value))
        }
    }

    /// A member that is always there.
    package init(_ name: String, _ place: Place<Value>, _ rule: MemberRule<Value>) {
        self.init(
            place, name, read: { reader throws(SigningProtocolError) in try reader.read(name, rule) },
            json: { rule.json($0) })
    }

    /// A member that is always there, by the rule of its type.
    package init(_ name: String, _ place: Place<Value>) where Value: MemberValue { self.init(name, place, .own) }

    /// A member that is absent for `nil`.
    package init<Wrapped>(
        optional name: String, _ place: Place<Wrapped?>, _ rule: MemberRule<Wrapped>
    ) where Value == Wrapped? {
        self.init(
            place, name,
            read: { reader throws(SigningProtocolError) in
                reader.has(name) ? try reader.read(name, rule) : nil
            }, json: { $0.map(rule.json) })
    }

    /// A member that is absent for `nil`, by the rule of its type.
    package init<Wrapped: MemberValue>(
        optional name: String, _ place: Place<Wrapped?>
    ) where Value == Wrapped? {
        self.init(optional: name, place, .own)
    }

    /// An array that is absent when it is empty.
    package init<Element>(
        unlessEmpty name: String, _ place: Place<[Element]>, _ rule: MemberRule<[Element]>
    ) where Value == [Element] {
        self.init(
            place, name,
            read: { reader throws(SigningProtocolError) in
                reader.has(name) ? try reader.read(name, rule) : []
            }, json: { $0.isEmpty ? Self.absent : rule.json($0) })
    }

    /// A member that is only ever `true`, or absent.
    package init(flag name: String, _ place: Place<Bool>) where Value == Bool {
        self.init(
            place, name, read: { reader throws(SigningProtocolError) in try reader.flag(name) },
            json: { $0 ? true : Self.absent })
    }

    /// Another part, whose members stand among these.
    package init(embedded place: Place<Value>) where Value: ShapedPart {
        read = { reader throws(SigningProtocolError) in try Value(reading: &reader) }
        write = { root, object in Value.shape.append(root[keyPath: place], to: &object) }
    }
}
