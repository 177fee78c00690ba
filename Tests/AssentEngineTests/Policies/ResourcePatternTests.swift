import AssentCore
@testable import AssentEngine
import Testing

@Suite("Resource patterns")
struct ResourcePatternTests {
    @Test(
        "Patterns match as AM's do",
        arguments: [
            ("https://*:*/g/*", "https://x:443/g/one/two", true),
            ("https://*:*/g/*", "https://x:443/g/", true),
            ("https://*:*/g/*", "https://x:443/g", false),
            ("https://*:*/h/-*-", "https://x:443/h/one/two", false),
            ("https://*:*/h/-*-", "https://x:443/h/one", true),
            ("https://*:*/i/*/z", "https://x:443/i/one/two/z", true),
            ("https://*:*/lit/One", "https://x:443/LIT/one", true),
            ("https://*:*/g/*", "https://x:443/g/one?b=1", false),
            ("https://*:*/q/a?*", "https://x:443/q/a?b=1", true),
            ("https://*:*/q/a?*", "https://x:443/q/a", false),
            ("https://*:*/q/a?*", "https://x:443/q/a?", true),
            ("https://*:*/t/*/", "https://x:443/t/one", false),
            ("https://*:*/t/*/", "https://x:443/t/one/", true),
            ("https://*:*/g/*", "https://x/g/one", true),
            ("https://*:*/g/*", "http://x:80/g/one", false),
            ("*://*:*/*", "http://x/anything", true),
            ("*://*:*/*", "http://x/anything?a=1", false),
            ("*://*:*/*?*", "https://x:8443/anything?a=1", true),
            ("https://x/g", "https://x:443/g", true),
            ("https://x/g", "https://x:8443/g", false),
            ("http://x/g", "http://x:80/g", true),
            ("*://x/g", "https://x:8443/g", true),
            ("https://x/g", "https://x//g", true),
            ("https://x//g", "https://x/g", true),
            ("https://x", "https://x/", true),
            ("https://*.bank.example/g", "https://api.bank.example/g", true),
            ("https://*.bank.example/g", "https://bank.example/g", false),
            ("https://api.bank.example/g", "https://api.bank.example.evil.example/g", false),
            ("https://x/g?b=2&a=*", "https://x/g?a=1&b=2", true),
            ("https://x/g?b=2&a=*", "https://x/g?a=1&b=3", false),
            ("https://x/a*b*c", "https://x/aXbYbZc", true),
            ("https://x/a*b*c", "https://x/ab", false),
            ("https://x/aa*aa", "https://x/aaa", false),
            ("https://x/a-*-b/c", "https://x/a1b/c", true),
            ("https://x/a-*-b/c", "https://x/a/b/c", false),
            ("https://x/-*-/-*-", "https://x/one/two", true),
            ("https://[::1]:8443/*", "https://[::1]:8443/g", true),
            ("https://x/%7Eana", "https://x/~ana", false),
            ("https://x/a@b", "https://x/a%40b", true), ("https://x/a@b", "https://x/a@b", true),
            ("https://x/pay:All", "https://x/pay%3aall", true), ("https://x/(a+b)", "https://x/%28a%2Bb%29", true),
            ("https://x/a%40b", "https://x/a%40b", false), ("https://x/a%20b", "https://x/a%20b", true),
            ("https://x/a", "https://x/a%3Fb", false), ("https://x/a?b", "https://x/a%3Fb", false),
            ("https://x/-*-", "https://x/a%3Fb", true), ("https://x/%C3%A9:b", "https://x/%c3%a9%3Ab", true),
        ])
    func table(pattern: String, resource: String, matches: Bool) throws {
        #expect(try ResourcePattern(pattern).matches(try CanonicalResource(resource)) == matches)
    }

    @Test(
        "A text that is no pattern is refused in AM's words",
        arguments: [
            ("https://x/*/-*-", "Same rule cannot have both types of wildcards."),
            ("https://x:4x3/g", "Invalid port 4x3"), ("https://x:0/g", "Invalid port 0"),
            ("https://x:65536/g", "Invalid port 65536"), ("/transfers", "a pattern begins with scheme://host"),
            ("https://", "a pattern begins with scheme://host"), ("*", "a pattern begins with scheme://host"),
            ("https://ana@x/g", "a pattern begins with scheme://host"),
            ("https://x/ö", "the pattern has a character that must be escaped"),
            ("https://x/" + String(repeating: "a", count: 2048), "the pattern is too long"),
        ])
    func refused(pattern: String, message: String) {
        #expect(throws: PatternError(message)) { try ResourcePattern(pattern) }
    }

