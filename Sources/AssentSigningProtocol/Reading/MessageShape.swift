package import AssentCore

/// The members of a part, listed once: name on the wire, place and rule. Reading, writing, bounds and what an error
/// names follow from this list.
///
/// ```text
/// Member("did", \.did)                                     the property's type is the rule
/// Member("n", \.n, .integer(1...10))                       a rule with a bound
/// Member(optional: "reason", \.reason, .shown(1...200))    absent for nil
/// ```
package struct MessageShape<Root>: Sendable {
    private let read: @Sendable (inout MemberReader) throws(SigningProtocolError) -> Root
    private let write: @Sendable (Root, inout [JSONObject.Member]) -> Void

    /// The shape of a part.
    ///
    /// - Parameters:
    ///   - versioned: whether `v`, which must be 1, comes first.
    ///   - make: the part's initialiser. Its parameters have the members' order.
    ///   - list: the members in the order of the specification's example.
    package init<each Value>(
        versioned: Bool = false, _ make: @escaping @Sendable (repeat each Value) -> Root,
        @MemberList<Root> _ list: () -> (repeat Member<Root, each Value>)
    ) {
        let members = list()
        read = { reader throws(SigningProtocolError) in
            if versioned { try reader.version() }
            return make(repeat try (each members).read(&reader))
        }
        write = { root, object in
            if versioned { object.append(JSONObject.Member(name: "v", value: 1)) }
            repeat (each members).write(root, &object)
        }
    }

    /// Takes the members in their order, checking the bounds of each.
    func part(_ reader: inout MemberReader) throws(SigningProtocolError) -> Root { try read(&reader) }

    /// Adds the members of `root` in their order.
    func append(_ root: Root, to object: inout [JSONObject.Member]) { write(root, &object) }
}

/// Makes the list of a ``MessageShape``; each line is checked for itself, so that the compiler names the line that is
/// wrong.
@resultBuilder package enum MemberList<Root> {
    /// A line.
    package static func buildExpression<Value>(_ member: Member<Root, Value>) -> Member<Root, Value> { member }

    /// All lines.
    package static func buildBlock<each Value>(
        _ members: repeat Member<Root, each Value>
    ) -> (repeat Member<Root, each Value>) { (repeat each members) }
}

/// A part whose members are listed in ``shape``.
package protocol ShapedPart: MessagePart {
    static var shape: MessageShape<Self> { get }

    /// Checks what concerns several members, after each was read; `reader` knows their paths.
    func check(in reader: MemberReader) throws(SigningProtocolError)
}

extension ShapedPart {
    /// Takes the members that ``shape`` lists.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        self = try Self.shape.part(&reader)
        try check(in: reader)
    }

    package var members: JSONObject {
        var object: [JSONObject.Member] = []
        Self.shape.append(self, to: &object)
        return JSONObject(object)
    }

    /// Nothing: most parts have no such rule.
    package func check(in reader: MemberReader) throws(SigningProtocolError) {}
}
