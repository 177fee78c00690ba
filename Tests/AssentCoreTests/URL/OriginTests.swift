import AssentCore
import HTTPTypes
import Testing

@Suite("Origin")
struct OriginTests {
    @Test(
        "Equal origins are equal however they are written",
        arguments: [
            ("https://example.com", "https://example.com"), ("HTTPS://EXAMPLE.com.:443/a?b#c", "https://example.com"),
            ("https://example.com?x", "https://example.com"), ("https://example.com#x", "https://example.com"),
            ("http://example.com:80/", "http://example.com"), ("https://example.com:80", "https://example.com:80"),
            ("http://LOCALHOST:8080/x@y", "http://localhost:8080"), ("https://127.0.0.1:443", "https://127.0.0.1"),
            ("https://[::1]:8443/", "https://[::1]:8443"), ("https://[0:0:0:0:0:0:0:1]", "https://[::1]"),
            ("https://[2001:DB8::0:A]", "https://[2001:db8::a]"),
            ("https://[::ffff:192.0.2.1]", "https://[::ffff:c000:201]"),
            ("https://[1:0:0:2:0:0:0:3]", "https://[1:0:0:2::3]"),
            ("https://[1:0:2:3:4:5:6:7]", "https://[1:0:2:3:4:5:6:7]"),
            ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
            ("https://a_b.example", "https://a_b.example"),
        ])
    func equal(url: String, expected: String) throws {
        let origin = try Origin(url)
        #expect(origin.description == expected)
        #expect(try Origin(expected) == origin)
        #expect(try Origin(headerValue: expected) == origin)
    }

    @Test(
        "Different origins are different",
        arguments: [
            ("https://a.example", "http://a.example"), ("https://a.example", "https://b.example"),
            ("https://a.example", "https://a.example:8443"), ("https://a.example", "https://a.example.evil.example"),
            ("https://a.example", "https://aa.example"), ("http://127.0.0.1", "http://127.0.0.2"),
            ("http://[::1]", "http://127.0.0.1"), ("https://a.example:80", "http://a.example"),
        ])
    func different(one: String, other: String) throws {
        let (first, second) = (try Origin(one), try Origin(other))
        #expect(first != second)
        #expect(Set([first, second]).count == 2)
    }

    @Test(
        "What URL readers disagree about is refused",
        arguments: [
            "", "example.com", "//example.com", "/x", "https:", "https:/example.com", "https:example.com", "https://",
            "https:///x",
            "https://:443", "ftp://example.com", "javascript://example.com", "httpss://example.com",
            " https://example.com",
            "https://example.com ", "https://exa mple.com", "https://example.com\n", "https://example.com\u{0}",
            "https://bücher.example",
            "https://example.com\\@evil.example", "https:\\\\example.com", "https://exam%70le.com",
            "https://example..com",
            "https://.example.com", "https://example.com..", "https://.", "https://example.com:",
            "https://example.com:0",
            "https://example.com:65536", "https://example.com:99999999999999999999", "https://example.com:+443",
            "https://example.com:-1", "https://example.com:0443", "https://example.com:4 43",
            "https://example.com:443x",
            "https://example.com:443:443", "https://::1", "https://[::1", "https://::1]", "https://[]",
            "https://[::1]x",
            "https://[::1]:", "https://[127.0.0.1]", "https://[fe80::1%25eth0]", "https://[1::2::3]", "https://[:::]",
            "https://[1:2:3:4:5:6:7]", "https://[1:2:3:4:5:6:7:8:9]", "https://[1:2:3:4:5:6:7:8::]", "https://[g::]",
            "https://[12345::]", "https://[::1.2.3]", "https://[::256.1.1.1]", "https://[1.2.3.4::]", "https://127.1",
            "https://2130706433", "https://0x7f000001", "https://0x7f.0.0.1", "https://127.0.0.01",
            "https://0177.0.0.1",
            "https://256.0.0.1", "https://1.2.3.4.5", "https://a.1", "https://a.0x1", "https://1.2.3.4..",
            "https://a,b",
            "https://a;b", "https://a*b", "https://a'b", "https://[::1]]", "https://[[::1]]",
        ])
    func refused(url: String) {
        #expect(throws: WireError(.malformed, "")) { try Origin(url) }
    }

    @Test(
        "User information is refused, before it can pass for the host",
        arguments: ["https://a@b", "https://a:b@c", "https://@a", "https://good.example@evil.example/"])
    func userInformation(url: String) {
        #expect(throws: WireError(.refused, "")) { try Origin(url) }
    }

    @Test("Lengths are bounded")
    func lengths() throws {
        let label = String(repeating: "a", count: 63)
        #expect(throws: Never.self) { try Origin("https://\(label).example") }
        #expect(throws: WireError(.malformed, "")) { try Origin("https://a\(label).example") }
        let long = Array(repeating: label, count: 4).joined(separator: ".")
        #expect(throws: WireError(.malformed, "")) { try Origin("https://\(long)") }
        #expect(throws: WireError(.tooLarge, "")) { try Origin("https://a/" + String(repeating: "a", count: 16 << 10)) }
    }

    @Test(
        "An Origin field has nothing behind the authority",
        arguments: ["null", "https://a.example/", "https://a.example?x", "https://a.example, https://b.example"])
    func headerValue(text: String) {
        #expect(throws: WireError(.malformed, "")) { try Origin(headerValue: text) }
    }

    @Test("A request's origin is where it goes")
    func request() throws {
        let request = HTTPRequest(method: .get, scheme: "https", authority: "Example.com:443", path: "/x")
        #expect(try Origin(request) == Origin("https://example.com"))
        for authority in [nil, "", "a/b", "u@a", "a#b"] {
            let request = HTTPRequest(method: .get, scheme: "https", authority: authority, path: "/")
            #expect(throws: WireError.self) { try Origin(request) }
        }
        #expect(throws: WireError.self) {
            try Origin(HTTPRequest(method: .get, scheme: nil, authority: "a", path: "/"))
        }
    }

    @Test(
        "Only what can be nothing else is this machine",
        arguments: [
            ("localhost", true), ("LOCALHOST.", true), ("a.localhost", true), ("127.0.0.1", true),
            ("127.255.0.9", true),
            ("::1", true), ("[::1]", true), ("localhost.example.com", false), ("notlocalhost", false),
            ("128.0.0.1", false),
            ("127.example.com", false), ("::2", false), ("::ffff:127.0.0.1", false), ("0.0.0.0", false),
        ])
    func loopback(host: String, expected: Bool) throws {
        #expect(try NormalizedHost(host).isLoopback == expected)
    }

    @Test("Whatever is changed, it is refused or an origin that reads the same when written")
    func mutations() throws {
        let seeds = [
            "https://am.example.com:8443/am?x#y", "http://[2001:db8::1:0:0:7]:80/", "https://127.0.0.1/",
            "https://[::ffff:1.2.3.4]",
        ]
        try Mutations.of(seeds, count: 10_000) { text throws in
            guard let origin = try? Origin(text) else { return }
            #expect(try Origin(headerValue: origin.description) == origin)
            #expect((1...65535).contains(origin.port))
            #expect(!text.contains("\\"))
        }
    }
}
