import AssentCore
import AssentSigningProtocol
import HTTPTypes
import Testing

@testable import AssentServer

@Suite("The table of routes", .server)
struct RouteTableTests {
    private static let every: [HTTPRequest.Method] = [.get, .post, .put, .delete, .patch]

    /// A field that says that no browser sent this for another site.
    private static let requested = [("X-Requested-With", "test")]

    private static let json = RouteTable.json.map(\.rule)
    private static let oauth = RouteTable.oauth.map(\.rule)
    private static let signing = RouteTable.signing.map(\.rule)

    /// The path, with something for what it leaves open.
    private static func address(_ rule: RouteRule) -> String { rule.path.replacing("{id}", with: "none") }

    private static func other(than rule: RouteRule) -> [HTTPRequest.Method] { every.filter { !rule.allows($0) } }

    @Test("No path has two rows, and every row below a realm has an answer of its own")
    func rows() async throws {
        let fixture = try #require(ServerFixture.shared)
        for table in [Self.json, Self.oauth, Self.signing] {
            #expect(Set(table.map(\.path)).count == table.count)
        }
        for rule in Self.json {
            let method = rule.methods?.first ?? .get
            let reply = try await fixture.send(method.rawValue, fixture.json(Self.address(rule)), Self.requested)
            #expect(reply.status != 404 && reply.status != 405, "\(rule.path)")
        }
        let nothing = try await fixture.send("GET", fixture.oauth("none"))
        for rule in Self.oauth {
            let method = rule.methods?.first ?? .get
            let reply = try await fixture.send(method.rawValue, fixture.oauth(Self.address(rule)))
            #expect(reply.text != nothing.text && reply.status != 405, "\(rule.path)")
        }
        let noRoute = try await fixture.send("GET", fixture.signing("device/none")).json["detail"]
        for rule in Self.signing {
            let method = rule.methods?.first ?? .get
            let path = rule.path.replacing("{id}", with: "none")
            let reply = try await fixture.send(method.rawValue, fixture.signing(path), Self.requested)
            // The provider says which container or transaction there is not; a path without a row says less.
            #expect(reply.json["detail"] != noRoute && reply.status != 405, "\(rule.path)")
        }
        for path in ["healthz", "readyz"] {
            #expect(try await fixture.send("GET", fixture.root("/\(path)")).status == 200)
        }
    }

    @Test("Transaction signing has a row for each path that its protocol names, and no other")
    func signingPaths() {
        let named = DeviceCall.allCases.map { "device/\($0.rawValue)" } + IssuerPath.allCases.map(\.rawValue)
        #expect(Set(Self.signing.map(\.path)) == Set(named))
    }

    @Test("Every route below /json refuses the methods that its row does not name", arguments: json)
    func jsonMethods(rule: RouteRule) async throws {
        let fixture = try #require(ServerFixture.shared)
        let session = ServerFixture.session(try await fixture.session("ana"))
        for method in Self.other(than: rule) {
            let reply = try await fixture.send(
                method.rawValue, fixture.json(Self.address(rule)), session + Self.requested)
            #expect(reply.status == 405, "\(method) \(rule.path)")
            #expect(reply.json["message"]?.string?.hasPrefix("Use ") == true)
        }
    }

    @Test("Every route below /signing refuses the methods that its row does not name", arguments: signing)
    func signingMethods(rule: RouteRule) async throws {
        let fixture = try #require(ServerFixture.shared)
        for method in Self.other(than: rule) {
            let path = rule.path.replacing("{id}", with: "none")
            let reply = try await fixture.send(method.rawValue, fixture.signing(path), Self.requested)
            #expect(reply.status == 405, "\(method) \(rule.path)")
            #expect(reply["Allow"] == rule.allow)
        }
    }

    @Test("Every route below /oauth2 refuses the methods that its row does not name", arguments: oauth)
    func oauthMethods(rule: RouteRule) async throws {
        let fixture = try #require(ServerFixture.shared)
        for method in Self.other(than: rule) {
            let reply = try await fixture.send(method.rawValue, fixture.oauth(Self.address(rule)))
            #expect(reply.status == 405, "\(method) \(rule.path)")
            #expect(reply["Allow"] == rule.allow)
        }
    }

