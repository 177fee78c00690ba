import AssentCore
import AssentEngine
import Testing

@Suite("Reading a policy set")
struct PolicyReadingTests {
    static let whole = """
        {"name":"bank","realm":"/alpha","policies":[
          {"name":"accounts","resources":["https://api.bank.example:443/accounts"],"actionValues":{"GET":true},
           "subject":{"type":"AuthenticatedUsers"}},
          {"name":"transfers","active":true,"description":"money","resources":["https://api.bank.example:443/transfers"],
           "actionValues":{"POST":true,"DELETE":false},
           "subject":{"type":"AND","subjects":[{"type":"AuthenticatedUsers"},
             {"type":"NOT","subject":{"type":"Identity","subjectValues":["id=eve,ou=user,o=alpha"]}},
             {"type":"OR","subjects":[{"type":"AuthenticatedUsers"},{"type":"NONE"}]}]},
           "condition":{"type":"AND","conditions":[
             {"type":"AuthLevel","authLevel":5},
             {"type":"OR","conditions":[{"type":"AuthenticateToService","authenticateToService":"Login"},
               {"type":"NOT","condition":{"type":"IPv4","startIp":"10.0.0.0","endIp":"10.255.255.255"}}]},
             {"type":"SessionProperty","ignoreValueCase":false,"properties":{"device":["known"]}},
             {"type":"Transaction","authenticationStrategy":"AuthenticateToTreeConditionAdvice",
              "strategySpecifier":"Confirm","ttl":90}]},
           "bind":["method","query","body"],
           "display":[{"label":"Amount","field":"amount","suffix":"currency"},{"label":"To","field":"/to"}],
           "notShown":["/reference","?page"],
           "resourceAttributes":[{"type":"User","propertyName":"mail"},
             {"type":"Static","propertyName":"tier","propertyValues":["gold"]}]}]}
        """

