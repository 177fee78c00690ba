import AssentAuthorization
import AssentCore
import Testing

@Suite("Where a request goes")
struct ResourcePathTests {
    private func url(_ path: String, base: String? = resources) throws -> String? {
        try ResourceRequest(path: path).httpCall(base: base).request.url
    }

    @Test(
        "23 Base and path are joined by one slash",
        arguments: [
            ("https://h.example", "a"), ("https://h.example/", "a"), ("https://h.example", "/a"),
            ("https://h.example/", "/a"),
        ])
    func joined(base: String, path: String) throws {
        #expect(try url(path, base: base) == "https://h.example/a")
    }

    @Test("23 An empty path is the base, and a query stays behind it")
    func empty() throws {
        #expect(try url("") == resources)
        #expect(try url("?x=1") == "https://api.bank.example/resources/?x=1")
        #expect(try url("devices?x=1&y") == "https://api.bank.example/resources/devices?x=1&y")
        #expect(try url("a/b/") == "https://api.bank.example/resources/a/b/")
        #expect(try url("a..b/.c/...;x=.") == "https://api.bank.example/resources/a..b/.c/...;x=.")
        #expect(try url("a%20b?next=%2F../") == "https://api.bank.example/resources/a%20b?next=%2F../")
    }

    @Test(
        "23 A path with a scheme is absolute, and used as it is written",
        arguments: [
            "https://other.example/a?b=%7e", "HTTPS://other.example/a", "http://[::1]:8080/", "https://h.example",
        ])
    func absolute(url path: String) throws {
        let written = path.lowercased().hasSuffix("example") ? path + "/" : path
        let scheme = written.prefix { $0 != ":" }
        #expect(try url(path) == scheme.lowercased() + written.dropFirst(scheme.count))
        #expect(try url(path, base: nil) == url(path))
    }

    @Test(
        "23 What two programs could read differently is refused in each way to a request, and never repaired",
        arguments: [
            ".", "..", "./", "../", "a/.", "a/..", "a/./b", "a/../b", "/..", "%2e", "%2e%2e", ".%2e", "%2e.",
            "a/%2e%2e/b", "https://h.example/a/../b", "https://h.example/%2e%2e", "https://h.example/..",
            "a\\b", "\\\\h.example", "..\\a", "//h.example/a", "//", "https:\\\\h.example", "a#b", "#",
            "https://h.example/a#b", "a b", " a", "a ", "a\u{0}", "a\r\nHost: evil", "a\nb", "a\tb", "a\u{7F}", "ä",
            "a\u{3000}b", "\u{FF0E}\u{FF0E}/a", "https://h\u{E4}.example/", "a?b=ä", "a?b c",
            "https:/h.example", "https:h.example", "https:", "ftp://h.example/", "javascript:alert(1)", "file:///etc/x",
            "data:,x", "https://", "https://user@h.example/", "https://h.example:0/", "https://h.example:65536/",
            "\u{212A}ttps://h.example",
        ])
    func refused(path: String) {
        for spelling in cases(of: path) {
            #expect(
                RequestMaker.refusal(ResourceRequest(path: spelling)) == .invalidRequest, "\(spelling.debugDescription)"
            )
        }
    }

    @Test("23 A path that is not absolute needs the address of the resources, which has no query")
    func bases() {
        #expect(RequestMaker.refusal(.get("/a"), base: nil) == .invalidRequest)
        for base in ["https://h.example/?a", "https://h.example/#a", "h.example", "", "/a"] {
            #expect(RequestMaker.refusal(.get("/a"), base: base) == .invalidRequest, "\(base)")
        }
    }

    @Test("23 Parameters follow a query with &")
    func queries() throws {
        for (path, expected) in [("a", "a?p=1"), ("a?", "a?p=1"), ("a?x=1", "a?x=1&p=1"), ("a?x=1&", "a?x=1&p=1")] {
            let call = try ResourceRequest.get(path, parameters: ["p": 1]).httpCall(base: resources)
            #expect(call.request.url == resources + expected)
        }
        #expect(
            try ResourceRequest.get("", parameters: ["p": 1]).httpCall(base: resources).request.url == resources
                + "?p=1")
        #expect(try ResourceRequest.get("a", parameters: [:]).httpCall(base: resources).request.url == resources + "a")
    }

    @Test("2 Only an absolute URL, which may be somebody else's, must be sealed, unless the request says otherwise")
    func sealed() throws {
        for (path, mustBeSealed) in [("a", false), ("/a", false), ("", false), ("https://h.example/a", true)] {
            #expect(try ResourceRequest.get(path).httpCall(base: resources).mustBeSealed == mustBeSealed, "\(path)")
            let allowed = ResourceRequest(path: path, allowsUnsealed: true)
            #expect(try !allowed.httpCall(base: resources).mustBeSealed, "\(path)")
        }
    }
}
