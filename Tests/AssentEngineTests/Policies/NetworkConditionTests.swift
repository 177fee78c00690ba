import AssentCore
import Testing

@testable import AssentEngine

@Suite("Conditions on the client's address")
struct NetworkConditionTests: ConditionSuite {
    private static func verdict(_ condition: PolicyCondition, from address: String?) -> String {
        verdict(condition, PolicyFacts(session: nil, clientAddress: address.flatMap(IPAddress.init)))
    }

    @Test(
        "A prefix has the addresses that begin with it",
        arguments: [
            ("10.0.0.0/8", "10.255.0.1", "holds"), ("10.0.0.0/8", "11.0.0.0", "fails"),
            ("10.0.0.0/8", "::ffff:10.0.0.1", "holds"), ("10.1.2.3", "10.1.2.3", "holds"),
            ("10.1.2.3/32", "10.1.2.4", "fails"), ("0.0.0.0/0", "203.0.113.9", "holds"),
            ("10.0.0.128/25", "10.0.0.127", "fails"), ("10.0.0.128/25", "10.0.0.128", "holds"),
            ("2001:db8::/32", "2001:db8:ffff::1", "holds"), ("2001:db8::/32", "2001:db9::", "fails"),
            ("2001:db8:0:8000::/49", "2001:db8:0:7fff::1", "fails"), ("::/0", "fe80::1", "holds"),
        ])
    func prefixes(prefix: String, address: String, verdict: String) throws {
        let family = prefix.contains(":") ? "IPv6" : "IPv4"
        let condition = try #require(try Self.read(#"{"type":"\#(family)","cidr":["\#(prefix)"]}"#))
        #expect(Self.verdict(condition, from: address) == verdict)
    }

    @Test("Of an address of the other family, and without one, neither a condition nor its opposite holds")
    func unknown() throws {
        for (condition, other) in [
            (#"{"type":"IPv4","cidr":["0.0.0.0/0"]}"#, "2001:db8::1"),
            (#"{"type":"IPv6","cidr":["::/0"]}"#, "10.0.0.1"),
        ] {
            let condition = try #require(try Self.read(condition))
            for address in [other, nil, "bank.example"] {
                #expect(Self.verdict(condition, from: address) == "unknown")
                #expect(Self.verdict(.not(condition), from: address) == "unknown")
            }
        }
    }

    @Test("IPv6 addresses are compared as numbers, both ends included", arguments: ["a", "A"])
    func range(digit: String) throws {
        let condition = try #require(
            try Self.read(#"{"type":"IPv6","startIp":"2001:db8::9","endIp":"2001:db8::1\#(digit)","dnsName":[]}"#))
        for (address, verdict) in [
            ("2001:db8::8", "fails"), ("2001:db8::9", "holds"), ("2001:db8::a", "holds"), ("2001:db8::10", "holds"),
            ("2001:db8::1a", "holds"), ("2001:db8::1b", "fails"), ("2001:db8:1::", "fails"),
        ] { #expect(Self.verdict(condition, from: address) == verdict, "\(address)") }
    }

    @Test("A range and prefixes may stand together; what is written is what the revision is made of")
    func together() throws {
        let text = #"{"type":"IPv4","startIp":"10.0.0.1","endIp":"10.0.0.2","cidr":["192.0.2.0/24","198.51.100.7"]}"#
        let condition = try #require(try Self.read(text))
        for address in ["10.0.0.2", "192.0.2.9", "198.51.100.7"] {
            #expect(Self.verdict(condition, from: address) == "holds")
        }
        #expect(Self.verdict(condition, from: "10.0.0.3") == "fails")
        #expect(try condition.json == JSONValue.parse(text))
    }

    @Test(
        "What is no range of the family is refused, with its place",
        arguments: [
            (#"{"type":"IPv4"}"#, "startIp"), (#"{"type":"IPv6"}"#, "startIp"),
            (#"{"type":"IPv4","startIp":"10.0.0.1"}"#, "startIp"), (#"{"type":"IPv4","endIp":"10.0.0.1"}"#, "startIp"),
            (#"{"type":"IPv4","startIp":"::1","endIp":"::2"}"#, "startIp"),
            (#"{"type":"IPv6","startIp":"10.0.0.1","endIp":"10.0.0.2"}"#, "startIp"),
            (#"{"type":"IPv6","startIp":"::ffff:10.0.0.1","endIp":"::ffff:10.0.0.2"}"#, "startIp"),
            (#"{"type":"IPv6","startIp":"::2","endIp":"::1"}"#, "startIp"),
            (#"{"type":"IPv4","startIp":"10.0.0.1","endIp":"::2"}"#, "startIp"),
            (#"{"type":"IPv4","cidr":[]}"#, "cidr"), (#"{"type":"IPv4","cidr":["10.0.0.1/8"]}"#, "cidr[0]"),
            (#"{"type":"IPv4","cidr":["10.0.0.0/8","::/0"]}"#, "cidr[1]"),
            (#"{"type":"IPv4","cidr":["10.0.0.0/33"]}"#, "cidr[0]"),
            (#"{"type":"IPv4","cidr":["10.0.0.0/"]}"#, "cidr[0]"),
            (#"{"type":"IPv4","cidr":["10.0.0.0/-1"]}"#, "cidr[0]"), (#"{"type":"IPv4","cidr":["bank"]}"#, "cidr[0]"),
            (#"{"type":"IPv4","startIp":"10.0.0.1","endIp":"10.0.0.2","dnsName":["*.bank.example"]}"#, "dnsName"),
            (#"{"type":"IPv4","startIp":"10.0.0.1","endIp":"10.0.0.2","dnsName":"*.bank.example"}"#, "dnsName"),
            (#"{"type":"IPv6","startIp":"::1","endIp":"::2","dnsName":{"0":"*.bank.example"}}"#, "dnsName"),
        ])
    func refused(condition: String, place: String) throws {
        let error = #expect(throws: SettingsIssues.self) { try Self.read(condition) }
        #expect(error?.issues.contains { $0.path == "policies[0].condition.\(place)" } == true, "\(condition)")
    }
}
