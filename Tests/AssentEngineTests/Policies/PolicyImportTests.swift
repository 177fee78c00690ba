import AssentCore
import Testing

@testable import AssentEngine

@Suite("AM's policies made ours")
struct PolicyImportTests {
    private static let stored =
        #""_id":"p","_rev":"1","createdBy":"id=amadmin","creationDate":1,"lastModifiedBy":"x","lastModifiedDate":"2""#

    private static func policy(
        _ name: String = "p", active: String = "true", subject: String = #"{"type":"AuthenticatedUsers"}"#,
        condition: String = "null", actions: String = #"{"GET":true}"#, more: String = ""
    ) -> String {
        #"""
        {\#(stored),"name":"\#(name)","active":\#(active),"description":"d","applicationName":"bank",
        "resourceTypeUuid":"u1","resources":["https://a.example:443/*"],"actionValues":\#(actions),
        "subject":\#(subject),"condition":\#(condition),"resourceAttributes":[]\#(more)}
        """#
    }

    private static func imported(_ text: String) throws -> PolicyImport {
        try PolicyImport(JSONValue.parse(text), realm: "/alpha")
    }

    @Test("A list, AM's answer and an object with answers are the same")
    func forms() throws {
        let list = "[\(Self.policy())]"
        let yaml = """
            policySets:
              "bank":
                policies:
                  - name: "p"
                    active: true
                    description: "d"
                    resources: ["https://a.example:443/*"]
                    actionValues: {"GET":true}
                    subject: {"type":"AuthenticatedUsers"}
                    resourceAttributes: []

            """
        for text in [list, #"{"result":\#(list),"resultCount":1}"#, #"{"policies":{"result":\#(list)}}"#] {
            let result = try Self.imported(text)
            #expect(result.yaml == yaml)
            #expect(result.count == 1 && result.notes.isEmpty)
        }
    }

    @Test("A group under NOT leaves its policy out: here it has nobody, so that NOT would let everybody past")
    func groups() throws {
        let group = #"{"type":"Identity","subjectValues":["id=blocked,ou=group,o=alpha"]}"#
        let negated = #"{"type":"NOT","subject":\#(group)}"#
        for subject in [negated, #"{"type":"AND","subjects":[{"type":"AuthenticatedUsers"},\#(negated)]}"#] {
            let result = try Self.imported("[\(Self.policy(subject: subject))]")
            #expect(result.count == 0)
            #expect(result.notes.contains { $0.contains("left out: subject NOT of id=blocked,ou=group") })
        }
        for subject in [group, #"{"type":"NOT","subject":\#(negated)}"#] {
            #expect(try Self.imported("[\(Self.policy(subject: subject))]").count == 1)
        }
    }

    @Test("A user of another realm is named, and a property without values is not forgotten")
    func others() throws {
        let users =
            #"{"type":"Identity","subjectValues":["id=ana,ou=user,o=beta,ou=services","id=ben,ou=user,o=alpha"]}"#
        let result = try Self.imported("[\(Self.policy(subject: users))]")
        #expect(result.count == 1)
        #expect(result.notes.count == 1 && result.notes.first?.contains("id=ana is a user of another realm") == true)
        let property = #"{"type":"SessionProperty","properties":{"device":null,"site":["home"]}}"#
        #expect(try Self.imported("[\(Self.policy(condition: property))]").count == 0)
    }

    @Test("What is not in force stays so: AM leaves active out of such policies", arguments: ["false", "null", "1"])
    func inactive(active: String) throws {
        #expect(try Self.imported("[\(Self.policy(active: active))]").yaml.contains("active: false"))
    }

    @Test("A transaction is bound to all of a request, users are named by the realm, and what is empty is left out")
    func kept() throws {
        let result = try Self.imported(
            "["
                + Self.policy(
                    subject: #"{"type":"Identity","subjectValues":["id=ana,ou=user,dc=openam,dc=example"]}"#,
                    condition:
                        #"{"type":"AND","conditions":[{"type":"IPv4","startIp":"10.0.0.0","endIp":"10.0.0.9","dnsName":[]},"#
                        + #"{"type":"SimpleTime","startTime":"08:00","endTime":"17:00","startDay":"","endDay":null,"enforcementTimeZone":""},"#
                        + #"{"type":"Transaction","authenticationStrategy":"AuthenticateToTreeConditionAdvice","strategySpecifier":"Pay"}]}"#
                ) + "]")
        #expect(result.count == 1)
        #expect(result.yaml.contains(#"bind: ["method","query","body"]"#))
        #expect(result.yaml.contains(#"["id=ana,ou=user,o=alpha"]"#) && !result.yaml.contains("startDay"))
        #expect(result.notes.contains { $0.hasPrefix("bank, p: ") && $0.contains("journey Pay") })
        #expect(result.notes.contains { $0.contains("bind is added") })
    }

    @Test("Actions are those of the export's resource types")
    func actions() throws {
        let types = #"{"result":[{"uuid":"u1","name":"Jobs","actions":{"RUN":true,"STOP":false}}]}"#
        let policies = "[\(Self.policy(actions: #"{"RUN":true}"#))]"
        let result = try Self.imported(#"{"policies":\#(policies),"resourcetypes":\#(types)}"#)
        #expect(result.count == 1 && result.yaml.contains(#"    actions: ["RUN","STOP"]"#))
        #expect(try Self.imported(policies).count == 0)
    }

    @Test(
        "What would mean something else is left out and named",
        arguments: [
            (policy(condition: #"{"type":"Script","scriptId":"x"}"#), "Script"),
            (policy(condition: #"{"type":"LEAuthLevel","authLevel":3}"#), "NOT of an AuthLevel"),
            (
                policy(condition: #"{"type":"IPv4","startIp":"10.0.0.0","endIp":"10.0.0.9","dnsName":["*.x"]}"#),
                "dnsName"
            ),
            (
                policy(condition: #"{"type":"IPv4","startIp":"10.0.0.0","endIp":"10.0.0.9","dnsName":"*.x"}"#),
                "dnsName"
            ),
            (policy(condition: #"{"type":"Session","maxSessionTime":5,"terminateSession":true}"#), "ends no session"),
            (policy(condition: "7"), "condition"), (policy(subject: "[]"), "subject"),
            (policy(actions: "{}"), "nothing"),
            (policy(actions: #"{"GET":"yes"}"#), "true or false"), ("7", "not a policy"),
            (#"{"name":5}"#, "not a policy"),
        ])
    func leftOut(policy: String, note: String) throws {
        let result = try Self.imported("[\(policy),\(Self.policy("good"))]")
        #expect(
            result.count == 1 && result.notes.contains { $0.contains("left out") && $0.contains(note) },
            "\(result.notes)")
    }

    @Test("Of a policy that denies it is said that nothing does now; unknown members and groups are named")
    func warnings() throws {
        let denying = try Self.imported(
            "[\(Self.policy(condition: #"{"type":"Script"}"#, actions: #"{"GET":false}"#))]")
        #expect(
            denying.yaml == "policySets: {}\n" && denying.notes.contains { $0.contains("which nothing denies now") })
        let group = #"{"type":"Identity","subjectValues":["id=staff,ou=group,dc=openam"]}"#
        let result = try Self.imported("[\(Self.policy(subject: group, more: #","priority":3"#))]")
        #expect(result.notes.contains { $0.contains("no groups") } && result.notes.contains { $0.contains("priority") })
    }

    @Test("Anything else is no export", arguments: ["7", "{}", #"{"policies":5}"#, #"{"result":{}}"#])
    func noExport(text: String) {
        #expect(throws: SettingsIssue.self) { try Self.imported(text) }
    }
}