    @Test("The worst pattern takes steps in proportion to the lengths", arguments: [1, 2, 4, 8])
    func linear(scale: Int) throws {
        let text = "https://x/" + String(repeating: "a", count: 1000 * scale)
        let resource = try CanonicalResource(text)
        let limit = 4 * (text.utf8.count + ResourcePattern.maximumLength)
        for path in [
            String(repeating: "a*", count: 900) + "b", String(repeating: "*a", count: 900) + "*b",
            "*" + String(repeating: "a", count: 900) + "b*", String(repeating: "*", count: 1900) + "b",
            String(repeating: "*aaaaaaaab", count: 180) + "*", String(repeating: "-*-a", count: 450) + "b",
        ] {
            var steps = 0
            let matches = try ResourcePattern("https://x/" + path).matches(resource, steps: &steps)
            #expect(!matches)
            #expect(steps <= limit, "\(path.prefix(20)): \(steps) steps for \(text.utf8.count) bytes")
        }
    }

    @Test("Wildcards agree with a plain definition on all short texts")
    func exhaustive() throws {
        let alphabet: [Character] = ["a", "b", "/"]
        var texts = [""]
        for _ in 0..<4 { texts += texts.flatMap { text in alphabet.map { text + String($0) } } }
        for pattern in ["", "ab", "a/b", "*", "a*", "*a", "a*b", "*a*b*", "a*a", "ab*ba", "**", "*ab*ab", "a*b*a"] {
            let wildcard = try #require(WildcardPattern(Array(pattern.utf8)))
            for text in Set(texts) {
                var steps = 0
                #expect(
                    wildcard.matches(text.utf8, steps: &steps) == Self.plain(pattern[...], text[...]),
                    "\(pattern) \(text)")
            }
        }
    }

    private static func plain(_ pattern: Substring, _ text: Substring) -> Bool {
        guard let first = pattern.first else { return text.isEmpty }
        guard first == "*" else { return text.first == first && plain(pattern.dropFirst(), text.dropFirst()) }
        return plain(pattern.dropFirst(), text) || (!text.isEmpty && plain(pattern, text.dropFirst()))
    }
}

@Suite("The canonical form of a resource")
struct CanonicalResourceTests {
    @Test(
        "What means the same is written the same",
        arguments: [
            ("HTTPS://Api.Bank.Example", "https://api.bank.example:443/"),
            ("http://x./a", "http://x:80/a"),
            ("https://x:/a", "https://x:443/a"),
            ("https://x:0443/a", "https://x:443/a"),
            ("https://x//a///b/", "https://x:443/a/b/"),
            ("https://x/%7e%41%c3%a4", "https://x:443/~A%C3%A4"),
            ("https://x/a?b=%7e&a=%2f&c", "https://x:443/a?b=~&a=%2F&c"),
            ("https://x/a%25", "https://x:443/a%25"),
            ("https://x?a=1", "https://x:443/?a=1"),
            ("https://x/a?", "https://x:443/a?"),
            ("https://[2001:DB8::1]/a", "https://[2001:db8::1]:443/a"),
            ("https://x/.well-known/..a/a..", "https://x:443/.well-known/..a/a.."),
            ("https://x/a?b=..%2F..%252F", "https://x:443/a?b=..%2F..%252F"),
            ("https://x/a?b;c=%3b", "https://x:443/a?b;c=%3B"),
        ])
    func canonical(url: String, expected: String) throws {
        let resource = try CanonicalResource(url)
        #expect(resource.url == expected)
        #expect(try CanonicalResource(expected) == resource)
    }

