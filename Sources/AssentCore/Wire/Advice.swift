/// What AM wants of the user before it allows something: names of conditions with their values (`advices` of a policy
/// decision).
///
/// Transactional authorization is the condition ``Name/transaction``, a step-up by a journey ``Name/service``. Names
/// that this library does not know are kept.
public struct Advice: Hashable, Sendable {
    /// The most names in one advice.
    public static let entryLimit = 16

    /// The most values of one name.
    public static let valueLimit = 16

    /// The most bytes of one value.
    public static let valueByteLimit = 1024

    /// The name of a condition.
    public struct Name: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The name as AM writes it.
        public let rawValue: String

        /// Takes the name as it is.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The name as AM writes it.
        public var description: String { rawValue }

        /// The user must approve this very request; the value is the transaction's id.
        public static let transaction = Name(rawValue: "TransactionConditionAdvice")
        /// The user must pass a journey; the value is its name, possibly with the realm in front: `/realm:Journey`.
        public static let service = Name(rawValue: "AuthenticateToServiceConditionAdvice")
        /// The same under its newer name.
        public static let tree = Name(rawValue: "AuthenticateToTreeConditionAdvice")
        /// The session must have at least this level.
        public static let authLevel = Name(rawValue: "AuthLevelConditionAdvice")
        /// The user must sign in to this realm.
        public static let realm = Name(rawValue: "AuthenticateToRealmConditionAdvice")
        /// The user must sign in with this module.
        public static let authScheme = Name(rawValue: "AuthSchemeConditionAdvice")
        /// The session is too old or idle.
        public static let session = Name(rawValue: "SessionConditionAdvice")

