import AssentCore
import AssentEnforcement
import AssentTesting
import Foundation

/// A policy server that answers from a list, and a service's client of it.
struct PolicyDesk {
    let transport: InMemoryTransport
    let client: PolicyClient

    static let server = "https://am.example/am"
    static let evaluate = "/am/json/realms/root/realms/alpha/policies?_action=evaluate"

    /// A client whose session is `session`, or what `credentials` gives.
    init(
        credentials: any EnforcementCredentials = GivenSession(Secret("pep-session")),
        _ answer: @escaping @Sendable (InMemoryTransport.Exchange) async throws -> HTTPReply
    ) throws {
        transport = InMemoryTransport(answer)
        client = PolicyClient(
            try PolicyServer(Self.server, realm: "alpha"), policySet: "payments", credentials: credentials,
            transport: transport)
    }

    /// A desk that gives this decision about ``payment(_:)``, whatever it is asked.
    init(deciding members: JSONObject) throws {
        var decision: JSONObject = [
            "resource": "https://pay.example:443/payments", "actions": [:], "attributes": [:], "advices": [:],
            "ttl": 9_223_372_036_854_775_807,
        ]
        for member in members.members { decision[member.name] = member.value }
        let reply = JSONValue.array([.object(decision)])
        try self.init { _ in .json(200, reply) }
    }

    /// A payment of a user.
    static func payment(_ id: String? = nil) -> EnforcedRequest {
        var request = EnforcedRequest(
            "POST", "https://pay.example:443/payments", subject: .session(Secret("user-session")), transactionID: id)
        request.contentType = "application/json"
        request.body = Array(#"{"to":"Bob"}"#.utf8)
        return request
    }
}
