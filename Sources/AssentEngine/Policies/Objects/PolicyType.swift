package import AssentCore

/// A type of condition or subject that policies may have, described as AM's `conditiontypes` and `subjecttypes` do.
package struct PolicyType: Sendable, Hashable {
    /// What a member of a type may be, by the names of JSON Schema.
    package enum Kind: Sendable, Hashable {
        /// A text, a number or a truth value.
        case string, integer, boolean
        /// A list of texts.
        case strings
        /// Lists of texts by name.
        case object
        /// One inner condition or subject, and several of them.
        case any, list

        fileprivate var json: JSONValue {
            switch self {
            case .string: ["type": "string"]
            case .integer: ["type": "integer"]
            case .boolean: ["type": "boolean"]
            case .strings: ["type": "array", "items": ["type": "string"]]
            case .object: ["type": "object"]
            case .any: ["type": "object", "properties": [:]]
            case .list: ["type": "array", "items": ["type": "any"]]
            }
        }
    }

    /// A member of a type.
    package struct Member: Sendable, Hashable {
        /// Its name.
        package let name: String
        fileprivate let kind: Kind
    }

    /// Its name, which is also what a person reads.
    package let name: String

    /// Whether it combines others.
    package let isLogical: Bool

    /// Its members.
    package let members: [Member]

    private init(_ name: String, isLogical: Bool = false, _ members: KeyValuePairs<String, Kind>) {
        self.name = name
        self.isLogical = isLogical
        self.members = members.map { Member(name: $0.key, kind: $0.value) }
    }

    /// The types of conditions.
    package static let conditions: [PolicyType] = [
        PolicyType("AND", isLogical: true, ["conditions": .list]),
        PolicyType("AuthLevel", ["authLevel": .integer]),
        PolicyType("AuthenticateToService", ["authenticateToService": .string]),
        PolicyType("IPv4", ["startIp": .string, "endIp": .string, "cidr": .strings]),
        PolicyType("IPv6", ["startIp": .string, "endIp": .string, "cidr": .strings]),
        PolicyType("NOT", isLogical: true, ["condition": .any]),
        PolicyType("OAuth2Scope", ["requiredScopes": .strings]),
        PolicyType("OR", isLogical: true, ["conditions": .list]),
        PolicyType("Session", ["maxSessionTime": .integer, "terminateSession": .boolean]),
        PolicyType("SessionProperty", ["ignoreValueCase": .boolean, "properties": .object]),
        PolicyType(
            "SimpleTime",
            [
                "startTime": .string, "endTime": .string, "startDay": .string, "endDay": .string, "startDate": .string,
                "endDate": .string, "enforcementTimeZone": .string,
            ]),
        PolicyType(
            "Transaction", ["authenticationStrategy": .string, "strategySpecifier": .string, "ttl": .integer]),
        PolicyType("UsualNetwork", ["days": .integer, "level": .integer]),
    ]

    /// The types of subjects.
    package static let subjects: [PolicyType] = [
        PolicyType("AND", isLogical: true, ["subjects": .list]),
        PolicyType("App", ["apps": .strings]),
        PolicyType("AuthenticatedUsers", [:]),
        PolicyType("Client", ["ids": .strings]),
        PolicyType("Identity", ["subjectValues": .strings]),
        PolicyType("JwtClaim", ["claimName": .string, "claimValue": .string]),
        PolicyType("NONE", [:]),
        PolicyType("NOT", isLogical: true, ["subject": .any]),
        PolicyType("OR", isLogical: true, ["subjects": .list]),
    ]

    /// The type as AM's JSON.
    package var object: JSONObject {
        [
            "_id": .string(name), "title": .string(name), "logical": .bool(isLogical),
            "config": [
                "type": "object",
                "properties": .object(JSONObject(members.map { .init(name: $0.name, value: $0.kind.json) })),
            ],
        ]
    }
}
