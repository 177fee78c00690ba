import AssentCore
import AssentTesting
import Foundation
import HTTPTypes
import Testing

@Suite("CookieStore")
struct CookieStoreTests {
    private let clock = ManualClock()

    private func names(_ store: CookieStore, _ url: String, path: String = "/") async throws -> [String] {
        await store.cookies(for: try Origin(url), path: path).map(\.name)
    }

    @Test("Longer paths come first, then what was set earlier")
    func order() async throws {
        let store = CookieStore(clock: clock)
        let origin = try Origin("https://am.example.com")
        await store.store(["a=1", "b=1; Path=/x/y", "c=1", "d=1; Path=/x", "a=2"], from: origin, path: "/")
        #expect(try await names(store, "https://am.example.com", path: "/x/y/z") == ["b", "d", "a", "c"])
        #expect(await store.cookies(for: origin, path: "/")[0].value == Secret("2"))
    }

    @Test("A cookie ends with its time, and when the server says so")
    func expiry() async throws {
        let store = CookieStore(clock: clock)
        let origin = try Origin("https://am.example.com")
        await store.store(["a=1; Max-Age=60", "b=1", "c=1"], from: origin, path: "/")
        clock.advance(by: 59)
        #expect(try await names(store, "https://am.example.com") == ["a", "b", "c"])
        clock.advance(by: 1)
        #expect(try await names(store, "https://am.example.com") == ["b", "c"])
        await store.store(["b=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], from: origin, path: "/")
        #expect(await store.cookies.map(\.name) == ["c"])
        await store.removeAll()
        #expect(await store.cookies.isEmpty)
    }

    @Test("Only the same host, Domain and path are replaced")
    func identity() async throws {
        let store = CookieStore(clock: clock)
        let origin = try Origin("https://am.example.com")
        await store.store(["a=1", "a=2; Path=/x", "a=3; Domain=am.example.com"], from: origin, path: "/")
        await store.store(["a=4"], from: try Origin("https://ig.example.com"), path: "/")
        #expect(await store.cookies.map { $0.value.reveal() } == ["1", "2", "3", "4"])
        #expect(try await names(store, "https://x.am.example.com") == ["a"])
    }

    @Test("A host has at most fifty cookies, the least used makes room, other hosts lose nothing")
    func bounds() async throws {
        let store = CookieStore(clock: clock)
        let origin = try Origin("https://am.example.com")
        await store.store(["other=1"], from: try Origin("https://ig.example.com"), path: "/")
        await store.store(["first=1; Path=/first"], from: origin, path: "/")
        for index in 0..<49 { await store.store(["c\(index)=1; Path=/c"], from: origin, path: "/") }
        _ = await store.cookies(for: origin, path: "/first")
        await store.store(["last=1; Path=/last"], from: origin, path: "/")
        let names = await store.cookies.map(\.name)
        #expect(names.count == 51)
        #expect(names.contains("first") && names.contains("last") && names.contains("other"))
        #expect(!names.contains("c0"))
    }

    @Test("All hosts together are bounded, and so are the fields of one reply")
    func totalBounds() async throws {
        let store = CookieStore(clock: clock)
        let many = (0..<80).map { "c\($0)=1" }
        for host in 0..<25 { await store.store(many, from: try Origin("https://h\(host).example"), path: "/") }
        #expect(await store.cookies.count == CookieStore.cookiesInAll)
        #expect(try await names(store, "https://h0.example").isEmpty)
        #expect(try await names(store, "https://h24.example").count == CookieStore.cookiesPerHost)
    }

    @Test("Plain HTTP cannot replace or hide a Secure cookie")
    func secureStays() async throws {
        let store = CookieStore(clock: clock)
        await store.store(["a=good; Secure"], from: try Origin("https://am.example.com"), path: "/")
        let plain = try Origin("http://am.example.com")
        let refused = await store.store(["a=evil", "a=evil; Path=/x", "b=fine", "c=x; Secure"], from: plain, path: "/")
        #expect(refused == Array(repeating: WireError(.refused, ""), count: 3))
        #expect(try await names(store, "http://am.example.com", path: "/x") == ["b"])
        #expect(await store.cookies.map { $0.value.reveal() } == ["good", "fine"])
    }

    private func pipeline(
        _ store: CookieStore, origins: [String], setCookies: [String] = []
    ) throws -> (HTTPPipeline, InMemoryTransport) {
        let transport = InMemoryTransport { _ in
            var response = HTTPResponse(status: .ok)
            for setCookie in setCookies { response.headerFields.append(.init(name: .setCookie, value: setCookie)) }
            return HTTPReply(response)
        }
        let middleware = CookieMiddleware(store: store, origins: Set(try origins.map { try Origin($0) }))
        return (HTTPPipeline(transport, layers: [middleware]), transport)
    }

    private func call(_ authority: String, path: String = "/", scheme: String = "https", cookie: String? = nil)
        -> HTTPCall
    {
        var request = HTTPRequest(method: .get, scheme: scheme, authority: authority, path: path)
        request.headerFields[.cookie] = cookie
        return HTTPCall(request)
    }

    @Test("What a call brings that went out before everything was removed is not kept")
    func removedMeanwhile() async throws {
        let store = CookieStore(clock: clock)
        let transport = InMemoryTransport { _ in
            await store.removeAll()
            return HTTPReply(HTTPResponse(status: .ok, headerFields: [.setCookie: "who=ana; Path=/"]))
        }
        let origin = try Origin("https://am.example.com")
        let pipeline = HTTPPipeline(transport, layers: [CookieMiddleware(store: store, origins: [origin])])
        _ = try await pipeline.send(call("am.example.com"))
        #expect(await store.cookies.isEmpty)
    }

    @Test("What one reply sets, the next call to that origin brings, and no other")
    func middleware() async throws {
        let store = CookieStore(clock: clock)
        let (pipeline, transport) = try pipeline(
            store, origins: ["https://am.example.com"],
            setCookies: ["a=1; Path=/json; Domain=am.example.com", "b=2; Path=/json; Secure"])
        _ = try await pipeline.send(call("am.example.com", path: "/json/x?y"))
        _ = try await pipeline.send(call("AM.example.com:443", path: "/json?z"))
        _ = try await pipeline.send(call("am.example.com", path: "/other"))
        _ = try await pipeline.send(call("x.am.example.com", path: "/json"))
        _ = try await pipeline.send(call("am.example.com:8443", path: "/json"))
        _ = try await pipeline.send(call("am.example.com", path: "/json", scheme: "http"))
        let sent = transport.exchanges.map { $0.request.headerFields[.cookie] }
        #expect(sent == [nil, "a=1; b=2", nil, nil, nil, nil])
    }

    @Test("Replies of other origins set nothing")
    func foreignReply() async throws {
        let store = CookieStore(clock: clock)
        let (pipeline, _) = try pipeline(store, origins: ["https://am.example.com"], setCookies: ["a=1"])
        _ = try await pipeline.send(call("evil.example.com"))
        #expect(await store.cookies.isEmpty)
    }

    @Test("A cookie that the call brings wins over the stored one of its name")
    func ownCookie() async throws {
        let store = CookieStore(clock: clock)
        await store.store(["a=stored", "b=stored"], from: try Origin("https://am.example.com"), path: "/")
        let (pipeline, transport) = try pipeline(store, origins: ["https://am.example.com"])
        _ = try await pipeline.send(call("am.example.com", cookie: "a=own; c=own"))
        #expect(transport.exchanges[0].request.headerFields[.cookie] == "a=own; c=own; b=stored")
    }
}
