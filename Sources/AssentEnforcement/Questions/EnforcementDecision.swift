public import AssentCore

/// What the policies say of one request. Only ``permitted(_:)`` allows it.
public enum EnforcementDecision: Hashable, Sendable {
    /// It may be carried out; once, where a transaction allowed it.
    case permitted(EnforcementPermit)
    /// The user must do something first.
    case advised(Advice)
    /// Its transaction was used before, for this very request. Nothing may be carried out now. Only Assent's server
    /// says it, and only where outcomes are reported; others answer with the advice of a new transaction.
    case used(transactionID: String, EnforcementOutcome?)
    /// It is denied.
    case denied
}

/// A request that may be carried out.
public struct EnforcementPermit: Hashable, Sendable {
    /// The transaction that was used up for it; `nil` when none was needed.
    public let transactionID: String?

    /// What the policies say of the user, by name.
    public let attributes: [String: [String]]

    /// A permit.
    public init(transactionID: String? = nil, attributes: [String: [String]] = [:]) {
        self.transactionID = transactionID
        self.attributes = attributes
    }
}

/// What became of a request whose transaction was used up.
public enum EnforcementOutcome: Hashable, Sendable {
    /// Its transaction was used up; nothing else is known.
    case taken
    /// It was about to be carried out.
    case forwarded
    /// It was not carried out, and never will be.
    case notForwarded
    /// It was answered with this status.
    case answered(status: Int)
    /// Nobody knows.
    case unknown

    /// As it stands in replies and reports.
    public var json: JSONValue {
        switch self {
        case .taken: ["state": "taken"]
        case .forwarded: ["state": "forwarded"]
        case .notForwarded: ["state": "notForwarded"]
        case .answered(let status): ["state": "answered", "status": .integer(Int64(status))]
        case .unknown: ["state": "unknown"]
        }
    }

    /// Reads the same; `nil` for anything else.
    public init?(json: JSONValue) {
        switch json["state"]?.string {
        case "taken": self = .taken
        case "forwarded": self = .forwarded
        case "notForwarded": self = .notForwarded
        case "answered":
            guard let status = json["status"]?.integer, (100...599).contains(status) else { return nil }
            self = .answered(status: Int(status))
        case "unknown": self = .unknown
        default: return nil
        }
    }
}

/// The user of a session.
public struct EnforcedUser: Hashable, Sendable {
    /// The name, unique in the realm.
    public let name: String

    /// The realm, for example `/alpha`.
    public let realm: String

    /// A user.
    public init(name: String, realm: String) {
        self.name = name
        self.realm = realm
    }
}
