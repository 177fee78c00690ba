import AssentCore

/// Under which circumstances a policy grants.
package indirect enum PolicyCondition: Sendable, Hashable {
    /// All of them must hold.
    case and([PolicyCondition])
    /// One of them must hold.
    case or([PolicyCondition])
    /// It must not hold.
    case not(PolicyCondition)
    /// The session's authentication level is at least this.
    case authLevel(Int)
    /// The session was made by that journey: its property `Service` names it.
    case authenticateToService(String)
    /// Each of these session properties has one of these values.
    case sessionProperty([String: [String]], ignoreCase: Bool)
    /// The client's address lies between two IPv4 addresses, both included.
    case ipv4(start: IPv4Address, end: IPv4Address)
    /// The user approves this one access.
    case transaction(TransactionCondition)

    /// The transaction conditions anywhere inside.
    package var transactions: [TransactionCondition] {
        switch self {
        case .and(let conditions), .or(let conditions): conditions.flatMap(\.transactions)
        case .not(let condition): condition.transactions
        case .transaction(let condition): [condition]
        default: []
        }
    }

    /// The condition as AM's JSON.
    var json: JSONValue {
        switch self {
        case .and(let conditions): ["type": "AND", "conditions": .array(conditions.map(\.json))]
        case .or(let conditions): ["type": "OR", "conditions": .array(conditions.map(\.json))]
        case .not(let condition): ["type": "NOT", "condition": condition.json]
        case .authLevel(let level): ["type": "AuthLevel", "authLevel": .integer(level)]
        case .authenticateToService(let journey):
            ["type": "AuthenticateToService", "authenticateToService": .string(journey)]
        case .sessionProperty(let properties, let ignoreCase):
            [
                "type": "SessionProperty", "ignoreValueCase": .bool(ignoreCase),
                "properties": .object(
                    JSONObject(
                        properties.sorted { $0.key < $1.key }.map {
                            .init(name: $0.key, value: .array($0.value.map { .string($0) }))
                        })),
            ]
        case .ipv4(let start, let end):
            ["type": "IPv4", "startIp": .string(start.description), "endIp": .string(end.description)]
        case .transaction(let condition): condition.json
        }
    }
}

/// The condition that the user approves this one access, by a journey of the policy's realm.
package struct TransactionCondition: Sendable, Hashable {
    /// How the approval is made (`authenticationStrategy`). A service is a journey.
    package enum Strategy: String, Sendable, Hashable, CaseIterable {
        /// By a journey.
        case tree = "AuthenticateToTreeConditionAdvice"
        /// By a journey, under its older name.
        case service = "AuthenticateToServiceConditionAdvice"
    }

    /// How the approval is made.
    package let strategy: Strategy

    /// The journey's name (`strategySpecifier`).
    package let specifier: String

    /// Seconds from the advice to the last moment of the access.
    package let ttl: Int64

    /// AM's own time to live.
    package static let defaultTTL: Int64 = 180

    /// A condition.
    package init(strategy: Strategy = .tree, specifier: String, ttl: Int64 = defaultTTL) {
        self.strategy = strategy
        self.specifier = specifier
        self.ttl = ttl
    }

    var json: JSONValue {
        [
            "type": "Transaction", "authenticationStrategy": .string(strategy.rawValue),
            "strategySpecifier": .string(specifier), "ttl": .integer(ttl),
        ]
    }
}

/// An IPv4 address.
package struct IPv4Address: Sendable, Hashable, Comparable, CustomStringConvertible {
    private let number: UInt32

    /// Four decimal numbers with dots between; `nil` for anything else, also for leading zeros.
    package init?(_ text: String) {
        var number: UInt32 = 0
        var part: UInt32?
        var dots = 0
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                guard part != 0 else { return nil }
                let value = (part ?? 0) * 10 + UInt32(byte - UInt8(ascii: "0"))
                guard value <= 255 else { return nil }
                part = value
            case UInt8(ascii: "."):
                guard let value = part, dots < 3 else { return nil }
                number = number << 8 | value
                part = nil
                dots += 1
            default: return nil
            }
        }
        guard let part, dots == 3 else { return nil }
        number = number << 8 | part
        self.number = number
    }

    /// The four numbers with dots between.
    package var description: String {
        [24, 16, 8, 0].map { "\(number >> $0 & 0xFF)" }.joined(separator: ".")
    }

    /// Compares as numbers.
    package static func < (left: Self, right: Self) -> Bool { left.number < right.number }
}
