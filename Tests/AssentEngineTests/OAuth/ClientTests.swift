import AssentCore
import AssentStore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine

@Suite("OAuth clients")
struct ClientTests {
    static let secret = ProviderFixture.secret

    private static func basic(_ id: String, _ secret: String) -> String {
        let pair = "\(PercentEncoding.encode(id)):\(PercentEncoding.encode(secret))"
        return "Basic " + Data(pair.utf8).base64EncodedString()
    }

    private static func raw(_ text: String) -> String { "Basic " + Data(text.utf8).base64EncodedString() }

    @Test(
        "A client proves who it is in exactly one way",
        arguments: [
            (["client_id": "bank-app"], nil, "bank-app"),
            (["client_id": "back end", "client_secret": secret], nil, "back end"),
            ([:], basic("back end", secret), "back end"),
            (["client_id": "back end"], basic("back end", secret), "back end"),
            (["client_id": "bank-app"], basic("bank-app", ""), "bank-app"),
            ([:], raw("back+end:" + PercentEncoding.encode(secret)), "back end"),
        ] as [([String: String], String?, String)])
    func accepted(form: [String: String], authorization: String?, id: String) async throws {
        let fixture = try await ProviderFixture()
        let parameters = try ProviderFixture.parameters([:], form.mapValues(Optional.some))
        let caller = try await fixture.grants.clients.client(
            of: parameters, authorization: authorization, at: .token)
        #expect(caller.client.id == id)
    }

