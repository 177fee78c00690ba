import AssentCore
import HTTPTypes
import Testing

@testable import AssentServer

@Suite("Header fields across the gateway")
struct ForwardedFieldsTests {
    private let cookie = SessionCookie(name: "iPlanetDirectoryPro")

    private func fields(_ pairs: [(String, String)]) throws -> HTTPFields {
        var fields = HTTPFields()
        for (name, value) in pairs { fields.append(.init(name: try #require(HTTPField.Name(name)), value: value)) }
        return fields
    }

    private func forward(
        _ pairs: [(String, String)], keepsAuthorization: Bool = false, user: String? = "ana", key: String? = nil
    ) throws -> HTTPFields {
        ForwardedFields.request(
            try fields(pairs),
            .init(
                cookie: cookie, keepsAuthorization: keepsAuthorization, passes: ["x-custom"],
                strips: ["x-employee", "prefer"]),
            user: user, idempotencyKey: key, publicOrigin: try Origin("https://api.bank.example"))
    }

    @Test(
        "What could make the service believe another caller, method or URL does not go on",
        arguments: [
            "X-Remote-User", "x-remote-user", "X_Remote_User", "Remote-User", "X-HTTP-Method-Override",
            "X-Method-Override", "X-Original-URL", "X-Rewrite-URL", "Forwarded", "X-Forwarded-For", "X-TxID",
            "X-Authenticate-Response", "iPlanetDirectoryPro", "Authorization", "Proxy-Authorization",
            "Transfer-Encoding", "Connection", "TE", "Upgrade", "Expect", "X-Forwarded-Email", "X-Forwarded-Groups",
            "X-Forwarded-Preferred-Username", "X-Forwarded-Client-Cert", "X-Forwarded-Prefix", "X-Forwarded-Uri",
            "X-Forwarded-Method", "X-Auth-Request-User", "X-Auth-Request-Email", "X-Webauth-User",
            "X-SSL-Client-Verify",
            "X-SSL-Client-S-DN", "Client-Cert", "Client-Cert-Chain", "X-Original-Host", "X-Client-IP", "Remote-Groups",
            "X-Remote-Group", "X-Amzn-Oidc-Data", "X-Goog-IAP-JWT-Assertion", "X-MS-CLIENT-PRINCIPAL-NAME", "X-User",
            "X-User-Id", "X-Userinfo", "X-Email", "X-Real-IP", "True-Client-IP", "CF-Connecting-IP", "X-Employee",
            "Prefer", "X-Auth-User", "SM-User", "SM_USER", "SM-UserDN", "X-Proxy-User", "X-Token-User-Name",
            "X-Token-Subject", "X-Authentik-Username", "X-Pomerium-Claim-Email", "Kong-User", "X-Consumer-Username",
            "X-WEBAUTH-USER", "OIDC-CLAIM-sub", "HTTP-OIDC-sub", "Uid", "Mail", "Eppn", "Shib-Session-Id", "User",
            "From", "X-Ldap-User", "X-Grafana-User", "X-Plex-User", "X-Login", "X-Account-Id", "X-Tenant", "X-Role",
            "Cf-Access-Jwt-Assertion", "X-JWT-Assertion", "X-Api-Key", "X-Auth-Token", "DPoP", "Via", "X-Anything",
            "SOAPAction",
        ])
    func dropped(name: String) throws {
        let forwarded = try forward([(name, "evil"), ("Accept", "*/*")], user: nil)
        #expect(!forwarded.contains { $0.value == "evil" })
        #expect(forwarded[.accept] == "*/*")
    }

    @Test(
        "What says nothing about the caller goes on",
        arguments: [
            "Content-Type", "Content-Language", "Accept-Language", "User-Agent", "X-Request-Id", "X-Requested-With",
            "X-CSRF-Token", "Sec-Fetch-Mode", "X-Custom", "Traceparent", "Range", "If-Match", "Origin", "Referer",
            "Cache-Control",
        ])
    func kept(name: String) throws {
        let field = try #require(HTTPField.Name(name))
        #expect(try forward([(name, "kept")], user: nil)[field] == "kept")
    }

    @Test(
        "A route cannot let pass what only the gateway says, what is for one hop, or what makes another request of it",
        arguments: [
            "X-HTTP-Method-Override", "x-http-method", "X-Method-Override", "X-Original-URL", "X-Rewrite-Url",
            "X-Remote-User", "X-Forwarded-For", "Forwarded", "Via", "X-TxID", "Connection", "Host", "Transfer-Encoding",
            "Authorization", "X_Custom", "DPoP",
        ])
    func impassable(name: String) throws {
        #expect(!ForwardedFields.canPass(try #require(HTTPField.Name(name))))
        #expect(ForwardedFields.canPass(try #require(HTTPField.Name("X-Custom"))))
    }

    @Test("Nobody can take the media type away from a body")
    func mediaType() throws {
        #expect(try forward([("Connection", "content-type"), ("Content-Type", "a/b")])[.contentType] == "a/b")
    }

    @Test("A field that Connection names is of this hop only")
    func connectionNamed() throws {
        let forwarded = try forward([("Connection", "close, X-Hop"), ("X-Hop", "evil"), ("X-Custom", "kept")])
        #expect(!forwarded.contains { $0.value == "evil" })
        #expect(forwarded.contains { $0.value == "kept" })
    }

    @Test("The gateway says who the user is, even when Connection tried to remove it")
    func user() throws {
        let forwarded = try forward([("X-Remote-User", "eve"), ("Connection", "x-remote-user")])
        #expect(forwarded[values: ForwardedFields.remoteUser] == ["ana"])
        #expect(forwarded[try #require(HTTPField.Name("X-Forwarded-Host"))] == "api.bank.example")
    }

    @Test("Authorization stays where the route keeps it")
    func authorization() throws {
        #expect(try forward([("Authorization", "Bearer x")], keepsAuthorization: true)[.authorization] == "Bearer x")
    }

    @Test("A proof stays here, also where the route keeps Authorization")
    func proof() throws {
        let forwarded = try forward(
            [("Authorization", "DPoP x"), ("DPoP", "a.b.c"), ("DPOP", "d.e.f")], keepsAuthorization: true)
        #expect(forwarded[.authorization] == "DPoP x")
        #expect(forwarded[values: .dpop].isEmpty)
    }

    @Test(
        "A service's nonces and challenges for proofs end here, and its other challenges go on",
        arguments: [
            (#"DPoP error="use_dpop_nonce",algs="ES256""#, nil), ("dpop", nil), ("DPoP x=\"", nil),
            (#"Bearer realm="a", DPoP algs="ES256""#, #"Bearer realm="a""#),
            (
                #"dPoP algs="ES256", Basic realm="b, c", Digest nonce="n", qop="auth""#,
                #"Basic realm="b, c", Digest nonce="n",qop="auth""#
            ),
            (#"Basic realm="DPoP", charset="UTF-8""#, #"Basic realm="DPoP", charset="UTF-8""#),
            (#"Basic realm="x""#, #"Basic realm="x""#), ("not, \" readable", "not, \" readable"),
        ] as [(String, String?)])
    func serviceProofs(challenge: String, kept: String?) throws {
        let reply = ForwardedFields.reply(
            try fields([("WWW-Authenticate", challenge), ("DPoP-Nonce", "n"), ("dpop-nonce", "m"), ("X-A", "1")]),
            cookie: cookie)
        #expect(reply[values: .wwwAuthenticate] == (kept.map { [$0] } ?? []))
        #expect(reply[values: .dpopNonce].isEmpty)
        #expect(reply.contains { $0.value == "1" })
    }

    @Test("On a bound route the idempotency key is the transaction's, not the client's")
    func idempotencyKey() throws {
        let name = HTTPField.Name.idempotencyKey
        #expect(try forward([("Idempotency-Key", "mine")], key: "tx-1")[values: name] == ["tx-1"])
        #expect(try forward([("Idempotency-Key", "mine")])[values: name] == ["mine"])
    }

    @Test("The session cookie is taken out, the others stay")
    func cookies() throws {
        let forwarded = try forward([
            ("Cookie", "a=1; iPlanetDirectoryPro=secret"), ("Cookie", "iPlanetDirectoryPro=x"),
        ])
        #expect(forwarded[values: .cookie] == ["a=1"])
    }

    @Test(
        "However the cookies are cut, none carries the session's token on",
        arguments: [
            "a=\u{600}; iPlanetDirectoryPro=secret", "a=1;iPlanetDirectoryPro=secret", "iPlanetDirectoryPro=secret;",
            "\tiPlanetDirectoryPro =secret", "=iPlanetDirectoryPro=secret", "a=\u{37E} iPlanetDirectoryPro=secret",
            " = iPlanetDirectoryPro=secret", "a=x\u{301};iPlanetDirectoryPro=secret",
            "iPlanetDirectoryPro\u{301}=secret",
        ])
    func hiddenCookies(text: String) throws {
        let forwarded = try forward([("Cookie", text), ("Cookie", "b=2")])
        #expect(!forwarded[values: .cookie].joined().contains("secret"))
        #expect(forwarded[values: .cookie].last == "b=2")
    }

    @Test(
        "A service cannot set the session cookie in disguise",
        arguments: [
            "=iPlanetDirectoryPro=evil", " = iPlanetDirectoryPro=evil", "iPlanetDirectoryPro", "evil", "",
            "=evil; Path=/", "a=\u{37E} iPlanetDirectoryPro=evil", "iPlanetDirectoryPro=\u{600}; Path=/",
        ])
    func disguised(text: String) throws {
        #expect(ForwardedFields.reply(try fields([("Set-Cookie", text)]), cookie: cookie).isEmpty)
    }

    @Test("A service cannot set the session cookie, and its fields of one hop end here")
    func reply() throws {
        let reply = ForwardedFields.reply(
            try fields([
                ("Set-Cookie", "iPlanetDirectoryPro=evil; Path=/"), ("Set-Cookie", "a=1"), ("Connection", "X-Hop"),
                ("X-Hop", "1"), ("Content-Length", "3"), ("Transfer-Encoding", "chunked"),
            ]), cookie: cookie)
        #expect(reply[values: .setCookie] == ["a=1"])
        #expect(reply.map(\.name.canonicalName).sorted() == ["content-length", "set-cookie"])
    }
}
