import AssentCore
import AssentTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Policies and what they are made of, as AM's REST interface shows them")
struct PolicyObjectRouteTests {
    /// The fixture's file with an auditor.
    private static func file(_ text: String) -> String {
        text.replacing(
            "- {username: pat, credentials: generated, roles: [pep]}",
            with: """
                - {username: pat, credentials: generated, roles: [pep]}
                      - {username: ria, credentials: generated, roles: [auditor]}
                """, maxReplacements: 1)
    }

    private static let kinds = ["policies", "applications", "resourcetypes", "conditiontypes", "subjecttypes"]

    @Test("An auditor lists each kind and reads one by its id; nobody else does, and nobody changes anything")
    func kinds() async throws {
        try await ServerFixture.run(editing: Self.file) { fixture in
            let auditor = ServerFixture.session(try await fixture.session("ria"))
            let others = [
                (ServerFixture.session(try await fixture.session("ana")), 403),
                (ServerFixture.session(try await fixture.session("pat")), 403),
                (ServerFixture.session(try await fixture.session("bob", realm: "beta")), 403), ([], 401),
            ]
            for kind in Self.kinds {
                let reply = try await fixture.send("GET", fixture.json("\(kind)?_queryFilter=true"), auditor)
                let list = try #require(reply.json["result"]?.array)
                #expect(reply.status == 200 && reply.json["resultCount"] == .integer(list.count) && !list.isEmpty)
                #expect(reply.json["totalPagedResultsPolicy"] == "NONE" && reply.json["remainingPagedResults"] == -1)
                let id = try #require(list.first?["_id"]?.string)
                let one = try await fixture.send("GET", fixture.json("\(kind)/\(id)"), auditor)
                #expect(one.status == 200 && one.json == list.first)
                #expect(try await fixture.send("GET", fixture.json("\(kind)/nothing"), auditor).status == 404)
                #expect(try await fixture.send("GET", fixture.json(kind), auditor).status == 400)
                let filtered = try await fixture.send("GET", fixture.json("\(kind)?_queryFilter=false"), auditor)
                #expect(filtered.status == 501)
                for (caller, status) in others {
                    for path in ["\(kind)?_queryFilter=true", "\(kind)/\(id)"] {
                        #expect(try await fixture.send("GET", fixture.json(path), caller).status == status, "\(path)")
                    }
                }
                for method in ["PUT", "DELETE"] {
                    let refusal = try await fixture.send(
                        method, fixture.json("\(kind)/\(id)"), auditor + ServerFixture.jsonFields, text: "{}")
                    #expect(refusal.status == 405 && refusal["Allow"] == "GET")
                    #expect(refusal.json["message"]?.string?.hasSuffix(PolicyObjectRoutes.place) == true)
                }
            }
        }
    }

    @Test("A policy is shown in AM's names with ours beside them, and a set in AM's form")
    func shapes() async throws {
        try await ServerFixture.run(editing: Self.file) { fixture in
            let auditor = ServerFixture.session(try await fixture.session("ria"))
            let policy = try await fixture.send("GET", fixture.json("policies/pay"), auditor).json
            let expected: [(String, JSONValue)] = [
                ("_id", "pay"), ("name", "pay"), ("active", true), ("applicationName", "bank"),
                ("resourceTypeUuid", "76656a38-5f8e-401b-83aa-4ccb74ce88d2"),
                ("resources", ["https://localhost:*/transfers", "https://localhost:*/transfers?*"]),
                ("actionValues", ["POST": true, "PUT": true]), ("subject", ["type": "AuthenticatedUsers"]),
                (
                    "condition",
                    [
                        "type": "Transaction", "authenticationStrategy": "AuthenticateToTreeConditionAdvice",
                        "strategySpecifier": "Confirm", "ttl": 180,
                    ]
                ), ("resourceAttributes", []), ("bind", ["body", "method", "query"]),
                ("notShown", ["/reference", "?a"]),
            ]
            for (name, value) in expected { #expect(policy[name] == value, "\(name)") }
            #expect(policy["_rev"]?.string?.isEmpty == false && policy["attributes"] == nil)
            let set = try await fixture.send("GET", fixture.json("applications/bank"), auditor).json
            #expect(set["entitlementCombiner"] == "DenyOverride" && set["editable"] == false)
            #expect(
                set["realm"] == "/alpha" && set["resourceTypeUuids"] == .array([policy["resourceTypeUuid"] ?? .null]))
            let elsewhere = try await fixture.send("GET", fixture.json("policies?_queryFilter=true"), auditor)
            #expect(elsewhere.json["result"]?.array?.contains { $0["applicationName"] == "shop" } == false)
        }
    }

    @Test("The types that are listed are those that a file may have")
    func types() throws {
        for (types, place) in [(PolicyType.conditions, "condition"), (PolicyType.subjects, "subject")] {
            for type in types.map(\.name) + ["Nothing"] {
                let subject = place == "subject" ? "" : #""subject":{"type":"AuthenticatedUsers"},"#
                let text =
                    #"{"name":"s","realm":"/a","policies":[{"name":"p","resources":["https://a/"],"actionValues":{"GET":true},"#
                    + #"\#(subject)"\#(place)":{"type":"\#(type)"}}]}"#
                var isKnown = true
                do {
                    _ = try PolicySet(JSONValue.parse(text), journeys: [])
                } catch let error as SettingsIssues {
                    isKnown = !error.issues.contains { $0.path == "policies[0].\(place).type" }
                }
                #expect(isKnown == (type != "Nothing"), "\(type)")
            }
        }
    }

    @Test("A jwt is believed if it is an ID token of this realm that is still valid; claims in words never are")
    func claims() async throws {
        let clock = ManualClock()
        try await ServerFixture.run(
            clock: clock,
            editing: {
                $0.replacing(
                    "          - name: see\n",
                    with: """
                                  - name: claimed
                                    resources: ["https://bank.example:443/claimed"]
                                    actionValues: {GET: true}
                                    subject: {type: JwtClaim, claimName: aud, claimValue: bank-app}
                                  - name: see\n
                        """)
            }
        ) { fixture in
            let fields = ServerFixture.session(try await fixture.session("pat")) + ServerFixture.jsonFields
            func actions(_ subject: String) async throws -> JSONValue? {
                try await fixture.send(
                    "POST", fixture.json("policies?_action=evaluate"), fields,
                    text:
                        #"{"resources":["https://bank.example:443/claimed"],"application":"rest","subject":\#(subject)}"#
                ).json.array?.first?["actions"]
            }
            let tokens = try await fixture.tokens(session: try await fixture.signIn())
            let idToken = tokens.id
            #expect(try await actions(#"{"jwt":"\#(idToken)"}"#) == ["GET": true])
            for forged in [idToken + "A", tokens.access, "eyJhbGciOiJub25lIn0.eyJhdWQiOiJiYW5rLWFwcCJ9."] {
                #expect(try await actions(#"{"jwt":"\#(forged)"}"#) == [:])
            }
            #expect(try await actions(#"{"claims":{"aud":"bank-app"}}"#) == [:])
            clock.advance(by: 100_000)
            let later = ServerFixture.session(try await fixture.session("pat")) + ServerFixture.jsonFields
            let reply = try await fixture.send(
                "POST", fixture.json("policies?_action=evaluate"), later,
                text:
                    #"{"resources":["https://bank.example:443/claimed"],"application":"rest","subject":{"jwt":"\#(idToken)"}}"#
            )
            #expect(reply.status == 200 && reply.json.array?.first?["actions"] == [:])
        }
    }
}