    @Test(
        "Anything else is refused",
        arguments: [
            ([:], nil, nil), (["client_id": "back end"], nil, nil), (["client_id": "nobody"], nil, nil),
            (["client_id": "back end", "client_secret": "wrong"], nil, nil),
            (["client_id": "bank-app", "client_secret": secret], nil, nil),
            (["client_id": "bank-app", "client_assertion": "x"], nil, nil),
            ([:], basic("back end", "wrong"), .clientCredentials), ([:], basic("back end", ""), .clientCredentials),
            ([:], basic("nobody", secret), .clientCredentials), ([:], raw("back end"), .clientCredentials),
            ([:], raw("back%2:x"), .clientCredentials),
            ([:], "Basic !!!", .clientCredentials), ([:], "Basic", .clientCredentials),
            ([:], "Bearer abc", .clientCredentials), ([:], "", .clientCredentials),
        ] as [([String: String], String?, OAuthError.Wanted?)])
    func refused(form: [String: String], authorization: String?, wanted: OAuthError.Wanted?) async throws {
        let fixture = try await ProviderFixture()
        let parameters = try ProviderFixture.parameters([:], form.mapValues(Optional.some))
        let error = await #expect(throws: OAuthError.invalidClient) {
            try await fixture.grants.clients.client(of: parameters, authorization: authorization, at: .token)
        }
        #expect(error?.wanted == wanted)
        #expect(error?.detail == "Client authentication failed")
    }

    @Test("A colon ends the id whatever comes behind it, and a row of marks that would be slow to compare is refused")
    func colon() {
        let read = ClientAuthenticator.basicCredentials(Self.raw("a:\u{301}b"))
        #expect(read?.id == "a")
        #expect(read?.secret == Secret("\u{301}b"))
        let marks = String(repeating: "\u{301}", count: 65)
        for text in ["a:\(marks)", "\(marks):b", marks] {
            #expect(ClientAuthenticator.basicCredentials(Self.raw(text)) == nil)
        }
    }

    @Test(
        "Two ways at once are a malformed request", arguments: [["client_secret": secret], ["client_id": "bank-app"]])
    func twoWays(form: [String: String]) async throws {
        let fixture = try await ProviderFixture()
        let parameters = try ProviderFixture.parameters([:], form.mapValues(Optional.some))
        await #expect(throws: OAuthError.expected("invalid_request")) {
            try await fixture.grants.clients.client(
                of: parameters, authorization: Self.basic("back end", Self.secret), at: .token)
        }
    }

    @Test(
        "A redirect URI is the registered one, letter by letter, but for a loopback address's port",
        arguments: [
            ("https://a.example/cb", "https://a.example/cb", true),
            ("https://a.example/cb", "https://a.example/cb/", false),
            ("https://a.example/cb", "https://A.example/cb", false),
            ("https://a.example/cb", "https://a.example:443/cb", false),
            ("https://a.example/cb", "https://a.example/cb?x", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1:8080/cb", true),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:65535/cb", true),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1/cb", true),
            ("http://[::1]/cb", "http://[::1]:8080/cb", true),
            ("http://127.0.0.1/cb", "http://127.0.0.1:65536/cb", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1:/cb", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1:80x/cb", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1:80@evil.example/cb", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1.evil.example/cb", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1:80/cb2", false),
            ("http://127.0.0.1/cb", "http://[::1]:80/cb", false),
            ("http://127.0.0.1/cb", "https://127.0.0.1:80/cb", false),
            ("http://localhost:1/cb", "http://localhost:2/cb", false),
        ])
    func matching(registered: String, requested: String, matches: Bool) {
        #expect(RedirectURI.matches(requested, registered: registered) == matches)
    }

    @Test(
        "Redirect URIs that may be registered",
        arguments: [
            "https://a.example/cb", "https://a.example:8443/cb?x=1", "http://127.0.0.1/cb", "http://[::1]:9/cb",
            "http://localhost:8080/cb", "com.example.app:/cb", "com.example.app://cb", "frauth://com.example.app",
        ])
    func registrable(uri: String) { #expect(RedirectURI.fault(in: uri) == nil) }

    @Test(
        "Redirect URIs that may not be registered",
        arguments: [
            "", "https://", "https:///cb", "/cb", "a.example/cb", "https://a.example/#f", "https://*.example/cb",
            "http://a.example/cb", "http://127.0.0.1.evil.example/cb", "http://localhost.evil.example/",
            "http://127.0.0.1@evil.example/", "javascript:alert(1)", "JavaScript:alert(1)", "data:text/html,x",
            "file:///etc/passwd", "https://a.example/ cb", "https://a.example/\n", "1a:/cb", "app:",
        ])
    func notRegistrable(uri: String) { #expect(RedirectURI.fault(in: uri) != nil) }

    @Test("The clients of the tests are sound; each fault is found")
    func validation() {
        for client in [ProviderFixture.bank, ProviderFixture.other, ProviderFixture.backend] {
            #expect(client.validate().isEmpty)
        }
        let faults: [(inout OAuthClient) -> Void] = [
            { $0.id = "" }, { $0.id = "ä" }, { $0.kind = .confidential(secretHash: "secret") },
            { $0.requiresPKCE = false }, { $0.introspectsAll = true }, { $0.redirectURIs = [] },
            { $0.redirectURIs = ["http://a.example/"] }, { $0.postLogoutRedirectURIs = ["x"] },
            { $0.scopes.append("a b") }, { $0.defaultScopes = ["admin"] }, { $0.scopes.append("openid") },
            { $0.accessTokenLifetime = 0 }, { $0.refreshTokenLifetime = .max }, { $0.idTokenLifetime = -1 },
        ]
        for fault in faults {
            var client = ProviderFixture.bank
            fault(&client)
            #expect(client.validate().count == 1)
        }
    }

    @Test("A provider does not start with a faulty client")
    func faultyProvider() async throws {
        var client = ProviderFixture.bank
        client.redirectURIs = []
        let faulty = client
        await #expect(throws: EngineError.self) { try await ProviderFixture(clients: [faulty]) }
    }

    @Test("Forms are bounded, and the vendor's unencoded ones are read")
    func forms() throws {
        let vendor = try OAuthParameters(
            urlEncoded: Array("scope=openid profile&redirect_uri=https://a.example/cb?a=b&empty=".utf8))
        #expect(vendor["scope"] == "openid profile")
        #expect(vendor["redirect_uri"] == "https://a.example/cb?a=b")
        #expect(vendor["empty"] == nil)
        #expect(try vendor.scopes() == ["openid", "profile"])
        for text in [
            "a=%zz", "a=%ff", "a=%", String(repeating: "a=b&", count: 65), "a=" + String(repeating: "b", count: 9000),
        ] {
            #expect(throws: OAuthError.expected("invalid_request")) {
                try OAuthParameters(urlEncoded: Array(text.utf8))
            }
        }
        #expect(throws: OAuthError.expected("invalid_request")) {
            try OAuthParameters(urlEncoded: [0x61, 0x3D, 0xFF])
        }
    }

    @Test("Errors of the database become answers that say nothing about it")
    func errors() {
        #expect(OAuthError(answering: StoreError(.unavailable, "full")) == .unavailable)
        #expect(OAuthError(answering: EngineError.unavailable).code == .temporarilyUnavailable)
        let corrupt = OAuthError(answering: StoreError(.corrupt, "page 17"))
        #expect(corrupt.code == .serverError)
        #expect(!corrupt.detail.contains("page 17"))
        #expect(OAuthError(answering: OAuthError.invalidGrant) == .invalidGrant)
    }
}
