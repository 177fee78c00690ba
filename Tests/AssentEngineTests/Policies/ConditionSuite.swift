import AssentCore

@testable import AssentEngine

/// What tests of conditions need, without a database.
protocol ConditionSuite {}

extension ConditionSuite {
    static func user(_ name: String, realm: String = "/alpha") -> User {
        User(
            id: "id-\(name)", realm: realm, username: name, isActive: true, roles: [], attributes: JSONObject(),
            epoch: 0)
    }

    /// A session of Ana.
    static func session(level: Int = 0, begun: Int64 = 0, _ properties: JSONObject = JSONObject()) -> LiveSession {
        LiveSession(
            id: "hash", auditID: "audit-1", user: user("ana"), realm: "/alpha", authLevel: level, createdAt: begun,
            latestAccess: begun, maxIdle: 1800, expiresAt: begun + 7200, properties: properties)
    }

    static func verdict(_ condition: PolicyCondition, _ facts: PolicyFacts) -> String {
        switch condition.evaluate(facts).verdict {
        case .holds: "holds"
        case .fails: "fails"
        case .unknown: "unknown"
        case .pending: "pending"
        }
    }

    /// A condition as a file of policies has it.
    static func read(_ condition: String) throws(SettingsIssues) -> PolicyCondition? {
        let text = #"""
            {"name":"s","realm":"/alpha","policies":[{"name":"p","resources":["https://a/"],"actionValues":{"GET":true},
            "subject":{"type":"AuthenticatedUsers"},"condition":\#(condition)}]}
            """#
        guard let json = try? JSONValue.parse(text) else { return nil }
        return try PolicySet(json, journeys: []).policies.first?.condition
    }
}
