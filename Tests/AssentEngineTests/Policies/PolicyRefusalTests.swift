import AssentCore
import Testing

@testable import AssentEngine

@Suite("What a policy set cannot say, and what to use instead")
struct PolicyRefusalTests {
    private static func issues(_ policies: String) throws -> [SettingsIssue] {
        do {
            _ = try PolicySet(
                JSONValue.parse(#"{"name":"s","realm":"/alpha","policies":[\#(policies)]}"#),
                journeys: ["Confirm", "Login"])
            return []
        } catch let error as SettingsIssues {
            return error.issues
        }
    }

    private static func policy(
        _ name: String = "p", resource: String = "https://a.example/x",
        subject: String = #"{"type":"AuthenticatedUsers"}"#,
        action: String = "POST", condition: String? = nil
    ) -> String {
        let rest = condition.map { #","condition":\#($0)"# } ?? ""
        let bind = condition?.contains("Transaction") == true ? #","bind":["method"]"# : ""
        return #"""
            {"name":"\#(name)","resources":["\#(resource)"],"actionValues":{"\#(action)":true},"subject":\#(subject)\#(rest)\#(bind)}
            """#
    }

    private static let confirm = #"{"type":"Transaction","strategySpecifier":"Confirm"}"#

    @Test(
        "A condition of AM that is not here is refused with what to use instead, however deep it stands",
        arguments: [
            ("AMIdentityMembership", "Identity"), ("AuthScheme", "AuthenticateToService"),
            ("AuthenticateToRealm", "leave it out"), ("IdmUser", "SessionProperty"), ("LDAPFilter", "SessionProperty"),
            ("LEAuthLevel", "NOT of an AuthLevel"), ("Policy", "write its condition"),
            ("ResourceEnvIP", "IPv4 or IPv6"),
            ("Script", "run no code"),
        ])
    func conditions(type: String, instead: String) throws {
        for condition in [#"{"type":"\#(type)"}"#, #"{"type":"NOT","condition":{"type":"\#(type)"}}"#] {
            let found = try Self.issues(Self.policy(condition: condition))
            #expect(found.contains { $0.path.hasSuffix(".type") && $0.message.contains(instead) }, "\(found)")
        }
    }

    @Test("A subject cannot be another policy")
    func subject() throws {
        let found = try Self.issues(Self.policy(subject: #"{"type":"Policy"}"#))
        #expect(found.contains { $0.path == "policies[0].subject.type" && $0.message.contains("write its subject") })
    }

    @Test(
        "A pattern that no http or https URL matches is refused",
        arguments: [
            ("https://a.example/x", true), ("http*://*.example:*/x/*?*", true), ("*://*:*/*", true),
            ("*://*:*/*?*", true),
            ("https://*/x/-*-/z", true), ("https://[::1]:8443/*", true), ("https://10.0.*/x", true), ("ht*://a/", true),
            ("https://a.example/x%20y*", true), ("https://a.example/X?b=1&a=*", true),
            ("shop://a.example/x", false), ("ftp://a.example/*", false), ("x*://a/", false),
            ("https://a.example//x", true),
            ("https://a.example/../x", false), ("https://a.example/x%2Fy", false), ("https://a.example/%41", false),
            ("https://a_b!.example/x", false), ("https://a.example/x#y", false), ("https://a.example/x\\\\y", false),
            ("https://a.example/x;y", false), ("https://a.example/x%3B*", false), ("https://a.example/x?a;b", true),
        ])
    func patterns(pattern: String, isGood: Bool) throws {
        let found = try Self.issues(Self.policy(resource: pattern))
        #expect(found.isEmpty == isGood, "\(found)")
        #expect(found.allSatisfy { $0.path == "policies[0].resources[0]" })
    }

    @Test(
        "Two policies that could ask for two transactions of one access are refused",
        arguments: [
            ("https://a.example/x", "https://a.example/x"), ("https://a.example/*", "https://a.example/x/y"),
            ("https://*.example/x", "https://a.*/x"), ("https://a.example/x*z", "https://a.example/xy*"),
            ("https://a.example/-*-/z", "https://a.example/x/*"), ("http*://*:*/-*-", "https://a.example/-*-y"),
            ("https://a.example/x?*", "https://a.example/*?a=1"), ("https://A.example:443/X", "https://a.example/x"),
        ])
    func overlap(first: String, second: String) throws {
        for (one, other) in [(first, second), (second, first)] {
            let found = try Self.issues(
                Self.policy("a", resource: one, condition: Self.confirm) + ","
                    + Self.policy("b", resource: other, condition: Self.confirm))
            #expect(
                found.map(\.path) == ["policies[1].condition"] && found.first?.message.contains("policy a ") == true)
        }
    }

    @Test(
        "Policies about other resources may each ask",
        arguments: [
            ("https://a.example/x", "https://a.example/y"), ("https://a.example/x", "https://b.example/x"),
            ("https://a.example/x", "http://a.example/x"), ("https://a.example/x", "https://a.example:8443/x"),
            ("https://a.example/x", "https://a.example/x?*"), ("https://a.example/-*-", "https://a.example/x/y"),
            ("https://a.example/a*", "https://a.example/b*"), ("https://a.example/*a", "https://a.example/*b"),
            ("https://a.example/-*-/z", "https://a.example/*/y"),
        ])
    func apart(first: String, second: String) throws {
        for (one, other) in [(first, second), (second, first)] {
            let policies = [
                Self.policy("a", resource: one, condition: Self.confirm),
                Self.policy("b", resource: other, condition: Self.confirm),
            ]
            #expect(try Self.issues(policies.joined(separator: ",")).isEmpty)
        }
    }

    @Test("So may those whose actions, subjects or conditions exclude each other, and one that is not in force")
    func exclusive() throws {
        func both(_ first: String, _ second: String) throws -> Bool { try Self.issues(first + "," + second).isEmpty }
        let ana = #"{"type":"Identity","subjectValues":["id=ana,ou=user,o=alpha"]}"#
        let ben = #"{"type":"Identity","subjectValues":["id=ben,ou=user,o=alpha"]}"#
        let one = Self.policy("a", condition: Self.confirm)
        #expect(try both(one, Self.policy("b", action: "PUT", condition: Self.confirm)))
        #expect(try both(one, Self.policy("b")))
        #expect(
            try both(
                one, Self.policy("b", condition: Self.confirm).replacing(#""name""#, with: #""active":false,"name""#)))
        let anas = Self.policy("a", subject: ana, condition: Self.confirm)
        #expect(try both(anas, Self.policy("b", subject: ben, condition: Self.confirm)))
        #expect(
            try both(anas, Self.policy("b", subject: #"{"type":"NOT","subject":\#(ana)}"#, condition: Self.confirm)))
        #expect(
            try !both(anas, Self.policy("b", subject: #"{"type":"NOT","subject":\#(ben)}"#, condition: Self.confirm)))
        #expect(try !both(anas, Self.policy("b", condition: Self.confirm)))
        func needing(_ condition: String, _ name: String) -> String {
            Self.policy(name, condition: #"{"type":"AND","conditions":[\#(condition),\#(Self.confirm)]}"#)
        }
        let strong = #"{"type":"AuthLevel","authLevel":2}"#
        let inside = #"{"type":"IPv4","cidr":["10.0.0.0/8"]}"#
        for condition in [strong, inside] {
            #expect(try both(needing(condition, "a"), needing(#"{"type":"NOT","condition":\#(condition)}"#, "b")))
        }
        let weaker = #"{"type":"NOT","condition":{"type":"AuthLevel","authLevel":3}}"#
        #expect(try !both(needing(strong, "a"), needing(weaker, "b")))
        #expect(try !both(needing(strong, "a"), needing(inside, "b")))
    }

    @Test("A claim of a token can approve nothing, so it never stands with a transaction")
    func claims() throws {
        let claim = #"{"type":"JwtClaim","claimName":"acr","claimValue":"high"}"#
        #expect(try Self.issues(Self.policy(subject: claim)).isEmpty)
        for subject in [claim, #"{"type":"OR","subjects":[{"type":"AuthenticatedUsers"},\#(claim)]}"#] {
            let found = try Self.issues(Self.policy(subject: subject, condition: Self.confirm))
            #expect(found.map(\.path) == ["policies[0].subject"])
        }
        for lacking in [#"{"type":"JwtClaim","claimName":"acr"}"#, #"{"type":"JwtClaim","claimValue":"high"}"#] {
            #expect(try !Self.issues(Self.policy(subject: lacking)).isEmpty)
        }
    }

    @Test("A claim's subject is who has a verified token with that value, or with a list that has it")
    func claimValues() {
        let subject = PolicySubject.jwtClaim(name: "groups", value: "gold")
        for (claims, matches) in [
            (["groups": "gold"], true), (["groups": ["silver", "gold"]], true), (["groups": "goldfish"], false),
            (["groups": ["silver"]], false), (["groups": 7], false), (["other": "gold"], false), (nil, false),
        ] as [(JSONObject?, Bool)] { #expect(subject.matches(nil, claims: claims) == matches) }
        #expect(!PolicySubject.authenticatedUsers.matches(nil, claims: ["groups": "gold"]))
        #expect(!PolicySubject.not(.jwtClaim(name: "groups", value: "x")).matches(nil, claims: ["groups": "gold"]))
    }
}
