import AssentCore
import AssentEngine
import HTTPTypes
import Testing

@testable import AssentServer

@Suite("Routes and header fields of the gateway at their bounds")
struct GatewayBoundTests {
    private static func route(_ path: String, audience: [String] = []) -> GatewayRoute {
        GatewayRoute(
            name: path, path: path, upstream: .init(["http://127.0.0.1:1"]), access: .everybody, scopes: ["read"],
            audience: audience, isSenderConstrained: path == "/bound")
    }

    private static func fields(_ pairs: [(String, String)]) throws -> HTTPFields {
        var fields = HTTPFields()
        for (name, value) in pairs { fields.append(.init(name: try #require(HTTPField.Name(name)), value: value)) }
        return fields
    }

    @Test(
        "A route answers its own path and what is below it, not one that only begins like it",
        arguments: [
            ("/pay", "/pay"), ("/pay/", "/pay"), ("/pay/x/y", "/pay"), ("/PAY/X", "/pay"), ("/payments", "/"),
            ("/pay.x", "/"), ("/pay;x", "/"), ("/pa", "/"), ("/", "/"), ("/pay/admin", "/pay/Admin"),
            ("/pay/ADMIN/x", "/pay/Admin"), ("/pay/administrators", "/pay"), ("/x/pay", "/"),
        ])
    func paths(path: String, name: String) {
        let routes = [Self.route("/"), Self.route("/pay"), Self.route("/pay/Admin")]
        for routes in [routes, routes.reversed()] {
            #expect(GatewayRoute.answering(path, of: routes)?.name == name)
        }
        #expect((GatewayRoute.answering(path, of: [routes[1]]) != nil) == name.hasPrefix("/pay"))
    }

    @Test("Two routes are rivals if they answer the same paths, in upper case as in lower")
    func rivals() {
        #expect(Self.route("/pay").isRival(of: Self.route("/Pay")))
        #expect(!Self.route("/pay").isRival(of: Self.route("/pays")))
        #expect(!Self.route("/pay").isRival(of: Self.route("/")))
    }

    @Test("A route without an audience of its own takes the gateway's and the issuer's tokens, and else its own alone")
    func requirement() {
        let usual = Self.route("/pay").requirement(origin: "https://api.bank.example")
        #expect(usual.audience == ["https://api.bank.example"] && usual.includesIssuer && usual.scopes == ["read"])
        #expect(!usual.isSenderConstrained)
        let own = Self.route("/bound", audience: ["a", "b"]).requirement(origin: "https://api.bank.example")
        #expect(own.audience == ["a", "b"] && !own.includesIssuer && own.isSenderConstrained)
    }

    @Test(
        "No route can let a field of one hop pass, or one that the gateway says or reads itself",
        arguments: [
            "Connection", "Keep-Alive", "HTTP2-Settings", "Proxy-Authenticate", "Proxy-Authorization",
            "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length", "Host", "Expect",
            "X-Remote-User", "Forwarded", "Via", "X-TxID", "X-IDToken", "X-Authenticate-Response", "DPoP",
            "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Anything", "Authorization",
            "X_Custom", "x_",
        ])
    func impassable(name: String) throws {
        for name in [name, name.uppercased(), name.lowercased()] {
            #expect(!ForwardedFields.canPass(try #require(HTTPField.Name(name))), "\(name)")
        }
    }

    @Test(
        "A service's fields of one hop end at the gateway",
        arguments: [
            "Keep-Alive", "HTTP2-Settings", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "TE",
            "Trailer", "Transfer-Encoding", "Upgrade", "Host", "Expect",
        ])
    func reply(name: String) throws {
        let cookie = SessionCookie(name: "iPlanetDirectoryPro")
        let reply = ForwardedFields.reply(try Self.fields([(name, "x"), ("X-A", "1")]), cookie: cookie)
        #expect(reply.map(\.value) == ["1"])
    }

    @Test("What Connection names ends here in both directions, in any case and with blanks around it")
    func named() throws {
        let cookie = SessionCookie(name: "iPlanetDirectoryPro")
        let sent = try Self.fields([
            ("Connection", "keep-alive"), ("Connection", " close\t, \tX-CUSTOM ,accept"), ("X-Custom", "hop"),
            ("Accept", "hop"), ("Accept-Language", "de"),
        ])
        let forwarded = ForwardedFields.request(
            sent, .init(cookie: cookie, keepsAuthorization: false, passes: ["x-custom"]), user: nil,
            idempotencyKey: nil, publicOrigin: try Origin("https://api.bank.example"))
        #expect(!forwarded.contains { $0.value == "hop" })
        #expect(forwarded.contains { $0.value == "de" })
        #expect(ForwardedFields.reply(sent, cookie: cookie).map(\.value) == ["de"])
    }

    @Test("Without a user nobody is named, and without an address none is told")
    func unnamed() throws {
        let origin = try Origin("https://api.bank.example:8443")
        let rules = ForwardedFields.Rules(cookie: SessionCookie(name: "c"), keepsAuthorization: false)
        let bare = ForwardedFields.request([:], rules, user: nil, idempotencyKey: nil, publicOrigin: origin)
        #expect(bare.map(\.name.canonicalName).sorted() == ["via", "x-forwarded-host", "x-forwarded-proto"])
        let whole = ForwardedFields.request(
            [:], rules, user: "ana", idempotencyKey: "id", publicOrigin: origin, client: "192.0.2.7")
        let values = Dictionary(uniqueKeysWithValues: whole.map { ($0.name.canonicalName, $0.value) })
        #expect(
            values == [
                "via": "1.1 assent", "x-forwarded-for": "192.0.2.7", "x-forwarded-proto": "https",
                "x-forwarded-host": "api.bank.example:8443", "x-remote-user": "ana", "idempotency-key": "id",
            ])
    }
}
