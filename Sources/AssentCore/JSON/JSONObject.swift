/// The members of a JSON object in their order.
///
/// Names are compared by their code points, without Unicode normalisation, as RFC 8259 §8.3 asks. Where a name occurs
/// more than once (only possible when parsed with ``JSONDuplicates/keep``), lookups give the last, as most programs do.
public struct JSONObject: Hashable, Sendable {
    /// A name and its value.
    public struct Member: Hashable, Sendable {
        /// The name.
        public let name: String
        /// The value.
        public var value: JSONValue

        /// A member.
        public init(name: String, value: JSONValue) {
            self.name = name
            self.value = value
        }

        /// Whether name and value are the same; names are compared by their code points.
        public static func == (left: Member, right: Member) -> Bool {
            JSONObject.same(left.name, right.name) && left.value == right.value
        }

        /// Hashes what `==` compares.
        public func hash(into hasher: inout Hasher) {
            hasher.combine(Array(name.utf8))
            hasher.combine(value)
        }
    }

    /// All members in their order.
    public private(set) var members: [Member]

    /// An object of these members.
    public init(_ members: [Member] = []) {
        self.members = members
    }

    /// An object of those members that have a value, in the order written: for members that are only sometimes there.
    ///
    /// ```swift
    /// JSONObject(omittingNil: ["sub": .string(subject), "nonce": nonce.map(JSONValue.string)])
    /// ```
    public init(omittingNil members: KeyValuePairs<String, JSONValue?>) {
        // With room for all of them from the start: requests and answers are made so.
        self.members = []
        self.members.reserveCapacity(members.count)
        for (name, value) in members {
            if let value { self.members.append(Member(name: name, value: value)) }
        }
    }

    /// The names that occur more than once.
    public var duplicateNames: [String] {
        var seen = JSONNames()
        return members.indices.compactMap { index in
            let name = members[index].name
            return seen.isNew(name, behind: members[..<index]) ? nil : name
        }
    }

    /// The names in their order.
    public var names: [String] { members.map(\.name) }

    /// The position of the last member of that name in ``members``, or `nil`.
    package func index(of name: String) -> Int? { members.lastIndex { Self.same($0.name, name) } }

    /// The value of a member; setting `nil` removes it, setting a new name appends it.
    public subscript(name: String) -> JSONValue? {
        get { members.last { Self.same($0.name, name) }?.value }
        set {
            guard let newValue else {
                members.removeAll { Self.same($0.name, name) }
                return
            }
            if let index = index(of: name) {
                members[index].value = newValue
            } else {
                members.append(Member(name: name, value: newValue))
            }
        }
    }

    /// Whether two names have the same code points.
    static func same(_ left: String, _ right: String) -> Bool { left.hasSameBytes(as: right) }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
    /// An object, its members in the order written.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self.init(elements.map { Member(name: $0.0, value: $0.1) })
    }
}

extension JSONValue {
    /// An object of those members that have a value, in the order written.
    package init(omittingNil members: KeyValuePairs<String, JSONValue?>) {
        self = .object(JSONObject(omittingNil: members))
    }
}