        /// Whether AM is known to send it.
        public var isKnown: Bool {
            [Self.transaction, .service, .tree, .authLevel, .realm, .authScheme, .session].contains(self)
        }
    }

    /// A name with its values.
    public struct Entry: Hashable, Sendable {
        /// The condition.
        public let name: Name
        /// Its values, at least one.
        public let values: [String]

        /// A name with its values.
        public init(_ name: Name, _ values: [String]) {
            self.name = name
            self.values = values
        }
    }

    /// What to do about an advice.
    public enum Kind: Hashable, Sendable {
        /// Approve the transaction of this id, then repeat the request with it.
        case transaction(id: String)
        /// Pass this journey, then repeat the request. The realm is `nil` when the value did not name one.
        case service(tree: String, realm: String?)
        /// Something else; the values are as they came.
        case other(Name, values: [String])
    }

    /// All names with their values, in the order they came in, each name once.
    public let entries: [Entry]

    /// The server that its sender names, without query; `nil` where it was not read from a form that names one. Who
    /// acts on the advice compares it with the configured server.
    public private(set) var server: String?

    /// An advice of these entries; those of one name are joined. The values of ``Name/transaction`` are split at white
    /// space, since the vendor's browser client joins several into one.
    ///
    /// - Throws: ``WireError``: `malformed` when there is no entry, an entry has no value, a value is empty or has
    ///   control characters, a name is not made of ASCII letters, digits, `_`, `-` and `.`, or a transaction's id has
    ///   characters that no client could carry back (`< > , = " &` or any beyond printable ASCII); `tooMany`;
    ///   `tooLarge`.
    public init(_ entries: [Entry]) throws(WireError) {
        var joined: [Entry] = []
        for entry in entries {
            var values = entry.values
            if entry.name == .transaction { values = values.flatMap(Self.words) }
            if let index = joined.firstIndex(where: { $0.name == entry.name }) {
                joined[index] = Entry(entry.name, joined[index].values + values)
            } else {
                joined.append(Entry(entry.name, values))
            }
        }
        guard !joined.isEmpty else { throw WireError(.malformed, "an advice without any condition") }
        guard joined.count <= Self.entryLimit else {
            throw WireError(.tooMany, "more than \(Self.entryLimit) conditions in an advice")
        }
        for entry in joined { try Self.check(entry) }
        self.entries = joined
    }

    /// The advice that asks for a transaction. See ``init(_:)`` for the errors.
    public init(transactionID: String) throws(WireError) {
        try self.init([Entry(.transaction, [transactionID])])
    }

    /// The advice that asks for a journey, its realm (for example `/alpha`) in front when there is one. See
    /// ``init(_:)``.
    public init(tree: String, realm: String? = nil) throws(WireError) {
        try self.init([Entry(.service, [realm.map { "\($0):\(tree)" } ?? tree])])
    }

    /// The values of a condition; empty when it is not named.
    public subscript(name: Name) -> [String] {
        entries.first { $0.name == name }?.values ?? []
    }

    /// The transaction's id, when there is one; the first of several.
    public var transactionID: String? { self[.transaction].first }

    /// What to do first. A transaction comes last, since AM lets it be approved only when the other conditions hold; of
    /// the others a journey comes first, then the order in which they were sent.
    public var kind: Kind {
        for entry in entries where entry.name == .service || entry.name == .tree {
            if let value = entry.values.first { return Self.service(value) }
        }
        if let entry = entries.first(where: { $0.name != .transaction }) {
            return .other(entry.name, values: entry.values)
        }
        return .transaction(id: transactionID ?? "")
    }

    /// The part that must be met first: everything but the transaction, or all of it when there is nothing else.
    public var nextToMeet: Advice {
        let others = entries.filter { $0.name != .transaction }
        return others.isEmpty ? self : Advice(checked: others, server: server)
    }

    private init(checked entries: [Entry], server: String?) {
        self.entries = entries
        self.server = server
    }

    /// The same advice with the server that its sender names.
    func named(by server: String?) -> Advice { Advice(checked: entries, server: server) }

    private static func service(_ value: String) -> Kind {
        guard value.hasPrefix("/"), let colon = value.firstIndex(of: ":") else {
            return .service(tree: value, realm: nil)
        }
        return .service(tree: String(value[value.index(after: colon)...]), realm: String(value[..<colon]))
    }

    private static func words(of text: String) -> [String] {
        text.utf8.split { $0 == 0x20 || (0x09...0x0D).contains($0) }.map { String(decoding: $0, as: UTF8.self) }
    }

    private static func check(_ entry: Entry) throws(WireError) {
        let name = entry.name.rawValue.utf8
        guard !name.isEmpty, name.count <= 128,
            name.allSatisfy({ $0.isASCIIAlphanumeric || "_-.".utf8.contains($0) })
        else { throw WireError(.malformed, "the name of a condition has other characters or is too long") }
        guard !entry.values.isEmpty else { throw WireError(.malformed, "a condition without a value") }
        guard entry.values.count <= valueLimit else {
            throw WireError(.tooMany, "a condition has more than \(valueLimit) values")
        }
        for value in entry.values {
            guard !value.isEmpty, value.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control }) else {
                throw WireError(.malformed, "a condition's value is empty or has control characters")
            }
            guard value.utf8.count <= valueByteLimit else {
                throw WireError(.tooLarge, "a condition's value has more than \(valueByteLimit) bytes")
            }
            if entry.name == .transaction {
                guard value.utf8.count <= 256,
                    value.utf8.allSatisfy({ $0.isASCIIVisible && !"<>,=\"&".utf8.contains($0) })
                else { throw WireError(.malformed, "a transaction's id has characters that no client can carry back") }
            }
            if entry.name == .service || entry.name == .tree, case .service(let tree, _) = service(value) {
                guard !tree.isEmpty else { throw WireError(.malformed, "a condition names a realm but no journey") }
            }
        }
    }
}

extension Advice {
    /// The JSON map of names to values, as a policy decision's `advices` has it.
    public var json: JSONValue {
        .object(
            JSONObject(
                entries.map { .init(name: $0.name.rawValue, value: .array($0.values.map { JSONValue.string($0) })) }))
    }

    /// Reads the JSON map of names to values.
    ///
    /// - Throws: ``WireError``: `malformed` when it is not an object of arrays of strings, and as ``init(_:)``.
    public init(json: JSONValue) throws(WireError) {
        guard let members = json.object?.members else { throw WireError(.malformed, "advices are not a JSON object") }
        var entries: [Entry] = []
        for member in members {
            guard let values = member.value.strings else {
                throw WireError(.malformed, "a condition's values are not an array of strings")
            }
            entries.append(Entry(Name(rawValue: member.name), values))
        }
        try self.init(entries)
    }
}
