import AssentCore
import Testing

@testable import AssentEngine

@Suite("What a policy set may say, to the last line, letter and second")
struct PolicyValidationTests {
    private static let confirm = PolicyCondition.transaction(TransactionCondition(specifier: "Confirm"))

    private static func issues(_ set: PolicySet) -> [String] {
        set.validate(journeys: ["Confirm", "Login"]).map(\.path).sorted()
    }

    private static func issues(_ policy: Policy) throws -> [String] {
        issues(try TransactionFixture.policySet([policy]))
    }

    @Test("Sixteen lines can be shown and sixty-four places left out, with labels of forty letters", arguments: [0, 1])
    func display(more: Int) throws {
        let lines = (0..<(16 + more)).map { DisplayRule(label: "Line \($0)", field: "/f\($0)") }
        #expect(
            try Self.issues(try TransactionFixture.policy(display: lines)) == (more == 0 ? [] : ["policies[0].display"])
        )
        let places = (0..<(64 + more)).map { "/p\($0)" }
        #expect(
            try Self.issues(try TransactionFixture.policy(notShown: places))
                == (more == 0 ? [] : ["policies[0].notShown"]))
        let label = DisplayRule(label: LocalizedText(String(repeating: "l", count: 40 + more)), field: "to")
        #expect(
            try Self.issues(try TransactionFixture.policy(display: [label]))
                == (more == 0 ? [] : ["policies[0].display[0].label"]))
    }

    @Test("What is shown must be bound: the query as well as the body", arguments: BoundField.allCases)
    func bound(lacking: BoundField) throws {
        let bind = Set(BoundField.allCases).subtracting([lacking])
        #expect(
            try Self.issues(try TransactionFixture.policy(bind: bind))
                == (lacking == .method ? [] : ["policies[0].display"]))
    }

    @Test("Names have up to a hundred bytes, and an action and a realm are needed")
    func names() throws {
        for (count, isGood) in [(0, false), (1, true), (100, true), (101, false)] {
            let name = String(repeating: "n", count: count)
            #expect(
                Self.issues(PolicySet(name: name, realm: "/alpha", policies: [])) == (isGood ? [] : ["name"]))
            #expect(
                try Self.issues(try TransactionFixture.policy(name)) == (isGood ? [] : ["policies[0].name"]))
        }
        for bad in ["a\"", "a+", "a,", "a<", "a=", "a>", "a\\", "a/", "a;", "a\u{7F}", "a\n"] {
            #expect(Self.issues(PolicySet(name: bad, realm: "/alpha", policies: [])) == ["name"])
        }
        #expect(Self.issues(PolicySet(name: "n", realm: "/alpha", actions: [], policies: [])) == ["actions"])
        #expect(Self.issues(PolicySet(name: "n", realm: "alpha", policies: [])) == ["realm"])
    }

    @Test(
        "A condition that is empty, negates a transaction or has two is refused, however deep it stands",
        arguments: [
            PolicyCondition.and([]), .or([]), .not(.and([])), .and([confirm, .or([])]), .or([.not(.or([])), confirm]),
            .not(confirm), .and([.not(.or([.authLevel(1), confirm]))]), .or([.and([.not(confirm)]), .authLevel(1)]),
            .or([confirm, confirm]), .and([.or([confirm]), .not(.authLevel(1)), confirm]),
            .and([confirm, .not(.authenticateToService("Nowhere"))]),
            .or([confirm, .authenticateToService("Nowhere")]),
        ])
    func conditions(condition: PolicyCondition) throws {
        #expect(
            try Set(Self.issues(try TransactionFixture.policy(condition: condition))).contains("policies[0].condition"))
        #expect(try Self.issues(try TransactionFixture.policy()) == [])
    }

    @Test(
        "A subject that is empty somewhere is refused",
        arguments: [
            PolicySubject.and([]), .or([]), .identity([]), .not(.and([])), .and([.authenticatedUsers, .identity([])]),
            .or([.not(.or([])), .authenticatedUsers]),
        ])
    func subjects(subject: PolicySubject) throws {
        #expect(try Self.issues(try TransactionFixture.policy(subject: subject)) == ["policies[0].subject"])
    }

    @Test(
        "A transaction's time has 10 to 3600 seconds",
        arguments: [
            ("9", false), ("10", true), ("3600", true), ("3601", false), ("-90", false), ("90.5", false),
            (#""90""#, false), ("99999999999999999999", false),
        ])
    func times(ttl: String, isGood: Bool) throws {
        let text = PolicyReadingTests.whole.replacing(#""ttl":90"#, with: #""ttl":\#(ttl)"#)
        let set = try? PolicySet(JSONValue.parse(text), journeys: ["Login", "Confirm"])
        #expect((set != nil) == isGood)
        if isGood { #expect("\(set?.policies.last?.condition?.transactions.first?.ttl ?? 0)" == ttl) }
    }

    @Test("A range of addresses begins before it ends", arguments: [("10.0.0.5", true), ("10.0.0.4", false)])
    func ranges(end: String, isGood: Bool) throws {
        let text = PolicyReadingTests.whole.replacing("10.0.0.0", with: "10.0.0.5")
            .replacing("10.255.255.255", with: end)
        #expect(((try? PolicySet(JSONValue.parse(text), journeys: ["Login", "Confirm"])) != nil) == isGood)
    }
}
