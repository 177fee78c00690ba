import AssentAuthorization
import AssentCore
import AssentJourney
import AssentTesting
import HTTPTypes
import Testing

/// One of the vendor's tests of a call that gets an advice, by its number there: what the resource answers first, and
/// what comes of it. Every later answer is 201.
struct VendorCall: Sendable, CustomTestStringConvertible {
    let name: String
    let first: @Sendable () throws -> HTTPReply
    /// The paths that the resource is asked for.
    let paths: [String]
    let status: Int

    var testDescription: String { name }

    init(_ name: String, _ paths: [String], _ status: Int, _ first: @escaping @Sendable () throws -> HTTPReply) {
        (self.name, self.paths, self.status, self.first) = (name, paths, status, first)
    }

    private static let plain = "/transfers"
    private static let paid = "/transfers?_txid=\(txid)"

    private static func location(_ value: String, goto: String = "\(api)/transfers") -> String {
        "\(am)/?goto=\(goto)&realm=/&authIndexType=composite_advice&authIndexValue=\(value)"
    }

    private static func redirect(_ location: String, status: Int = 307) -> HTTPReply {
        HTTPReply(HTTPResponse(status: .init(code: status), headerFields: [.location: location]))
    }

    private static func transaction(_ encoding: Advice.RedirectEncoding) throws -> HTTPReply {
        redirect(
            try Advice(transactionID: txid)
                .redirectLocation(server: am, goto: "\(api)/transfers", realm: "/", encoding: encoding))
    }

    private static func header(_ parameters: String) -> HTTPReply {
        HTTPReply(HTTPResponse(status: .unauthorized, headerFields: [.wwwAuthenticate: "SSOADVICE \(parameters)"]))
    }

