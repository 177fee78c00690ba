import AssentCore
import Testing

@testable import AssentEngine

/// Without a database: what conditions and subjects say of somebody.
@Suite("Conditions and subjects at their bounds")
struct PolicyConditionTests: ConditionSuite {
    @Test(
        "A range of addresses has both of its ends, and nothing below or above",
        arguments: [
            ("10.0.1.0", "holds"), ("10.0.1.255", "holds"), ("10.0.1.7", "holds"), ("10.0.0.255", "fails"),
            ("10.0.2.0", "fails"), ("9.255.255.255", "fails"), ("0.0.0.0", "fails"), ("255.255.255.255", "fails"),
        ])
    func addresses(text: String, verdict: String) throws {
        let (start, end) = (try #require(IPAddress("10.0.1.0")), try #require(IPAddress("10.0.1.255")))
        let range = PolicyCondition.address(.ipv4, [try #require(AddressRange(from: start, to: end))])
        let facts = PolicyFacts(session: nil, clientAddress: IPAddress(text))
        #expect(Self.verdict(range, facts) == verdict)
    }

    @Test(
        "What is neither four numbers up to 255 nor eight groups is no address",
        arguments: [
            "", "1", "1.2.3", "1.2.3.4.5", "1.2.3.", ".1.2.3", "1..2.3", "256.1.1.1", "1.1.1.256", "01.1.1.1",
            "1.1.1.00", "1.1.1.1 ", "-1.1.1.1", "1.1.1.1e0", "4294967296.1.1.1", "1.1.1.1.",
            "[::1]", "::1%eth0", ":", ":::", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "::g", "::12345",
            "::1.2.3",
            "::/0", "1.1.1.1:80",
        ])
    func noAddress(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test(
        "Addresses are read and written as they are",
        arguments: ["0.0.0.0", "255.254.253.0", "10.0.0.1", "::", "::1", "2001:db8::7"])
    func address(text: String) {
        #expect(IPAddress(text)?.description == text)
    }

    @Test("An IPv6 address that stands for an IPv4 one is that one")
    func mapped() {
        for text in ["::ffff:10.0.1.7", "::FFFF:a00:107", "0:0:0:0:0:ffff:0a00:0107"] {
            #expect(IPAddress(text) == IPAddress("10.0.1.7"), "\(text)")
        }
        #expect(IPAddress("10.0.1.7")?.family == .ipv4 && IPAddress("::1")?.family == .ipv6)
    }

    @Test("Of several session properties each must have one of its values")
    func properties() {
        let both = PolicyCondition.sessionProperty(["device": ["known", "new"], "site": ["home"]], ignoreCase: false)
        func verdict(_ properties: JSONObject) -> String {
            Self.verdict(both, PolicyFacts(session: Self.session(properties)))
        }
        #expect(verdict(["device": "known", "site": "home"]) == "holds")
        #expect(verdict(["device": "new", "site": "home"]) == "holds")
        for lacking: JSONObject in [
            [:], ["device": "known"], ["site": "home"], ["device": "known", "site": "work"],
            ["device": "stolen", "site": "home"], ["device": "KNOWN", "site": "home"],
            ["device": ["known"], "site": "home"], ["device": "known|new", "site": "home"],
        ] { #expect(verdict(lacking) == "fails") }
    }

    @Test("A journey was passed only if the session names it, whole and by itself")
    func journeys() {
        let condition = PolicyCondition.authenticateToService("Strong")
        for (value, verdict) in [
            ("Strong", "holds"), ("Login|Strong", "holds"), (["Login", "Strong"], "holds"), ("Stronger", "fails"),
            ("strong", "fails"), ("", "fails"), (["Login"], "fails"), (["Login|Strong"], "fails"), (7, "fails"),
        ] as [(JSONValue, String)] {
            #expect(
                Self.verdict(condition, PolicyFacts(session: Self.session(["Service": value]))) == verdict, "\(value)")
        }
        #expect(Self.verdict(condition, PolicyFacts(session: Self.session())) == "fails")
    }

    @Test("A level is enough from the very level on")
    func levels() {
        for (level, verdict) in [(4, "fails"), (5, "holds"), (6, "holds")] {
            #expect(Self.verdict(.authLevel(5), PolicyFacts(session: Self.session(level: level))) == verdict)
        }
    }

    @Test("Without a session nothing about sessions holds, and neither does its opposite")
    func nobody() {
        let facts = PolicyFacts(user: Self.user("ana"), session: nil)
        for condition in [
            PolicyCondition.authLevel(0), .authenticateToService("Strong"),
            .sessionProperty(["device": ["known"]], ignoreCase: true),
            .transaction(TransactionCondition(specifier: "Confirm")),
        ] {
            #expect(Self.verdict(condition, facts) == "unknown")
            #expect(Self.verdict(.not(condition), facts) == "unknown")
        }
        let here = PolicyFacts(session: Self.session())
        #expect(Self.verdict(.not(.transaction(TransactionCondition(specifier: "Confirm"))), here) == "fails")
    }

    @Test("A subject is the user of that name in that realm; AND needs all, OR one, and nobody is none of them")
    func subjects() {
        let (ana, ben) = (Self.user("ana"), Self.user("ben"))
        let isAna = PolicySubject.identity([ana.universalID])
        let isBen = PolicySubject.identity([ben.universalID])
        #expect(isAna.matches(ana) && !isAna.matches(ben) && !isAna.matches(nil))
        #expect(!isAna.matches(Self.user("ana", realm: "/beta")))
        #expect(!isAna.matches(Self.user("anabel")))
        #expect(PolicySubject.identity([ben.universalID, ana.universalID]).matches(ana))
        #expect(PolicySubject.and([.authenticatedUsers, isAna]).matches(ana))
        #expect(!PolicySubject.and([.authenticatedUsers, isBen]).matches(ana))
        #expect(!PolicySubject.and([isBen, .authenticatedUsers]).matches(ana))
        #expect(PolicySubject.or([isBen, isAna]).matches(ana))
        #expect(!PolicySubject.or([isBen, .none]).matches(ana))
        #expect(!PolicySubject.not(isAna).matches(ana) && PolicySubject.not(isBen).matches(ana))
        #expect(!PolicySubject.not(isBen).matches(nil))
        #expect(PolicySubject.authenticatedUsers.matches(ana) && !PolicySubject.authenticatedUsers.matches(nil))
        #expect(!PolicySubject.none.matches(ana))
    }

    @Test("A policy set is the one of that name in that realm")
    func sets() throws {
        let point = PolicyDecisionPoint(policySets: [
            PolicySet(name: "bank", realm: "/beta", policies: []),
            PolicySet(name: "shop", realm: "/alpha", policies: []),
            PolicySet(name: "bank", realm: "/alpha", actions: ["PAY"], policies: []),
        ])
        #expect(point.policySet("bank", realm: "/alpha")?.actions == ["PAY"])
        #expect(point.policySet("shop", realm: "/beta") == nil)
        #expect(point.policySet("bank", realm: "/gamma") == nil)
    }
}
