import AssentCore
import AssentJourney
import AssentTesting
import Foundation
import HTTPTypes
import Testing

@Suite struct RequestTests {
    let session = Session(token: Secret("S3SS10N"))

    @Test("Starting a journey is the request that AM expects")
    func start() async throws {
        let transport = script([step([name])])
        _ = try await client(transport).start("Log in & out")
        let sent = try #require(transport.exchanges.first)
        #expect(sent.request.method == .post)
        #expect(sent.url == "\(authenticate)?authIndexType=service&authIndexValue=Log%20in%20%26%20out")
        #expect(sent.text == "{}")
        #expect(sent.field("Accept-API-Version") == "resource=2.1,protocol=1.0")
        #expect(sent.field("X-Requested-With") != nil)
        #expect(sent.field("Content-Type") == "application/json")
        #expect(sent.field("iPlanetDirectoryPro") == nil)
        #expect(sent.field("Cookie") == nil)
    }

    @Test("Options go into the query only when they are true, and the session into a header named like the cookie")
    func options() async throws {
        let transport = script([step([name])])
        let options = JourneyOptions(
            forceAuth: true, noSession: true, parameters: [FormItems.Item("locale", "de CH")])
        let first = try await client(transport).start("Login", options: options, session: session)
        _ = try await client(transport).next(try #require(first.step))
        #expect(
            transport.exchanges[0].url
                == "\(authenticate)?authIndexType=service&authIndexValue=Login&ForceAuth=true&noSession=true&locale=de%20CH"
        )
        #expect(transport.exchanges[1].url == "\(authenticate)?noSession=true")
        #expect(transport.exchanges.map { $0.field("iPlanetDirectoryPro") } == ["S3SS10N", "S3SS10N"])
    }

    @Test("An empty session is no session")
    func emptySession() async throws {
        let transport = script([step([name])])
        _ = try await client(transport).start("Login", session: Session(token: Secret("")))
        #expect(transport.exchanges[0].field("iPlanetDirectoryPro") == nil)
    }