    private static let map = Base64URL.encode(Array(#"{"TransactionConditionAdvice":["\#(txid)"]}"#.utf8))

    static let rows: [VendorCall] = [
        VendorCall("Advice txn", [plain, paid], 201) { try transaction(.xml) },
        VendorCall("Advice svc", [plain, plain], 201) {
            redirect(
                try Advice(tree: "Confirm", realm: "/")
                    .redirectLocation(server: am, goto: "\(api)/transfers", realm: "/"))
        },
        VendorCall("Advice none", [plain], 307) {
            redirect("\(am)/?goto=https%3A%2F%2Fapi.bank.example%2Ftransfers&authIndexType=composite_advice")
        },
        VendorCall("Advice broken", [plain], 307) {
            redirect(location("%3CAdvices%3E%3CAttributeValuePair%3E"))
        },
        VendorCall("Advice b64", [plain, paid], 201) {
            redirect(
                location(
                    CompositeAdvice.base64URL(try Advice(transactionID: txid)),
                    goto: "https://api.bank.example/transfers?_txid%ca267811"))
        },
        VendorCall("Advice header", [plain, paid], 201) {
            header(#"realm="/",am_uri="\#(am)",advices="\#(map)""#)
        },
        VendorCall("AuthPolicy09", [plain], 307) { HTTPReply(HTTPResponse(status: .temporaryRedirect)) },
        VendorCall("AuthPolicy11", [plain], 302) {
            redirect(
                try Advice(transactionID: txid)
                    .redirectLocation(server: am, goto: "\(api)/transfers", realm: "/"), status: 302)
        },
        VendorCall("AuthPolicy13", [plain], 204) { HTTPReply(HTTPResponse(status: .noContent)) },
        VendorCall("AuthPolicy16", [plain, paid], 201) { try transaction(.base64URL) },
        VendorCall("scheme directly before advices", [plain, paid], 201) {
            header(#"advices="\#(map)",realm="/",am_uri="\#(am)""#)
        },
        VendorCall("white space and commas", [plain, paid], 201) {
            header(#" realm="a, b" ,  am_uri="\#(am)" ,\#tadvices="\#(map)""#)
        },
        VendorCall("a second challenge", [plain, paid], 201) {
            header(#"realm="/",advices="\#(map)",am_uri="\#(am)", Bearer realm="x, y""#)
        },
    ]
}

@Suite("The vendor's own tests of calls, by their numbers") struct VendorCallTests {
    /// A bank whose first answer is this one.
    private func world(_ first: @escaping @Sendable () throws -> HTTPReply) -> World {
        let world = World()
        let isFirst = Locked(true)
        world.change {
            $0.states = false
            $0.gateway = { _ in
                let answersFirst = isFirst.withLock { isFirst in
                    defer { isFirst = false }
                    return isFirst
                }
                return try answersFirst ? first() : .json(201, ["done": true])
            }
        }
        return world
    }

    @Test("The resource is asked for these paths, and the app gets this reply, once", arguments: VendorCall.rows)
    func row(_ row: VendorCall) async throws {
        let world = world(row.first)
        let reply = try await world.client().send(try post(), approve: agree)
        #expect(reply.status == row.status)
        #expect(world.calls.map(\.url) == row.paths.map { api + $0 })
        // What is repeated is the same request.
        #expect(Set(world.calls.map(\.text)) == [transfer])
        #expect(world.steps.isEmpty == (row.paths.count == 1))
        if row.paths.count == 1 {
            let first = try row.first()
            #expect(reply.response.headerFields == first.response.headerFields)
            #expect(reply.authorization == .notAsked)
        }
    }

    @Test("AuthPolicy04: the id is the only item of a query, or the last one, and the others stay")
    func placed() async throws {
        for (path, sent) in [
            ("/transfers", "/transfers?_txid=\(txid)"), ("/transfers?a=1&b=%20", "/transfers?a=1&b=%20&_txid=\(txid)"),
        ] {
            let world = world { World.header(txid) }
            #expect(try await world.client().send(try post(path), approve: agree).status == 201)
            #expect(world.calls.map(\.url) == [api + path, api + sent])
        }
    }

    @Test("AuthPolicy05 and 06: decorate places an id in a field and leaves the URL; without an id it is not asked")
    func decorated() async throws {
        let asked = Locked<[String]>([])
        var policy = try AuthorizationPolicy("\(api)/", approve: agree)
        policy.decorate = { call, id in
            asked.withLock { $0.append(id) }
            call.request.headerFields[try #require(HTTPField.Name("transactionId"))] = id
        }
        let bank = world { World.header(txid) }
        #expect(try await bank.client(policies: [policy]).send(try post()).status == 201)
        #expect(bank.calls.map(\.url) == ["\(api)/transfers", "\(api)/transfers"])
        #expect(bank.calls.map { $0.field("transactionId") } == [nil, txid])
        #expect(asked.withLock { Set($0) } == [txid])

        asked.withLock { $0 = [] }
        let other = world { World.header(advices: ["AuthenticateToServiceConditionAdvice": ["/:Confirm"]]) }
        #expect(try await other.client(policies: [policy]).send(try post()).status == 201)
        #expect(other.calls.map(\.url) == ["\(api)/transfers", "\(api)/transfers"])
        #expect(other.calls.allSatisfy { $0.field("transactionId") == nil } && asked.withLock { $0.isEmpty })
    }

    @Test("AuthPolicy12 and 15: where a reply has no advice of a known form, the policy's recogniser is asked once")
    func recognised() async throws {
        for first in [
            { HTTPReply(HTTPResponse(status: .temporaryRedirect, headerFields: [.location: "/elsewhere"])) },
            { HTTPReply(HTTPResponse(status: .forbidden), body: HTTPBody("not JSON")) },
        ] as [@Sendable () -> HTTPReply] {
            let asked = Locked(0)
            var policy = try AuthorizationPolicy("\(api)/", approve: agree)
            policy.recognise = { reply in
                guard reply.status != 201 else { return nil }
                asked.withLock { $0 += 1 }
                return try Advice(transactionID: txid)
            }
            let world = world(first)
            #expect(try await world.client(policies: [policy]).send(try post()).status == 201)
            #expect(asked.withLock { $0 } == 1)
            #expect(world.calls.map(\.url) == ["\(api)/transfers", "\(api)/transfers?_txid=\(txid)"])
        }
    }

    @Test("AuthPolicy07 and 08: with nobody to ask, and with a no, nothing is repeated; a yes repeats it")
    func answers() async throws {
        let nobody = world { World.header(txid) }
        await #expect(throws: AuthorizationError.like(.approvalNeeded)) { try await nobody.client().send(try post()) }
        let no = world { World.header(txid) }
        await #expect(throws: AuthorizationError.like(.declined)) {
            try await no.client().send(try post()) { _ in .decline }
        }
        #expect(nobody.calls.count == 1 && no.calls.count == 1)
        let yes = world { World.header(txid) }
        #expect(try await yes.client().send(try post(), approve: agree).status == 201)
        #expect(yes.calls.count == 2)
    }

    @Test("AuthPolicy02: a policy is for its path with any query, and for no other path, host, port or scheme")
    func listed() async throws {
        for (url, isListed) in [
            ("\(api)/transfers", true), ("\(api)/transfers?x=1", true), ("\(api):443/transfers", true),
            ("\(api)/other", false), ("https://other.example/transfers", false), ("\(api):8443/transfers", false),
            ("http://api.bank.example/transfers", false),
        ] {
            let asked = Locked(0)
            let policy = try AuthorizationPolicy("\(api)/transfers") { approval in
                asked.withLock { $0 += 1 }
                return agree(&approval)
            }
            let world = world { World.header(txid) }
            let call = HTTPCall(
                try HTTPRequest(.post, url: url, headerFields: [.contentType: "application/json"]),
                body: HTTPBody(transfer))
            _ = try? await world.client(policies: [policy]).send(call)
            #expect((asked.withLock { $0 } > 0) == isListed, "\(url)")
        }
    }
}
