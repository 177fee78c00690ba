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
    /// The client's address is of this family and lies in one of these ranges.
    case address(IPAddress.Family, [AddressRange])
    /// It is within these times.
    case time(SimpleTime)
    /// The session began less than this many minutes ago.
    case sessionAge(minutes: Int64)
    /// The access token that came with the request has all of these scopes.
    case scopes([String])
    /// The user has signed in, or approved a transaction, from the caller's network in the last so many days, at this
    /// authentication level or above.
    case usualNetwork(days: Int64, level: Int)
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
        case .address(let family, let ranges): Self.json(family, ranges)
        case .time(let time): time.json
        case .sessionAge(let minutes):
            ["type": "Session", "maxSessionTime": .integer(minutes), "terminateSession": false]
        case .scopes(let scopes):
            ["type": "OAuth2Scope", "requiredScopes": .array(scopes.map { .string($0) })]
        case .usualNetwork(let days, let level):
            ["type": "UsualNetwork", "days": .integer(days), "level": .integer(level)]
        case .transaction(let condition): condition.json
        }
    }

    private static func json(_ family: IPAddress.Family, _ ranges: [AddressRange]) -> JSONValue {
        var object: JSONObject = ["type": .string(family.rawValue)]
        var prefixes: [JSONValue] = []
        for range in ranges {
            switch range {
            case .between(let start, let end):
                object["startIp"] = .string(start.description)
                object["endIp"] = .string(end.description)
            case .prefix(let prefix): prefixes.append(.string(prefix.text))
            }
        }
        if !prefixes.isEmpty { object["cidr"] = .array(prefixes) }
        return .object(object)
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
