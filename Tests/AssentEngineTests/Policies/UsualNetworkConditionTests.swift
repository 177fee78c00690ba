import AssentCore
import Testing

@testable import AssentEngine

/// Without a database: what the condition says of somebody who was seen in the network, or was not.
@Suite("The condition that a user was in this network before")
struct UsualNetworkConditionTests: ConditionSuite {
    private static let now: Int64 = 10_000_000
    private static let condition = PolicyCondition.usualNetwork(days: 2, level: 5)
    private static let confirm = PolicyCondition.transaction(TransactionCondition(specifier: "Confirm"))

    private static func facts(_ sightings: [NetworkSighting]?, hasSession: Bool = true, now: Int64? = Self.now)
        -> PolicyFacts
    {
        var facts = PolicyFacts(user: user("ana"), session: hasSession ? session(level: 9) : nil, now: now)
        facts.sightings = sightings
        return facts
    }

    private static func seen(_ level: Int, _ age: Int64) -> NetworkSighting {
        NetworkSighting(authLevel: level, seenAt: now - age)
    }

    @Test(
        "The last day ends with its last second, and a level is enough from the very level on",
        arguments: [
            (5, 0, "holds"), (5, 172_799, "holds"), (5, 172_800, "fails"), (5, 999_999, "fails"), (4, 0, "fails"),
            (6, 1, "holds"), (0, 0, "fails"),
            // The clocks of two nodes may differ by so much; what is later was seen before a clock was moved back.
            (5, -60, "holds"), (5, -61, "fails"),
        ] as [(Int, Int64, String)])
    func bounds(level: Int, age: Int64, verdict: String) {
        #expect(Self.verdict(Self.condition, Self.facts([Self.seen(level, age)])) == verdict)
    }

    @Test("A weak sign-in of today and a strong one of long ago make no strong one of today")
    func combined() {
        #expect(Self.verdict(Self.condition, Self.facts([Self.seen(4, 0), Self.seen(9, 172_800)])) == "fails")
        #expect(Self.verdict(Self.condition, Self.facts([Self.seen(4, 0), Self.seen(5, 172_799)])) == "holds")
        #expect(Self.verdict(Self.condition, Self.facts([])) == "fails")
    }

    @Test("Without an address, a session or the time neither it nor its opposite holds")
    func unknown() {
        for facts in [
            Self.facts(nil), Self.facts([Self.seen(5, 0)], hasSession: false), Self.facts([Self.seen(5, 0)], now: nil),
        ] {
            #expect(Self.verdict(Self.condition, facts) == "unknown")
            #expect(Self.verdict(.not(Self.condition), facts) == "unknown")
        }
    }

    @Test("With a transaction in OR, AND and NOT it settles as other conditions do")
    func combinations() {
        let (usual, unusual) = (Self.facts([Self.seen(5, 0)]), Self.facts([]))
        for conditions in [[Self.condition, Self.confirm], [Self.confirm, Self.condition]] {
            #expect(Self.verdict(.or(conditions), usual) == "holds")
            #expect(Self.verdict(.or(conditions), unusual) == "pending")
            #expect(Self.verdict(.or(conditions), Self.facts(nil)) == "pending")
            #expect(Self.verdict(.and(conditions), usual) == "pending")
            #expect(Self.verdict(.and(conditions), unusual) == "fails")
            #expect(Self.verdict(.and(conditions), Self.facts(nil)) == "unknown")
        }
        #expect(Self.verdict(.not(Self.condition), usual) == "fails")
        #expect(Self.verdict(.not(Self.condition), unusual) == "holds")
    }