    @Test("The options of one run do not leak into another")
    func noLeak() async throws {
        let transport = script([step([name])])
        let client = try client(transport)
        let first = await client.start("A", options: JourneyOptions(noSession: true), session: session).step
        let second = await client.start("B").step
        _ = await client.next(try #require(second))
        _ = await client.next(try #require(first))
        #expect(transport.exchanges[2].url == authenticate)
        #expect(transport.exchanges[2].field("iPlanetDirectoryPro") == nil)
        #expect(transport.exchanges[3].url == "\(authenticate)?noSession=true")
    }

    @Test("An advice starts its journey as composite advice, and the answers carry no authIndex")
    func advice() async throws {
        let transport = script([step([name]), success])
        let client = try client(transport)
        let node = await client.start(advice: try Advice(transactionID: "7b8b-1"), session: session)
        _ = await client.next(try #require(node.step))
        #expect(
            transport.exchanges[0].url == authenticate
                + "?authIndexType=composite_advice&authIndexValue=%3CAdvices%3E%3CAttributeValuePair%3E%3CAttribute%20name%3D%22TransactionConditionAdvice%22%2F%3E%3CValue%3E7b8b-1%3C%2FValue%3E%3C%2FAttributeValuePair%3E%3C%2FAdvices%3E"
        )
        #expect(transport.exchanges[1].url == authenticate)
    }

    @Test("A suspended journey is resumed by its id alone, whatever else the link says")
    func resume() async throws {
        let transport = script([step([name])])
        let link = "https://evil.example/x?authIndexValue=Evil&suspendedId=ab%2Bc#f"
        _ = try await client(transport).resume(link)
        #expect(transport.exchanges[0].url == "\(authenticate)?suspendedId=ab%2Bc")
    }

    @Test(
        "A link without one id is refused before anything is sent",
        arguments: ["https://a/?x=1", "https://a/", "", "https://a/?suspendedId=", "x?suspendedId=a&suspendedId=b"])
    func badLink(link: String) async throws {
        let transport = script([success])
        #expect(try await client(transport).resume(link).failure?.code == .invalidResumeURL)
        #expect(transport.exchanges.isEmpty)
    }

    @Test(
        "Everything that came goes back in its place: unknown callbacks, unknown members, numbers as they were written")
    func echo() async throws {
        let body = #"""
            {"authId":"A.1","template":"","stage":"S","header":"H","description":"D","x":[1.0,{"y":null}],"callbacks":[{"type":"TextOutputCallback","output":[{"name":"message","value":"m"},{"name":"messageType","value":"4"}]},{"type":"NewCallback","output":[],"input":[{"name":"IDToken2a","value":1.50},{"name":"IDToken2b","value":{"z":1,"a":2}}],"_id":7,"q":true},{"type":"MetadataCallback","output":[{"name":"data","value":{"k":1}}]},{"type":"NameCallback","output":[{"name":"prompt","value":"N"}],"input":[{"name":"IDToken4","value":""}],"_id":3}]}
            """#
        let transport = script([HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(body)), success])
        let client = try client(transport)
        var step = try #require(await client.start("Login").step)
        #expect(step.stage == "S" && step.header == "H" && step.description == "D")
        step[NameCallback.self]?.name = "Zoë 😀\u{202E}\""
        _ = await client.next(step)
        let expected = body.replacingOccurrences(
            of: #"{"name":"IDToken4","value":""}"#, with: #"{"name":"IDToken4","value":"Zoë 😀\#u{202E}\""}"#)
        #expect(transport.exchanges[1].text == expected)
    }

    @Test("A step is sent once, however often and however quickly next is called")
    func once() async throws {
        let transport = script([step([name]), success])
        let client = try client(transport)
        let first = try #require(await client.start("Login").step)
        let nodes = await withTaskGroup(of: JourneyNode.self) { group in
            for _ in 0..<100 { group.addTask { await client.next(first) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(transport.exchanges.count == 2)
        #expect(nodes.count { $0.session != nil } == 1)
        #expect(nodes.count { $0.failure?.code == .stepInUse } == 99)
    }

    @Test("After a failure without reply, or where the server says later, the same step may be sent again")
    func again() async throws {
        let count = Locked(0)
        let transport = InMemoryTransport { _ in
            switch count.withLock({
                $0 += 1; return $0
            }) {
            case 1: return step([name])
            case 2: throw HTTPTransportError(.connectFailed, "offline")
            case 3: return .json(503, ["message": "busy"])
            case 4: return .json(429, ["message": "later"])
            case 5: return .json(408, ["message": "too slow"])
            default: return success
            }
        }
        let client = try client(transport)
        let first = try #require(await client.start("Login").step)
        #expect(await client.next(first).failure?.code == .transport)
        for status in [503, 429, 408] { #expect(await client.next(first).error?.status == status) }
        #expect(await client.next(first).session != nil)
        #expect(await client.next(first).failure?.code == .stepInUse)
    }

    @Test(
        "A configuration that cannot work is refused",
        arguments: [
            ("am.example.com", "/", "c"), ("https://u:p@am.example.com", "/", "c"), ("https://a/am?x", "/", "c"),
            ("https://a/am#x", "/", "c"), ("https://a/am", "..", "c"), ("https://a/am", "a\nb", "c"),
            ("https://a/am", "/", "a b"), ("https://a/am", "/", ""), ("ftp://a", "/", "c"),
        ])
    func configuration(server: String, realm: String, cookie: String) {
        #expect(throws: JourneyFailure(.invalidConfiguration, "")) {
            try JourneyConfiguration(server: server, realm: realm, sessionCookieName: cookie)
        }
    }
}

@Suite struct RealmTests {
    @Test(
        "A realm has one path, however it is written",
        arguments: [
            ("", "realms/root"), ("/", "realms/root"), ("root", "realms/root"), ("foo", "realms/root/realms/foo"),
            ("root/foo", "realms/root/realms/foo"), ("foo/bar", "realms/root/realms/foo/realms/bar"),
            ("/foo/baz/", "realms/root/realms/foo/realms/baz"),
            (" / foo / baz / ", "realms/root/realms/foo/realms/baz"),
            ("root/realms/foo", "realms/root/realms/foo"), ("realms/root/realms/foo", "realms/root/realms/foo"),
            ("root/realms/a/realms/b", "realms/root/realms/a/realms/b"), ("a b", "realms/root/realms/a%20b"),
            ("a/realms/b", "realms/root/realms/a/realms/b"), ("realms/a/realms/b", "realms/root/realms/a/realms/b"),
            ("a/realms/b/realms/c", "realms/root/realms/a/realms/b/realms/c"),
            ("a/realms/b/c", "realms/root/realms/a/realms/realms/realms/b/realms/c"),
        ])
    func paths(text: String, path: String) throws {
        #expect(try JourneyRealm(text).path == path)
    }

    @Test("The recorded vectors hold", .enabled(if: fixtures != nil))
    func vectors() throws {
        let vectors = try #require(try fixture("js/url-realm-vectors.json")["realmUrlPath"]?.array)
        for vector in vectors {
            let pair = try #require(vector.array)
            #expect(try JourneyRealm(pair[0].string ?? "").path == pair[1].string)
        }
    }
}
