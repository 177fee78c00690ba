import AssentCore
import HTTPTypes
import Testing

@Suite("Origins that are remembered, and the Cookie field")
struct OriginMemoryTests {
    private func request(_ scheme: String?, _ authority: String?) -> HTTPRequest {
        HTTPRequest(method: .get, scheme: scheme, authority: authority, path: "/")
    }

    @Test("A request that differs from the one before in anything gets its own origin")
    func another() throws {
        let memory = OriginMemory()
        for (scheme, authority) in [
            ("https", "a.example"), ("https", "a.example"), ("http", "a.example"), ("https", "a.example:444"),
            ("https", "a.example"), ("https", "b.example"), ("https", "B.example."),
        ] {
            let request = request(scheme, authority)
            #expect(try memory.origin(of: request) == Origin(request))
        }
        #expect(try memory.origin(of: request("https", "B.example.")) == Origin("https://b.example"))
    }

    @Test("A request that has no origin gets none, whatever came before, and changes nothing")
    func malformed() throws {
        let memory = OriginMemory()
        let good = request("https", "a.example")
        #expect(try memory.origin(of: good) == Origin("https://a.example"))
        for bad in [
            request("ftp", "a.example"), request("https", "user@a.example"), request("https", nil),
            request(nil, "a.example"), request(nil, nil),
        ] {
            #expect(throws: WireError.self) { try memory.origin(of: bad) }
            #expect(throws: WireError.self) { try OriginMemory().origin(of: bad) }
            #expect(try memory.origin(of: good) == Origin("https://a.example"))
        }
    }

    @Test("A URL gets its own origin, and one that cannot be read none, however much of it is that of the one before")
    func urls() throws {
        let memory = OriginMemory()
        let good = "https://a.example/v1/accounts"
        for url in [
            good, "https://a.example", "https://a.example?a=1", "https://a.example#b", "https://a.example:443/",
            "https://a.example:444/v1", "https://a.example.evil.example/v1", "https://a.example@b.example/",
            "https://a.exampl/v1", "http://a.example/v1", "HTTPS://A.example./v1", "https://a.example:/v1",
            "https://a.example/a b", "https://a.example/a\\b", "https://a.example/ä", "https://a.example\\@b.example/",
            "https://a.example/\u{0}", "https://", "a.example/v1", "",
            "https://a.example/" + String(repeating: "a", count: 16 << 10),
        ] {
            let expected = try? Origin(url)
            for _ in 1...2 {
                let found = try? memory.origin(of: url)
                #expect(found == expected, "\(url.prefix(40))")
            }
            #expect(try memory.origin(of: good) == Origin("https://a.example"))
        }
    }

    @Test("Many tasks at once each get their own origin")
    func concurrent() async throws {
        let memory = OriginMemory()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<200 {
                group.addTask { [request = request("https", "host\(index % 7).example")] in
                    let (found, expected) = (try memory.origin(of: request), try Origin(request))
                    #expect(found == expected)
                }
            }
            try await group.waitForAll()
        }
    }

    @Test("The Cookie field is one field with the whole value, whatever was there before")
    func cookieField() {
        var fields: HTTPFields = [.accept: "*/*", .cookie: "a=1"]
        fields.append(HTTPField(name: .cookie, value: "b=2"))
        fields.setCookie("c=3; d=4")
        #expect(fields[values: .cookie] == ["c=3; d=4"])
        fields.setCookie("")
        #expect(!fields.contains(.cookie))
        #expect(fields[.accept] == "*/*")
    }
}