    @Test("Every route that asks for a caller refuses nobody, somebody unknown and somebody of another realm")
    func callers() async throws {
        let fixture = try #require(ServerFixture.shared)
        let foreign = ServerFixture.session(try await fixture.session("bob", realm: "beta"))
        var asked = 0
        for rule in Self.json {
            guard case .session(let answer) = rule.caller else { continue }
            asked += 1
            let method = try #require(rule.methods?.first).rawValue
            let url = fixture.json(Self.address(rule))
            #expect(try await fixture.send(method, url, Self.requested).status == 401, "\(rule.path)")
            let unknown = ServerFixture.session("nobody") + Self.requested
            #expect(try await fixture.send(method, url, unknown).status == 401, "\(rule.path)")
            let reply = try await fixture.send(method, url, foreign + Self.requested)
            #expect(reply.status == (answer == .forbidden ? 403 : 401), "\(rule.path)")
        }
        #expect(asked == 13)
        let tokens = try await fixture.tokens(session: try await fixture.signIn())
        for rule in Self.oauth where rule.caller == .accessToken {
            let method = try #require(rule.methods?.first).rawValue
            let here = fixture.oauth(Self.address(rule))
            #expect(try await fixture.send(method, here).status == 401)
            #expect(try await fixture.send(method, here, ServerFixture.bearer("x")).status == 401)
            let elsewhere = fixture.oauth(Self.address(rule), realm: "beta")
            #expect(try await fixture.send(method, elsewhere, ServerFixture.bearer(tokens.access)).status == 401)
            // A link is for installations of an app that has links.
            let status = rule.door == .webLink ? 403 : 200
            #expect(try await fixture.send(method, here, ServerFixture.bearer(tokens.access)).status == status)
        }
        let form = [("Content-Type", "application/x-www-form-urlencoded")]
        for rule in Self.oauth where rule.caller == .client {
            let reply = try await fixture.send(
                "POST", fixture.oauth(Self.address(rule)), form, text: "client_id=nobody&token=x")
            let status = rule.path == "introspect" ? 401 : 400
            #expect(reply.status == status && reply.json["error"] == "invalid_client", "\(rule.path)")
        }
    }

    @Test("No route reads a body that is larger than its row says", arguments: json + oauth)
    func bodies(rule: RouteRule) async throws {
        let fixture = try #require(ServerFixture.shared)
        // What shows nothing is refused unread there.
        guard rule.bodyLimit > 0, rule.allows(.post) else { return }
        let session = ServerFixture.session(try await fixture.session("ana")) + Self.requested
        let url =
            Self.json.contains(rule) ? fixture.json(rule.path + "?_action=evaluate") : fixture.oauth(Self.address(rule))
        // userinfo looks at a form only: a token may be in it.
        let type = rule.caller == .accessToken ? "application/x-www-form-urlencoded" : "application/json"
        let reply = try await fixture.send(
            "POST", url, session + [("Content-Type", type)],
            body: [UInt8](repeating: 0x20, count: rule.bodyLimit + 1))
        // The token of a link's request is in its header: without one the body is not read.
        #expect(reply.status == (rule.door == .webLink ? 401 : 413), "\(rule.path)")
    }

    @Test("Pages of other origins may read exactly the answers that the rows say", arguments: oauth)
    func crossOrigin(rule: RouteRule) async throws {
        let fixture = try #require(ServerFixture.shared)
        let origin = [("Origin", "https://app.example")]
        let method = try #require(rule.methods?.first).rawValue
        let reply = try await fixture.send(method, fixture.oauth(Self.address(rule)), origin)
        #expect(reply["Access-Control-Allow-Origin"] == (rule.crossOrigin == .everyOrigin ? "*" : nil))
        let preflight = try await fixture.send("OPTIONS", fixture.oauth(Self.address(rule)), origin)
        #expect(preflight.status == (rule.crossOrigin == .everyOrigin ? 204 : 405))
    }
}