    @Test("Everything that can be said is read")
    func everything() throws {
        let set = try PolicySet(JSONValue.parse(Self.whole), journeys: ["Login", "Confirm"])
        #expect(set.name == "bank" && set.realm == "/alpha" && set.policies.count == 2)
        let policy = try #require(set.policies.last)
        #expect(policy.actionValues == ["POST": true, "DELETE": false])
        #expect(policy.bind == [.method, .query, .body])
        #expect(policy.condition?.transactions == [TransactionCondition(specifier: "Confirm", ttl: 90)])
        #expect(
            policy.display == [
                DisplayRule(label: "Amount", field: "amount", suffix: "currency"),
                DisplayRule(label: "To", field: "/to"),
            ])
        #expect(policy.notShown == ["/reference", "?page"])
        #expect(policy.attributes == [.user(name: "mail"), .fixed(name: "tier", values: ["gold"])])
        #expect(set.policies.first?.isActive == true)
    }

    @Test("The revision changes with whatever a policy says, and with nothing else")
    func revision() throws {
        func revision(_ text: String) throws -> String? {
            try PolicySet(JSONValue.parse(text), journeys: ["Login", "Confirm", "Other"]).policies.last?.revision
        }
        let original = try revision(Self.whole)
        #expect(try revision(Self.whole.replacing("money", with: "more money")) == original)
        #expect(
            try revision(Self.whole.replacing(#""POST":true,"DELETE":false"#, with: #""DELETE":false,"POST":true"#))
                == original)
        for (old, new) in [
            ("/transfers", "/transfer"), (#""POST":true"#, #""POST":false"#), ("id=eve", "id=ben"),
            (#""authLevel":5"#, #""authLevel":4"#),
            ("10.0.0.0", "10.0.0.1"), (#"["known"]"#, #"["known","new"]"#), ("Confirm", "Other"),
            (#""ttl":90"#, #""ttl":91"#),
            (#"["method","query","body"]"#, #"["query","body"]"#), ("amount", "sum"), ("currency", "unit"),
            ("gold", "silver"), ("/reference", "/note"), (#""/reference","?page""#, #""/reference""#),
            (#""active":true"#, #""active":false"#), (#""ignoreValueCase":false"#, #""ignoreValueCase":true"#),
        ] {
            let changed = Self.whole.replacing(old, with: new)
            #expect(changed != Self.whole)
            #expect(try revision(changed) != original, "\(old) → \(new)")
        }
    }

    @Test(
        "A mistake is named by its place",
        arguments: [
            (#""authLevel":5"#, #""authLevel":"5""#, "policies[1].condition.conditions[0].authLevel", "whole number"),
            (#""POST":true"#, #""PAY":true"#, "policies[1].actionValues.PAY", "unknown action"),
            (#""POST":true"#, #""POST":"yes""#, "policies[1].actionValues.POST", "true or false"),
            ("Confirm", "Confrim", "policies[1].condition", "there is no journey Confrim"),
            (
                #""authenticateToService":"Login""#, #""authenticateToService":"Logon""#, "policies[1].condition",
                "no journey Logon"
            ),
            (#""ttl":90"#, #""ttl":0"#, "policies[1].condition.conditions[3].ttl", "10 to 3600"),
            (#""ttl":90"#, #""tttl":90"#, "policies[1].condition.conditions[3].tttl", "unknown key"),
            (
                "AuthenticateToTreeConditionAdvice", "AuthLevelConditionAdvice",
                "policies[1].condition.conditions[3].authenticationStrategy", "AuthenticateToTree"
            ),
            (#""bind":["method","query","body"],"#, "", "policies[1].bind", "must say"),
            (#"["method","query","body"]"#, #"["method","header"]"#, "policies[1].bind[1]", "cannot be bound"),
            (#"["method","query","body"]"#, #"["method"]"#, "policies[1].display", "must name query"),
            (#"["method","query","body"]"#, #"["method","body"]"#, "policies[1].display", "must name query"),
            (#""/reference","?page""#, #""reference""#, "policies[1].notShown[0]", "JSON Pointer"),
            (#""/reference","?page""#, #""/a","b""#, "policies[1].notShown[1]", "JSON Pointer"),
            (
                #""display":[{"label":"Amount","field":"amount","suffix":"currency"},{"label":"To","field":"/to"}],"#,
                "",
                "policies[1].notShown", "needs display"
            ),
            (#""label":"To""#, #""label":"To\u001b""#, "policies[1].display[1].label", "control"),
            (#""label":"To""#, #""label":{"en":"To","de":"A\u202e"}"#, "policies[1].display[1].label", "control"),
            (#""label":"To""#, #""label":{"en":"To","de":7}"#, "policies[1].display[1].label", "by language"),
            (#""label":"To""#, #""label":{}"#, "policies[1].display[1].label", "by language"),
            (#""label":"To""#, #""label":{"en":"To","x y":"A"}"#, "policies[1].display[1].label", "by language"),
            (#""label":"To","#, "", "policies[1].display[1].label", "missing"),
            (#""field":"/to""#, #""field":"/to","type":"iban""#, "policies[1].display[1].type", "maxAmount, account"),
            (
                #""field":"/to""#, #""suffix":"u","field":"/to","type":"date""#, "policies[1].display[1].suffix",
                "amount"
            ),
            (#""field":"/to""#, #""field":"/to","each":"list""#, "policies[1].display[1].each", "JSON Pointer"),
            (#""field":"/to""#, #""field":"/to","each":"?""#, "policies[1].display[1].each", "JSON Pointer"),
            (#""field":"/to""#, #""field":"?to","each":"/list""#, "policies[1].display[1].field", "not in the query"),
            (#""realm":"/alpha""#, #""realm":"/alpha","selfEvaluation":"no""#, "selfEvaluation", "true or false"),
            ("443/transfers", "x/transfers", "policies[1].resources[0]", "Invalid port x"),
            (#""name":"transfers""#, #""name":"accounts""#, "policies[1].name", "another policy"),
            (#""name":"transfers""#, #""name":"a/b""#, "policies[1].name", "without any of"),
            (#""type":"NONE""#, #""type":"Nobody""#, "policies[1].subject.subjects[2].subjects[1].type", "NONE"),
            (
                #""startIp":"10.0.0.0""#, #""startIp":"10.0.0""#,
                "policies[1].condition.conditions[1].conditions[1].condition.startIp", "IPv4"
            ),
            (
                #""type":"NOT","condition":{"type":"IPv4","startIp":"10.0.0.0","endIp":"10.255.255.255"}"#,
                #""type":"NOT","condition":{"type":"Transaction","strategySpecifier":"Confirm"}"#,
                "policies[1].condition", "under NOT"
            ),
            (
                #""type":"AuthenticateToService","authenticateToService":"Login""#,
                #""type":"Transaction","strategySpecifier":"Confirm""#, "policies[1].condition", "one Transaction"
            ),
            (#""active":true"#, #""active":1"#, "policies[1].active", "true or false"),
            (#""realm":"/alpha""#, #""realm":"alpha""#, "realm", "slash"),
            (
                #""resources":["https://api.bank.example:443/accounts"]"#, #""resources":[]"#, "policies[0].resources",
                "no resource"
            ),
            (#""actionValues":{"GET":true}"#, #""actionValues":{}"#, "policies[0].actionValues", "nothing"),
            (
                #""subject":{"type":"AuthenticatedUsers"}}"#,
                #""bind":["body"],"subject":{"type":"AuthenticatedUsers"}}"#, "policies[0].bind", "needs a Transaction"
            ),
            (#"["id=eve,ou=user,o=alpha"]"#, "[]", "policies[1].subject", "Identity needs"),
        ])
    func mistakes(old: String, new: String, path: String, message: String) throws {
        let text = Self.whole.replacing(old, with: new)
        try #require(text != Self.whole)
        do {
            _ = try PolicySet(JSONValue.parse(text), journeys: ["Login", "Confirm"])
            Issue.record("\(new) must be refused")
        } catch let error as SettingsIssues {
            #expect(
                error.issues.contains { $0.path == path && $0.message.contains(message) }, "\(error.description)")
        }
    }

    @Test("All mistakes are named at once")
    func several() throws {
        let text = #"{"name":"","policies":[{"name":"a"},{"name":"b","resources":["x"]},7]}"#
        let error = #expect(throws: SettingsIssues.self) { try PolicySet(JSONValue.parse(text), journeys: []) }
        let paths = Set(error?.issues.map(\.path) ?? [])
        #expect(
            paths.isSuperset(of: [
                "name", "policies[0].resources", "policies[0].subject", "policies[1].resources[0]", "policies[2]",
            ]))
    }
}
