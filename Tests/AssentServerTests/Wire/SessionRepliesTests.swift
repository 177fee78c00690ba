import AssentCore
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Replies about sessions and policies")
struct SessionRepliesTests {
    private static let session = LiveSession(
        id: "hash", auditID: "audit-1",
        user: User(
            id: "u1", realm: "/alpha", username: "ana", isActive: true, roles: [], attributes: JSONObject(), epoch: 0),
        realm: "/alpha", authLevel: 0, createdAt: 1_767_225_600, latestAccess: 1_767_225_600, maxIdle: 1800,
        expiresAt: 1_767_225_600 + 7200, properties: ["Service": "Login"])

    @Test("The reply to getSessionInfo has AM's members")
    func info() {
        let info = Self.session.info
        #expect(info["username"]?.string == "ana")
        #expect(info["universalId"]?.string == "id=ana,ou=user,o=alpha")
        #expect(info["realm"]?.string == "/alpha")
        #expect(info["latestAccessTime"]?.string == "2026-01-01T00:00:00Z")
        #expect(info["maxIdleExpirationTime"]?.string == "2026-01-01T00:30:00Z")
        #expect(info["maxSessionExpirationTime"]?.string == "2026-01-01T02:00:00Z")
        #expect(info["properties"]?["AMCtxId"]?.string == "audit-1")
        #expect(info["properties"]?["Service"]?.string == "Login")
    }

    @Test("The reply to validate names the session only while it is alive")
    func validation() {
        #expect(Self.session.validation["valid"]?.bool == true)
        #expect(Self.session.validation["uid"]?.string == "ana")
        #expect(LiveSession.invalidation == ["valid": false])
    }

    @Test("A policy decision has AM's members in AM's order, and reasons only when they were asked for")
    func decisions() {
        let resource = "https://bank.example.com:443/withdraw?amount=100.00"
        let advised = PolicyDecision(
            resource: resource, advices: ["TransactionConditionAdvice": ["7"]], ttl: 0, reasons: ["one: needs it"])
        #expect(
            advised.json().serialized()
                == #"{"resource":"https://bank.example.com:443/withdraw?amount=100.00","actions":{},"attributes":{},"#
                + #""advices":{"TransactionConditionAdvice":["7"]},"ttl":0}"#)
        #expect(advised.json(explained: true)["reasons"] == ["one: needs it"])
        let granted = PolicyDecision(resource: resource, actions: ["POST": true, "GET": true])
        #expect(
            granted.json().serialized()
                == #"{"resource":"https://bank.example.com:443/withdraw?amount=100.00","actions":{"GET":true,"POST":true},"#
                + #""attributes":{},"advices":{},"ttl":9223372036854775807}"#)
    }
}
