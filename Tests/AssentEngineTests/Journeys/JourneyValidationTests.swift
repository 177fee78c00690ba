import AssentCore
import Testing

@testable import AssentEngine

@Suite("JourneyDefinition: what cannot run")
struct JourneyValidationTests {
    private static func node(
        _ type: String = "UsernameCollectorNode", _ config: JSONValue = [:],
        _ outcomes: [String: String] = ["outcome": "success"]
    ) -> NodeDefinition {
        NodeDefinition(type, config: config.object ?? JSONObject(), outcomes: outcomes.mapValues { JourneyTarget($0) })
    }

    private static func journey(_ nodes: [String: NodeDefinition], entry: String = "a") -> JourneyDefinition {
        JourneyDefinition(name: "J", entry: entry, nodes: nodes)
    }

    static let broken: [(JourneyDefinition, String, String)] = [
        (journey(["a": node()], entry: "b"), "entry", "there is no node b"),
        (journey([:], entry: ""), "entry", "is missing"),
        (journey(["a": node("NoSuchNode")]), "nodes.a.type", "unknown node type NoSuchNode"),
        (
            journey(["a": node("DataStoreDecisionNode", [:], ["true": "success"])]), "nodes.a",
            "the outcome false leads nowhere"
        ),
        (
            journey(["a": node("UsernameCollectorNode", [:], ["outcome": "success", "other": "failure"])]), "nodes.a",
            "UsernameCollectorNode has no outcome other; it has: outcome"
        ),
        (
            journey(["a": node("UsernameCollectorNode", [:], ["outcome": "b"])]), "nodes.a",
            "leads to b, which is not a node of the journey"
        ),
        (journey(["a": node(), "b": node()]), "nodes.b", "no way leads to this node"),
        (
            journey(["a": node("UsernameCollectorNode", [:], ["outcome": "failure"])]), "entry",
            "no way leads to success"
        ),
        (
            journey(["a": node("UsernameCollectorNode", ["promt": "x"])]), "nodes.a.config.promt",
            "unknown key; known here: prompt"
        ),
        (journey(["a": node("UsernameCollectorNode", ["prompt": 7])]), "nodes.a.config.prompt", "must be a text"),
        (journey(["success": node()], entry: "success"), "nodes.success", "a node cannot be called \"success\""),
        (
            journey(["a": node("RetryLimitDecisionNode", ["retryLimit": 0], ["Retry": "success", "Reject": "failure"])]
            ),
            "nodes.a.config.retryLimit", "must be a whole number from 1 to 20"
        ),
        (
            journey(["a": node("MessageNode", [:], ["true": "success", "false": "failure"])]), "nodes.a.config.message",
            "is missing"
        ),
        (
            journey(["a": node("ChoiceCollectorNode", ["choices": ["x", "x"]], ["x": "success"])]),
            "nodes.a.config.choices",
            "names one of them twice"
        ),
        (
            journey(["a": node("ChoiceCollectorNode", ["choices": ["x"], "defaultChoice": "y"], ["x": "success"])]),
            "nodes.a.config.defaultChoice",
            "y is not one of the choices"
        ),
        (journey(["a": node("PageNode", [:])]), "nodes.a.config.nodes", "is missing"),
        (
            journey(["a": node("PageNode", ["nodes": [["type": "UsernameCollectorNode", "x": 1]]])]),
            "nodes.a.config.nodes[0].x",
            "unknown key"
        ),
        (
            journey([
                "a": node(
                    "PageNode", ["nodes": [["type": "DataStoreDecisionNode"], ["type": "PasswordCollectorNode"]]])
            ]), "nodes.a.config.nodes", "only the last node of a page may have more than one outcome"
        ),
        (
            journey([
                "a": node("PageNode", ["nodes": [["type": "PageNode", "nodes": [["type": "UsernameCollectorNode"]]]]])
            ]), "nodes.a.config.nodes", "a page cannot hold a page"
        ),
        (
            journey(["a": node("SetSessionPropertiesNode", ["properties": ["Service": "Login"]])]),
            "nodes.a.config.properties.Service",
            "is set by the server"
        ),
    ]

    @Test("A journey needs an authenticator if each of its ways to success asks for a code, in a page as well")
    func authenticator() {
        let code = Self.node(
            "OathTokenVerifierNode", [:],
            ["successOutcome": "success", "failureOutcome": "failure", "notRegisteredOutcome": "failure"])
        var page = Self.node("PageNode", ["nodes": [["type": "OathTokenVerifierNode"]]])
        page.outcomes = code.outcomes
        var beside = code
        beside.outcomes["notRegisteredOutcome"] = .success
        #expect(Self.journey(["a": code]).needsAuthenticator && Self.journey(["a": page]).needsAuthenticator)
        #expect(!Self.journey(["a": beside]).needsAuthenticator && !Self.journey(["a": Self.node()]).needsAuthenticator)
        let choice = Self.node("ChoiceCollectorNode", ["choices": ["x", "y"]], ["x": "b", "y": "success"])
        #expect(!Self.journey(["a": choice, "b": code]).needsAuthenticator)
    }

    @Test("Each mistake is named with its place and what is wrong", arguments: broken.indices)
    func issues(index: Int) {
        let (journey, path, message) = Self.broken[index]
        let issues = journey.validate()
        #expect(issues.contains { $0.path == path && $0.message.contains(message) }, "\(issues)")
        #expect(throws: SettingsIssue.self) { try Journey(journey) }
    }

    @Test("The journeys of the tests have none", arguments: JourneyFixture.journeys)
    func good(journey: JourneyDefinition) {
        #expect(journey.validate().isEmpty)
    }

    @Test("A timeout, a level or a name out of bounds is told", arguments: 0..<4)
    func bounds(index: Int) {
        var journey = JourneyFixture.login
        switch index {
        case 0: journey.timeout = 0
        case 1: journey.authLevel = -1
        case 2: journey.name = "a|b"
        default: journey.name = ""
        }
        #expect(journey.validate().count == 1)
    }

    @Test("A default journey that does not exist is named")
    func defaultJourney() {
        #expect(throws: SettingsIssue(path: "defaultJourney", "there is no journey Other")) {
            try RealmSignIn(journeys: [JourneyFixture.login], defaultJourney: "Other")
        }
    }
}
