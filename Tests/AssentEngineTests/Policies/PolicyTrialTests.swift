import AssentCore
import Testing

@testable import AssentEngine

@Suite("Policies that are tried before they are in force")
struct PolicyTrialTests {
    private static func trial(
        _ policies: [Policy], method: String = "POST", url: String = "https://api.bank.example/transfers",
        body: String = #"{"to":"Bob","amount":"200.00","currency":"EUR"}"#, _ caller: ImaginedCaller = ana
    ) throws -> PolicyTrial {
        PolicyTrial(
            try TransactionFixture.policySet(policies), resource: try CanonicalResource(url),
            content: RequestContent(method: method, mediaType: "application/json", body: Array(body.utf8)),
            facts: caller.facts(realm: "/alpha", now: 1_000_000))
    }

    private static var ana: ImaginedCaller {
        var caller = ImaginedCaller()
        caller.user = "ana"
        return caller
    }

    @Test("What would be approved is shown, line by line")
    func transaction() throws {
        let trial = try Self.trial([try TransactionFixture.policy()])
        #expect(trial.result == .transaction && trial.explanation.contains("Confirm"))
        #expect(
            trial.shown == [
                DisplayField(label: "Amount", value: "200.00 EUR"), DisplayField(label: "To", value: "Bob"),
            ])
        #expect(trial.findings.map(\.field) == [nil])
    }

    @Test("A body that the user would not see whole is refused, with its place")
    func unseen() throws {
        let trial = try Self.trial(
            [try TransactionFixture.policy()],
            body: #"{"to":"Bob","amount":"200.00","currency":"EUR","iban":"DE1"}"#)
        #expect(trial.result == .refused && trial.explanation.contains("iban") && trial.shown.isEmpty)
    }

    @Test("A policy that is about the path without its last slash is said to apply, where another is about it with one")
    func lastSlash() throws {
        let below = try TransactionFixture.policy(
            "below", resources: ["https://api.bank.example:443/transfers/*"], condition: nil, bind: [], display: [])
        let url = "https://api.bank.example/transfers/"
        let trial = try Self.trial([try TransactionFixture.policy(), below], url: url)
        #expect(trial.result == .transaction && trial.findings.map(\.field) == [nil, nil])
        let alone = try Self.trial([try TransactionFixture.policy()], url: url)
        #expect(alone.result == .denied && alone.findings.map(\.field) == ["resources"])
    }

    @Test("The field that keeps a policy from applying is named")
    func fields() throws {
        let inactive = Policy(
            name: "inactive", isActive: false, resources: [try ResourcePattern("https://api.bank.example/transfers")],
            actionValues: ["POST": true], subject: .authenticatedUsers)
        let policies = [
            inactive, try TransactionFixture.policy("elsewhere", resources: ["https://api.bank.example/accounts"]),
            try TransactionFixture.policy("reads", actions: ["GET": true]),
            try TransactionFixture.policy("bens", subject: .identity(["id=ben,ou=user,o=alpha"])),
            try TransactionFixture.policy("strong", condition: .authLevel(2)),
            try TransactionFixture.policy(
                "inside", condition: .address(.ipv4, [.prefix(try #require(NetworkPrefix("10.0.0.0/8")))])),
        ]
        let trial = try Self.trial(policies)
        #expect(
            trial.findings.map(\.field) == [
                "active", "resources", "actionValues", "subject", "condition", "condition",
            ])
        #expect(trial.findings.map { $0.reason.contains("path") }.firstIndex(of: true) == 1)
        #expect(trial.findings.last?.reason.contains("not known") == true)
        #expect(trial.result == .signIn && trial.explanation.contains("AuthLevelConditionAdvice 2"))
        var caller = Self.ana
        caller.authLevel = 2
        caller.address = IPAddress("10.0.0.7")
        let other = try Self.trial(policies, caller)
        #expect(other.findings.suffix(2).allSatisfy { $0.field == nil } && other.result == .granted)
    }

    @Test("A query that no pattern covers is named as what differs")
    func query() throws {
        let policy = try TransactionFixture.policy(resources: ["https://api.bank.example/transfers"])
        let trial = try Self.trial([policy], url: "https://api.bank.example/transfers?a=1")
        #expect(trial.result == .denied && trial.findings.first?.reason.hasSuffix("differs in: query") == true)
    }

    @Test("A denial wins, and nobody is granted nothing")
    func denied() throws {
        let policies = [
            try TransactionFixture.policy("open", condition: nil, bind: [], display: []),
            try TransactionFixture.policy("closed", actions: ["POST": false], condition: nil, bind: [], display: []),
        ]
        #expect(try Self.trial(policies).result == .denied)
        #expect(try Self.trial([policies[0]]).result == .granted)
        #expect(try Self.trial([policies[0]], ImaginedCaller()).findings.map(\.field) == ["subject"])
    }

    @Test("The age of the session, its journey and the token's scopes are those that are imagined")
    func circumstances() throws {
        let condition = PolicyCondition.and([
            .sessionAge(minutes: 5), .authenticateToService("Login"), .scopes(["pay"]),
        ])
        let policy = try TransactionFixture.policy(condition: condition, bind: [], display: [])
        var caller = Self.ana
        (caller.journey, caller.scopes, caller.sessionAge) = ("Login", ["pay"], 299)
        #expect(try Self.trial([policy], caller).result == .granted)
        caller.sessionAge = 300
        #expect(try Self.trial([policy], caller).result == .denied)
    }
}