    @Test("A decision is kept until the network is no longer usual, and not at all while it is not")
    func nextChange() {
        func change(_ sightings: [NetworkSighting]?, now: Int64? = Self.now) -> Int64? {
            PolicyCondition.or([.not(Self.condition), Self.confirm]).nextChange(Self.facts(sightings, now: now))
        }
        #expect(change([Self.seen(5, 100), Self.seen(7, 50), Self.seen(4, 0)]) == Self.now + 172_750)
        for sightings in [[], [Self.seen(4, 0)], nil] { #expect(change(sightings) == Self.now) }
        #expect(change([], now: nil) == nil)
    }

    @Test("It is read with its days and its level, which is 1 where none is given, and written as it was")
    func reading() throws {
        for (days, level) in [(1, 0), (90, 1000), (30, 2)] as [(Int64, Int)] {
            let text = #"{"type":"UsualNetwork","days":\#(days),"level":\#(level)}"#
            let condition = try #require(try Self.read(text))
            #expect(condition == .usualNetwork(days: days, level: level))
            #expect(try condition.json == JSONValue.parse(text))
        }
        #expect(try Self.read(#"{"type":"UsualNetwork","days":7}"#) == .usualNetwork(days: 7, level: 1))
    }

    @Test(
        "Days and levels out of their bounds are refused, and so are its keys beside another type",
        arguments: [
            (#"{"type":"UsualNetwork"}"#, "days"), (#"{"type":"UsualNetwork","days":0}"#, "days"),
            (#"{"type":"UsualNetwork","days":91}"#, "days"), (#"{"type":"UsualNetwork","days":"30"}"#, "days"),
            (#"{"type":"UsualNetwork","days":1.5}"#, "days"), (#"{"type":"UsualNetwork","days":-1}"#, "days"),
            (#"{"type":"UsualNetwork","days":7,"level":-1}"#, "level"),
            (#"{"type":"UsualNetwork","days":7,"level":1001}"#, "level"),
            (#"{"type":"UsualNetwork","days":7,"level":"2"}"#, "level"),
            (#"{"type":"AuthLevel","authLevel":1,"days":7}"#, "days"),
        ])
    func refused(condition: String, place: String) {
        let error = #expect(throws: SettingsIssues.self) { try Self.read(condition) }
        #expect(error?.issues.contains { $0.path == "policies[0].condition.\(place)" } == true, "\(condition)")
    }

    @Test("A policy that is not in force asks for no network, at any depth")
    func asks() throws {
        func set(_ condition: PolicyCondition?, isActive: Bool = true) throws -> PolicySet {
            PolicySet(
                name: "s", realm: "/alpha",
                policies: [
                    Policy(
                        name: "p", isActive: isActive, resources: [try ResourcePattern("https://a/")],
                        actionValues: ["GET": true], subject: .authenticatedUsers, condition: condition)
                ])
        }
        let deep = PolicyCondition.and([.authLevel(1), .or([Self.confirm, .not(Self.condition)])])
        #expect(try set(deep).asksForNetwork)
        #expect(try !set(deep, isActive: false).asksForNetwork)
        #expect(try !set(.and([.authLevel(1), Self.confirm])).asksForNetwork)
        #expect(try !set(nil).asksForNetwork)
    }

    @Test("Trials say whether the network is usual, and what happens where it is not")
    func trial() throws {
        let policy = try TransactionFixture.policy(
            condition: .or([.usualNetwork(days: 30, level: 2), Self.confirm]))
        func result(_ change: (inout ImaginedCaller) -> Void) throws -> PolicyTrial.Result {
            var caller = ImaginedCaller()
            caller.user = "ana"
            caller.authLevel = 2
            caller.address = IPAddress("192.0.2.7")
            change(&caller)
            return PolicyTrial(
                try TransactionFixture.policySet([policy]),
                resource: try CanonicalResource("https://api.bank.example/transfers"),
                content: TransactionFixture.content, facts: caller.facts(realm: "/alpha", now: Self.now)
            ).result
        }
        #expect(try result { _ in } == .transaction)
        #expect(try result { $0.networkAge = 29 * 86_400 } == .granted)
        #expect(try result { $0.networkAge = 30 * 86_400 } == .transaction)
        #expect(
            try result {
                $0.networkAge = 0
                $0.authLevel = 1
            } == .transaction)
        #expect(
            try result {
                $0.networkAge = 0
                $0.address = nil
            } == .transaction)
    }
}