    @Test(
        "What two programs could read differently has no canonical form",
        arguments: [
            ("https://x/a/../b", ResourceURLError.dotSegment), ("https://x/a/%2e%2E/b", .dotSegment),
            ("https://x/a/./b", .dotSegment), ("https://x/..", .dotSegment), ("https://x/a/..;x=1/b", .dotSegment),
            ("https://x/a/..%3b/b", .dotSegment), ("https://x/a/..%3Bx=1/b", .dotSegment),
            ("https://x/a/%2e.%3b", .dotSegment), ("https://x/a/..%20/b", .dotSegment),
            ("https://x/a/%EF%BC%8E%EF%BC%8E/b", .dotSegment), ("https://x/a/%E2%80%A5/b", .dotSegment),
            ("https://x/a/.%E2%80%8B./b", .dotSegment), ("https://x/a%EF%BC%8Fb", .encodedSlash),
            ("https://x/a%EF%BC%BCb", .encodedSlash), ("https://x/%c0%ae%c0%ae/b", .notUTF8),
            ("https://x/..%ff/b", .notUTF8), ("https://x/a%C3", .notUTF8), ("https://x/a%ED%A0%80", .notUTF8),
            ("https://x/%e0%80%ae/b", .notUTF8), ("https://x/a?b=%C0%A6", .notUTF8), ("https://x/a?b=%ff", .notUTF8),
            ("https://x/a;", .pathParameter), ("https://x/a;b=1/c", .pathParameter), ("https://x/;/a", .pathParameter),
            ("https://x/a%3bb", .pathParameter), ("https://x/a.b%3Bc=1", .pathParameter),
            ("https://x/a%EF%BC%9Bb", .pathParameter), ("https://x/a%CD%BEb", .pathParameter),
            ("https://x/..;%CC%81/a", .pathParameter),
            ("https://x/a%2fb", .encodedSlash), ("https://x/a%5cb", .backslash), ("https://x/a\\b", .backslash),
            ("https://x\\@evil/a", .backslash), ("https://x/a%00", .encodedControl),
            ("https://x/a?b=%00", .encodedControl),
            ("https://x/a%0d%0a", .encodedControl), ("https://x/a%252e", .doubleEncoding),
            ("https://x/%2541", .doubleEncoding), ("https://x/%25%32%65", .doubleEncoding),
            ("https://x/%252%65", .doubleEncoding), ("https://x/%25%32e", .doubleEncoding),
            ("https://x/a%", .escape), ("https://x/a%2", .escape), ("https://x/a%zz", .escape),
            ("https://x/a?b=%g0", .escape),
            ("https://ana@x/a", .userInfo), ("https://ana:pw@x/a", .userInfo), ("https://x/a#b", .fragment),
            ("https://x/a b", .forbiddenCharacter), ("https://x/ä", .forbiddenCharacter),
            ("https://x/a\u{0}", .forbiddenCharacter),
            ("https://x/\u{202E}", .forbiddenCharacter), ("https://x/<a>", .forbiddenCharacter),
            ("https://x:0/a", .port),
            ("https://x:99999/a", .port), ("https://x:-1/a", .port), ("https://x:8a/a", .port), ("https:///a", .host),
            ("https://x y/a", .forbiddenCharacter), ("https://x%2f/a", .host), ("https://[::1/a", .host),
            ("https://[x]/a", .host), ("https://[::1]x/a", .host), ("https://.x/a", .host),
            ("shop://orders/1", .notURL),
            ("/transfers", .notURL), ("", .notURL), ("https:/x/a", .notURL),
            ("https://x/" + String(repeating: "a", count: 8192), .tooLong),
        ])
    func refused(url: String, error: ResourceURLError) {
        #expect(throws: error) { try CanonicalResource(url) }
    }

    @Test(
        "A target at an origin is what the URL of both is, and is refused for the same",
        arguments: [
            "https://x", "http://x", "https://x:8443", "https://127.0.0.1", "http://[2001:db8::1]:80", "https://a_b.x",
        ],
        [
            "/", "//a///b/", "/%7e%41%c3%a4", "/a?b=%7e&a=%2f&c", "/a?", "/?", "/a?b?c", "/a%25", "/@a:b", "//x@y/a",
            "/a/../b", "/a%2fb", "/a;b", "/a#b", "/a\\b", "/a b", "/a%", "/a%00", "/a?b=%ff", "/a%252e", "/ä",
            "/" + String(repeating: "a", count: 8170), "/" + String(repeating: "a", count: 8192),
        ])
    func target(origin: String, target: String) throws {
        let origin = try Origin(origin)
        let at = ResourceOrigin(origin)
        let named = Result { () throws(ResourceURLError) in try CanonicalResource(target: target, at: at) }
        let whole = Result { () throws(ResourceURLError) in try CanonicalResource(origin.description + target) }
        #expect(named == whole)
    }

    @Test("A target begins with a slash", arguments: ["", "a", "?a", "https://x/a", "@y/a", ".y/a"])
    func noTarget(target: String) throws {
        let at = ResourceOrigin(try Origin("https://x"))
        #expect(throws: ResourceURLError.notURL) { try CanonicalResource(target: target, at: at) }
    }

    @Test("A parameter is taken out by its exact name, and the rest stays as it was")
    func removing() throws {
        let resource = try CanonicalResource("https://x/a?b=2&_txid=7b8b&a=1")
        let (rest, values) = resource.removingParameter("_txid")
        #expect(rest.url == "https://x:443/a?b=2&a=1")
        #expect(values == ["7b8b"])
        #expect(try CanonicalResource("https://x/a?_txid=1&_txid=2").removingParameter("_txid").values == ["1", "2"])
        #expect(try CanonicalResource("https://x/a?_txid=1").removingParameter("_txid").resource.query == nil)
        #expect(try CanonicalResource("https://x/a?x_txid=1&_txid2=1").removingParameter("_txid").values.isEmpty)
        #expect(try CanonicalResource("https://x/a?%5Ftxid=1").removingParameter("_txid").values == ["1"])
    }
}
