import AssentCore
import AssentStore
import AssentTesting
import HTTPTypes
import NIOCore
import Testing

@testable import AssentServer

@Suite("Proxies that are believed where a request comes from")
struct TrustedProxiesTests {
    private static func proxies(
        _ networks: [String] = ["10.0.0.0/8", "2001:db8:1::/48"], _ field: TrustedProxies.Field = .forwardedFor
    ) throws -> TrustedProxies {
        TrustedProxies(networks: try networks.map { try #require(TrustedProxies.Network($0)) }, field: field)
    }

    private static func client(
        _ proxies: TrustedProxies, _ values: [String], named name: String? = nil, by connection: String = "10.0.0.1"
    ) throws -> String? {
        var fields = HTTPFields()
        let name = try #require(HTTPField.Name(name ?? proxies.field.rawValue))
        for value in values { fields.append(HTTPField(name: name, value: value)) }
        let address = ClientAddress(try SocketAddress(ipAddress: connection, port: 40_000))
        return proxies.client(of: address, fields).text
    }

    @Test(
        "The client is the last address that is not a trusted proxy, whatever stands before it",
        arguments: [
            (["198.51.100.7"], "198.51.100.7"), (["198.51.100.7:4711"], "198.51.100.7"),
            (["203.0.113.9, 198.51.100.7"], "198.51.100.7"), (["203.0.113.9", "198.51.100.7"], "198.51.100.7"),
            (["198.51.100.7, 10.9.8.7, 2001:db8:1::5"], "198.51.100.7"), (["\u{1}<x>,;, 198.51.100.7"], "198.51.100.7"),
            (["2001:db8:2::7"], "2001:db8:2::7"), (["[2001:db8:2::7]"], "2001:db8:2::7"),
            (["[2001:DB8:2:0::7]:4711"], "2001:db8:2::7"), (["::ffff:198.51.100.7"], "198.51.100.7"),
            (["10.0.0.2"], "10.0.0.2"), (["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            ([String(repeating: "9", count: 5_000) + ",198.51.100.7"], "198.51.100.7"),
            ([String(repeating: "203.0.113.9, ", count: 99) + "198.51.100.7"], "198.51.100.7"),
            ([String(repeating: "10.0.0.2, ", count: 99) + "198.51.100.7"], "198.51.100.7"),
            ([String(repeating: "bank.example, ", count: 99) + "198.51.100.7"], "198.51.100.7"),
        ])
    func walk(values: [String], client: String) throws {
        #expect(try Self.client(Self.proxies(), values) == client)
    }

    @Test(
        "What does not say it leaves it at the proxy's own address",
        arguments: [
            [], [""], [","], ["198.51.100.7,"], ["unknown"], ["_hidden"], ["198.51.100.7, unknown"],
            ["bank.example"], ["198.51.100"], ["198.51.100.7:"], ["198.51.100.7:x"], ["198.51.100.7:123456"],
            ["[2001:db8:2::7"], ["[2001:db8:2::7]x"], ["[198.51.100.7]"], ["2001:db8:2::7%eth0"], ["\"198.51.100.7\""],
            [String(repeating: "9", count: 5_000)], ["198.51.100.7,\u{301}10.0.0.2"],
            ["198.51.100.7," + String(repeating: "\u{1F1E6}", count: 20_000)],
            [(["198.51.100.7"] + Array(repeating: "10.0.0.2", count: 40)).joined(separator: ",")],
            ["198.51.100.7" + String(repeating: ", 10.0.0.2", count: 99)],
        ])
    func unreadable(values: [String]) throws {
        #expect(try Self.client(Self.proxies(), values) == "10.0.0.1")
    }

    @Test("Others than the proxies are not believed, nor is a field that the proxies do not write")
    func untrusted() throws {
        #expect(try Self.client(Self.proxies(), ["198.51.100.7"], by: "11.0.0.1") == "11.0.0.1")
        #expect(try Self.client(Self.proxies(), ["198.51.100.7"], by: "2001:db8:2::1") == "2001:db8:2::1")
        #expect(try Self.client(TrustedProxies(), ["198.51.100.7"]) == "10.0.0.1")
        #expect(try Self.client(Self.proxies(), ["for=198.51.100.7"], named: "Forwarded") == "10.0.0.1")
        #expect(try Self.client(Self.proxies(), ["198.51.100.7"], by: "::ffff:10.0.0.1") == "198.51.100.7")
    }

    @Test(
        "The same of the field of RFC 7239",
        arguments: [
            ("for=198.51.100.7", "198.51.100.7"), ("for=198.51.100.7;proto=https;by=10.0.0.1", "198.51.100.7"),
            (#"by=10.0.0.1; For="[2001:db8:2::7]:4711""#, "2001:db8:2::7"),
            (#"for="198.51.100.7:4711", for=10.0.0.2"#, "198.51.100.7"),
            (#"for="evil, for=198.51.100.7"#, "198.51.100.7"), ("for=203.0.113.9, for=198.51.100.7", "198.51.100.7"),
            ("for=unknown", "10.0.0.1"), ("for=_x", "10.0.0.1"), ("proto=https", "10.0.0.1"),
            ("for=198.51.100.7;for=203.0.113.9", "10.0.0.1"), (#"for="198.51.100.7"#, "10.0.0.1"), ("for", "10.0.0.1"),
            ("198.51.100.7", "10.0.0.1"),
        ])
    func forwarded(value: String, client: String) throws {
        let proxies = try Self.proxies(["10.0.0.0/8"], .forwarded)
        #expect(try Self.client(proxies, [value]) == client)
    }

    @Test("A network is an address or a prefix without bits behind it")
    func networks() throws {
        for text in ["", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8/8", "10.0.0.1/8", "::/129", "a"] {
            #expect(TrustedProxies.Network(text) == nil, "\(text)")
        }
        let whole = try #require(TrustedProxies.Network("0.0.0.0/0"))
        let half = try #require(TrustedProxies.Network("128.0.0.0/1"))
        for (text, isInHalf) in [("127.255.255.255", false), ("128.0.0.0", true), ("255.1.2.3", true)] {
            let address = ClientAddress(try SocketAddress(ipAddress: text, port: 1))
            let ip = try #require(address.ip)
            #expect(whole.contains(ip) && half.contains(ip) == isInHalf)
        }
        let other = try #require(ClientAddress(try SocketAddress(ipAddress: "::1", port: 1)).ip)
        #expect(whole.length == 0 && !whole.contains(other))
    }

    @Test("Limits and the audit log are about the client behind a trusted proxy")
    func audited() async throws {
        try await ServerFixture.run { configuration in
            configuration.trustedProxies.networks = ["127.0.0.0/8", "::1"].compactMap(TrustedProxies.Network.init)
            configuration.journeyStartsPerMinute = 2
        } _: { fixture in
            func start(_ client: String) async throws -> Int {
                let fields = ServerFixture.jsonFields + [("X-Forwarded-For", "203.0.113.9, \(client)")]
                return try await fixture.send("POST", fixture.json("authenticate"), fields).status
            }
            for client in ["198.51.100.7", "198.51.100.8"] {
                for status in [200, 200, 429] { #expect(try await start(client) == status, "\(client)") }
            }
            let reply = try await fixture.runJourney(
                [("authIndexType", "service"), ("authIndexValue", "Quick")], [("X-Forwarded-For", "198.51.100.9")]
            ) { type in
                switch type {
                case "NameCallback": "ana"
                case "PasswordCallback": "wrong"
                default: nil
                }
            }
            #expect(reply.status == 401)
            let rows = try await fixture.rows("SELECT detail FROM audit WHERE event = 'password.verify'")
            #expect(try rows.map { try JSONValue.parse($0.text("detail"))["address"]?.string } == ["198.51.100.9"])
        }
    }

    @Test("Conditions are about the client behind a trusted proxy, whatever others wrote into its field or another one")
    func conditions() async throws {
        try await ServerFixture.run { configuration in
            configuration.trustedProxies.networks = ["127.0.0.1", "::1"].compactMap(TrustedProxies.Network.init)
        } _: { fixture in
            let ana = ServerFixture.session(try await fixture.session())
            func status(_ path: String, _ fields: [(String, String)]) async throws -> Int {
                try await fixture.send("GET", fixture.gateway(path), ana + fields).status
            }
            let (field, other) = ("X-Forwarded-For", "Forwarded")
            for inside in [
                [(field, "127.5.5.5")], [(field, "8.8.8.8, 127.5.5.5")], [(field, "8.8.8.8"), (field, "127.5.5.5")],
                [(field, "127.5.5.5"), (other, "for=8.8.8.8")], [(field, "::ffff:127.5.5.5")],
                [(field, Array(repeating: "8.8.8.8", count: 99).joined(separator: ",") + ",127.5.5.5:80")],
            ] {
                #expect(try await status("/inside", inside) == 200, "\(inside)")
                #expect(try await status("/outside", inside) == 403, "\(inside)")
            }
            for outside in [[(field, "8.8.8.8")], [(field, "127.5.5.5, 8.8.8.8")]] {
                #expect(try await status("/inside", outside) == 403, "\(outside)")
                #expect(try await status("/outside", outside) != 403, "\(outside)")
            }
            // Nothing is said of an address of the other family.
            for path in ["/inside", "/outside"] { #expect(try await status(path, [(field, "2001:db8::1")]) == 403) }
        }
    }
}
