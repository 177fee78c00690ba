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
            try fields(pairs), cookie: cookie, keepsAuthorization: keepsAuthorization, user: user, idempotencyKey: key,
            publicOrigin: try Origin("https://api.bank.example"))
    }

    @Test(
        "What could make the service believe another caller, method or URL does not go on",
        arguments: [
            "X-Remote-User", "x-remote-user", "X_Remote_User", "Remote-User", "X-HTTP-Method-Override",
            "X-Method-Override", "X-Original-URL", "X-Rewrite-URL", "Forwarded", "X-Forwarded-For", "X-TxID",
            "X-Authenticate-Response", "iPlanetDirectoryPro", "Authorization", "Proxy-Authorization",
            "Transfer-Encoding", "Connection", "TE", "Upgrade", "Expect",
        ])
    func dropped(name: String) throws {
        let forwarded = try forward([(name, "evil"), ("Accept", "*/*")], user: nil)
        #expect(!forwarded.contains { $0.value == "evil" })
        #expect(forwarded[.accept] == "*/*")
    }

    @Test("A field that Connection names is of this hop only")
    func connectionNamed() throws {
        let forwarded = try forward([("Connection", "close, X-Hop"), ("X-Hop", "evil"), ("X-End", "kept")])
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

    @Test("On a bound route the idempotency key is the transaction's, not the client's")
    func idempotencyKey() throws {
        let name = ForwardedFields.idempotencyKey
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
