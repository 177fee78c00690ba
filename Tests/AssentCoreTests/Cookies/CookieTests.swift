import AssentCore
import Foundation
import Testing

@Suite("Cookie")
struct CookieTests {
    private let now = Date(timeIntervalSince1970: 1_767_225_600)  // 2026-01-01T00:00:00Z

    private func parse(_ text: String, from url: String = "https://am.example.com", path: String = "/am/json/x") throws
        -> Cookie
    {
        try Cookie.parse(text, from: Origin(url), path: path, now: now)
    }

    @Test("AM's session cookie is read with its attributes, and its value is not shown")
    func session() throws {
        let cookie = try parse("iPlanetDirectoryPro=AQIC5w*AAJ=.*; Path=/am; Secure; HttpOnly; SameSite=none")
        #expect(cookie.name == "iPlanetDirectoryPro")
        #expect(cookie.value == Secret("AQIC5w*AAJ=.*"))
        #expect(cookie.path == "/am")
        #expect(cookie.isSecure)
        #expect(cookie.isHTTPOnly)
        #expect(cookie.expires == nil)
        #expect(!cookie.includesSubdomains)
        var dumped = ""
        dump(cookie, to: &dumped)
        for text in ["\(cookie)", String(reflecting: cookie), dumped] { #expect(!text.contains("AQIC5w")) }
    }

    @Test(
        "Name and value are taken as browsers take them",
        arguments: [
            ("a=b", "a", "b"), (" a = b ;Secure", "a", "b"), ("a=", "a", ""), ("a=b=c==", "a", "b=c=="),
            ("a=\"b\"", "a", "\"b\""),
            ("a=b c", "a", "b c"), ("a=b,c", "a", "b,c"), ("a=b;", "a", "b"), ("a=b;;;=;x", "a", "b"),
            ("\ta\t=\tb\t", "a", "b"),
        ])
    func nameAndValue(text: String, name: String, value: String) throws {
        let cookie = try parse(text)
        #expect(cookie.name == name)
        #expect(cookie.value.reveal() == value)
    }

    @Test(
        "What could not be sent back is refused",
        arguments: [
            "", "a", ";", "=b", "a b=c", "a\"=b", "a=b\r\nX: y", "a=\u{0}", "a=é", "a=b\tc", "a=b; Path=/\u{1}",
            " ; a=b",
        ])
    func malformed(text: String) {
        #expect(throws: WireError(.malformed, "")) { try parse(text) }
    }

    @Test(
        "A Domain never widens a cookie beyond the host that set it",
        arguments: [
            ("https://am.example.com", "am.example.com", true), ("https://am.example.com", ".AM.Example.com", true),
            ("https://am.example.com", "example.com", false), ("https://am.example.com", ".com", false),
            ("https://am.example.com", "", false), ("https://localhost", "localhost", false),
            ("https://127.0.0.1", "127.0.0.1", false), ("https://[::1]", "[::1]", false),
        ])
    func domain(url: String, domain: String, includesSubdomains: Bool) throws {
        let cookie = try parse("a=b; Domain=\(domain)", from: url)
        #expect(cookie.host == (try Origin(url).host))
        #expect(cookie.includesSubdomains == includesSubdomains)
    }

    @Test(
        "A Domain that is not the host or above it refuses the cookie",
        arguments: [
            ("https://am.example.com", "evil.com"), ("https://am.example.com", "x.am.example.com"),
            ("https://aexample.com", "example.com"), ("https://am.example.com", "m.example.com"),
            ("https://127.0.0.1", "0.0.1"),
            ("https://127.0.0.1", "1"), ("https://am.example.com", ".."), ("https://am.example.com", "exa mple.com"),
            ("https://abcdefgh.com", ".hgfedcba.com"),
        ])
    func foreignDomain(url: String, domain: String) {
        #expect(throws: WireError(.refused, "")) { try parse("a=b; Domain=\(domain)", from: url) }
    }

    @Test("Secure cookies and the name prefixes keep their promises")
    func prefixes() throws {
        #expect(throws: WireError(.refused, "")) { try parse("a=b; Secure", from: "http://am.example.com") }
        #expect(throws: WireError(.refused, "")) { try parse("__Secure-a=b") }
        #expect(throws: WireError(.refused, "")) { try parse("__secure-a=b") }
        #expect(throws: WireError(.refused, "")) { try parse("__Host-a=b; Secure") }
        #expect(throws: WireError(.refused, "")) { try parse("__Host-a=b; Secure; Path=/x") }
        #expect(throws: WireError(.refused, "")) { try parse("__HOST-a=b; Secure; Path=/; Domain=am.example.com") }
        #expect(try parse("__Secure-a=b; Secure").isSecure)
        #expect(try parse("__Host-a=b; Secure; Path=/").path == "/")
    }

    @Test("Sizes are bounded")
    func sizes() throws {
        #expect(try parse("a=" + String(repeating: "b", count: 4095)).value.count == 4095)
        #expect(throws: WireError(.tooLarge, "")) { try parse("a=" + String(repeating: "b", count: 4096)) }
        #expect(throws: WireError(.tooLarge, "")) { try parse("a=b; X=" + String(repeating: "b", count: 8200)) }
        #expect(try parse("a=b; Path=/" + String(repeating: "b", count: 1024)).path == "/am/json")
    }

    @Test(
        "The path is the attribute's, or the directory of the request's",
        arguments: [
            ("a=b; Path=/x", "/am/y", "/x"), ("a=b; Path=x", "/am/y", "/am"), ("a=b; Path", "/am/y", "/am"),
            ("a=b", "/am/", "/am"),
            ("a=b", "/am", "/"), ("a=b", "/", "/"), ("a=b", "", "/"), ("a=b; Path=/x; path=/y", "/", "/y"),
        ])
    func path(text: String, requestPath: String, expected: String) throws {
        #expect(try parse(text, path: requestPath).path == expected)
    }

    @Test(
        "Paths match at a slash only",
        arguments: [
            ("/", "/", true), ("/", "", true), ("/", "/x", true), ("/am", "/am", true), ("/am", "/am/", true),
            ("/am", "/am/x", true),
            ("/am", "/amx", false), ("/am", "/a", false), ("/am/", "/am", false), ("/am/", "/am/x", true),
            ("/am", "/AM", false),
        ])
    func pathMatch(cookiePath: String, path: String, expected: Bool) throws {
        let cookie = try parse("a=b; Path=\(cookiePath)")
        #expect(cookie.matches(try Origin("https://am.example.com"), path: path, now: now) == expected)
    }

    @Test(
        "Hosts match at a dot only, and Secure needs https",
        arguments: [
            ("a=b", "https://am.example.com", true), ("a=b", "https://AM.example.com.:8443", true),
            ("a=b", "http://am.example.com", true),
            ("a=b; Secure", "http://am.example.com", false), ("a=b", "https://x.am.example.com", false),
            ("a=b; Domain=am.example.com", "https://x.am.example.com", true),
            ("a=b; Domain=am.example.com", "https://xam.example.com", false),
            ("a=b; Domain=am.example.com", "https://example.com", false),
            ("a=b; Domain=example.com", "https://ig.example.com", false),
        ])
    func hostMatch(text: String, url: String, expected: Bool) throws {
        #expect(try parse(text).matches(Origin(url), path: "/am/json", now: now) == expected)
    }

    @Test("An IP address has no subdomains")
    func ipMatch() throws {
        let cookie = try parse("a=b; Domain=0.0.1.1", from: "https://0.0.1.1")
        #expect(!cookie.matches(try Origin("https://a.0.0.1.1.example"), path: "/am/json", now: now))
    }

    @Test(
        "The three date formats and their variants are read",
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777), ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("1 jan 70 0:0:0", 0),
            ("Thu, 31-Dec-69 23:59:59", 3_155_759_999), ("29 Feb 2000 12:00:00", 951_825_600),
            ("Mon, 01-Mar-2100 00:00:00 GMT", 4_107_542_400),
            ("Thu, 19 Jan 2038 03:14:08 GMT", 2_147_483_648), ("Mon, 01 Jan 1601 00:00:00 GMT", -11_644_473_600),
            ("08:49:37 06 Nov 1994", 784_111_777),
        ] as [(String, Int)])
    func dates(text: String, seconds: Int) throws {
        let late = Date(timeIntervalSince1970: 5_000_000_000)
        let cookie = try Cookie.parse("a=b; Expires=\(text)", from: Origin("https://h"), path: "/", now: late)
        #expect(cookie.expires == Date(timeIntervalSince1970: Double(seconds)))
    }

    @Test(
        "A date that is none leaves a session cookie",
        arguments: [
            "", "x", "0", "06 Nov 1994", "08:49:37", "31 Jun 1994 08:49:37", "29 Feb 1900 08:49:37",
            "29 Feb 2026 0:0:0", "0 Nov 1994 08:49:37",
            "32 Nov 1994 08:49:37", "06 Nov 1600 08:49:37", "06 Nov 1994 24:00:00", "06 Nov 1994 08:60:37",
            "06 Nov 1994 08:49:60",
            "06 Nov 19941 08:49:37", "06 Now 1994 08:49:37", "99999999999999999999 Nov 1994 08:49:37",
            "06 Nov 1994 008:49:37",
        ])
    func noDate(text: String) throws {
        #expect(try parse("a=b; Expires=\(text)").expires == nil)
    }

    @Test(
        "Max-Age wins over Expires, and is bounded",
        arguments: [
            ("Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 60.0),
            ("Expires=Thu, 01 Jan 1970 00:00:00 GMT; max-age=60", 60),
            ("Max-Age=99999999999999999999999999", Cookie.longestLife), ("Max-Age=60; Max-Age=x", 60),
            ("Max-Age=1; Max-Age=2", 2),
            ("Expires=Fri, 01 Jan 2100 00:00:00 GMT", Cookie.longestLife),
        ] as [(String, TimeInterval)])
    func maxAge(text: String, seconds: TimeInterval) throws {
        let cookie = try parse("a=b; \(text)")
        #expect(cookie.expires == now + seconds)
        #expect(!cookie.isExpired(now: now))
        #expect(cookie.isExpired(now: now + seconds))
    }

    @Test(
        "A Max-Age of nothing or less ends the cookie at once, one that is no number does not count",
        arguments: [
            ("0", true), ("-1", true), ("-0", true), ("000", true), ("1.5", false), ("", false), ("-", false),
            ("+1", false),
        ])
    func noAge(text: String, isExpired: Bool) throws {
        let cookie = try parse("a=b; Max-Age=\(text)")
        #expect(cookie.isExpired(now: now) == isExpired)
        #expect((cookie.expires == nil) == !isExpired)
    }

    @Test("Whatever is changed in a Set-Cookie field, the cookie stays with the host that set it")
    func mutations() throws {
        let seeds = [
            "iPlanetDirectoryPro=abc; Domain=am.example.com; Path=/am; Expires=Sun, 06 Nov 2094 08:49:37 GMT; Secure; HttpOnly",
            "__Host-a=b; Path=/; Secure; Max-Age=99",
            "a=b; Domain=.example.com; Expires=Sunday, 06-Nov-94 08:49:37 GMT",
        ]
        let origin = try Origin("https://am.example.com")
        let foreign = try [
            "https://example.com", "https://evil.com", "https://xam.example.com", "https://ig.example.com",
        ].map { try Origin($0) }
        Mutations.of(seeds, count: 8000) { text in
            guard let cookie = try? Cookie.parse(text, from: origin, path: "/am/x", now: now) else { return }
            #expect(cookie.host == origin.host)
            #expect(!foreign.contains { cookie.matches($0, path: cookie.path, now: .distantPast) })
            #expect(!cookie.value.reveal().utf8.contains { $0 < 0x20 || $0 == UInt8(ascii: ";") || $0 >= 0x7F })
        }
    }
}
