import AssentCore
import AssentTesting
import HTTPTypes
import Testing

@Suite("HTTPCall and its layers")
struct HTTPCallTests {
    @Test("A call made from a URL goes where the URL says, as it is written")
    func fromURL() throws {
        let call = try HTTPCall(.get, url: "HTTPS://A.example:443/x?y#z")
        #expect(call.request.path == "/x?y" && call.request.authority == "A.example:443")
        #expect(try call.origin == Origin("https://a.example"))
        #expect(throws: WireError.self) { try HTTPCall(.get, url: "ftp://a.example") }
    }

    @Test("The origin that a call carries is not that of a request which was changed since")
    func changed() throws {
        var call = try HTTPCall(.get, url: "https://bank.example/")
        for (scheme, authority) in [
            ("https", "evil.example"), ("http", "bank.example"), ("https", "bank.example:444"),
            ("https", "BANK.example"),
        ] {
            call.request.scheme = scheme
            call.request.authority = authority
            #expect(try call.origin == Origin("\(scheme)://\(authority)"))
        }
        // Swift takes the Kelvin sign for a K.
        call = try HTTPCall(.get, url: "https://banK.example/")
        call.request.authority = "ban\u{212A}.example"
        #expect(throws: WireError.self) { try call.origin }
    }

    @Test("Only a safe call whose body can be read again, and which is not to be sent once, may be repeated")
    func repeatable() throws {
        var call = try HTTPCall(.get, url: "https://a.example/")
        #expect(call.mayBeRepeated)
        call.isSentOnce = true
        #expect(!call.mayBeRepeated)
        #expect(try !HTTPCall(.post, url: "https://a.example/").mayBeRepeated)
    }

    @Test("Limits that are made longer stay where they are long enough, absent or zero")
    func longerLimits() {
        var limits = HTTPLimits(connect: .seconds(5), read: .seconds(90), total: nil, replyBytes: 7)
        var longer = limits.atLeast(.seconds(60))
        #expect(longer == HTTPLimits(connect: .seconds(60), read: .seconds(90), total: nil, replyBytes: 7))
        limits.head = .seconds(1)
        limits.total = .seconds(10)
        longer = limits.atLeast(.seconds(60))
        #expect(longer.head == .seconds(60) && longer.total == .seconds(60))
        limits.total = .zero
        #expect(limits.atLeast(.seconds(60)).total == .zero)
    }

    private struct Mark: HTTPMiddleware {
        let letter: String
        func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply {
            var call = call
            call.request.headerFields[.accept] = (call.request.headerFields[.accept] ?? "") + letter
            return try await next.send(call)
        }
    }

    @Test("A pipeline around a pipeline is one, its layers outermost")
    func nested() async throws {
        let seen = Locked("")
        let transport = InMemoryTransport { call in
            seen.withLock { $0 = call.request.headerFields[.accept] ?? "" }
            return HTTPReply(HTTPResponse(status: .ok))
        }
        let inner = HTTPPipeline(transport, layers: [Mark(letter: "b"), Mark(letter: "c")])
        _ = try await HTTPPipeline(inner, layers: [Mark(letter: "a")]).send(HTTPCall(.get, url: "https://a.example/"))
        #expect(seen.withLock { $0 } == "abc")
    }

    @Test("A cookie that is ignored is neither kept nor shown, and the others are")
    func ignoredCookie() async throws {
        let transport = InMemoryTransport { _ in
            var fields = HTTPFields()
            fields[values: .setCookie] = [
                "session=secret; Path=/", "session\t=secret; Path=/", " \tsession \t= secret",
                "session=\u{301}secret", "lb=01; Path=/",
            ]
            return HTTPReply(HTTPResponse(status: .ok, headerFields: fields))
        }
        let store = CookieStore(clock: ManualClock())
        let origin = try Origin("https://a.example")
        let pipeline = HTTPPipeline(
            transport, layers: [CookieMiddleware(store: store, origins: [origin], ignoring: ["session"])])
        let reply = try await pipeline.send(HTTPCall(.get, url: "https://a.example/"))
        #expect(reply.response.headerFields[values: .setCookie] == ["lb=01; Path=/"])
        #expect(await store.cookies(for: origin, path: "/").map(\.name) == ["lb"])
    }
}
