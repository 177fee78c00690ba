#if os(Linux)
import Assent
import AssentCore
import AssentJOSE
import AssentTesting
import AssentTokens
import Foundation
import HTTPTypes
import Testing

@testable import AssentCLI

@Suite("A sign-in that binds its tokens to a key of the vault's provider")
struct BoundLoginTests {
    private static let issuer = "https://a.example/am/oauth2"

    /// An authorization server that binds tokens to the key of a proof, when there is one.
    private final class Provider: HTTPTransport {
        let clock = ManualClock(Date())
        let types = Locked<[String]>([])

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            let url = call.request.url ?? ""
            switch URLText.withoutQuery(url) {
            case "\(issuer)/.well-known/openid-configuration":
                return try Self.reply([
                    "issuer": .string(issuer), "authorization_endpoint": .string("\(issuer)/authorize"),
                    "token_endpoint": .string("\(issuer)/access_token"),
                ])
            case "\(issuer)/authorize":
                let state = URLText.query(of: url)?[all: "state"].first ?? ""
                return HTTPReply(
                    HTTPResponse(
                        status: .found, headerFields: [.location: "http://127.0.0.1/callback?code=c&state=\(state)"]))
            case "\(issuer)/access_token":
                let name = try #require(HTTPField.Name("DPoP"))
                var type = "Bearer"
                if let proof = call.request.headerFields[name] {
                    _ = try DPoPProof.verify(proof, method: "POST", uri: url, clock: clock)
                    type = "DPoP"
                }
                let count = types.withLock { types in
                    types.append(type)
                    return types.count
                }
                return try Self.reply([
                    "access_token": .string("access-\(count)"), "token_type": .string(type), "expires_in": 600,
                ])
            default: return HTTPReply(HTTPResponse(status: .notFound))
            }
        }

        private static func reply(_ json: JSONValue) throws -> HTTPReply {
            HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(json.serializedBytes()))
        }
    }

    @Test(
        "Later commands keep the binding without being told, with the key in the vault's key file, until the sign-out")
    func kept() async throws {
        let home = try VaultCommandTests.Home()
        let places = Places(environment: [
            "HOME": home.directory.path, "XDG_CONFIG_HOME": home.directory.appending(path: "c").path,
            "XDG_STATE_HOME": home.directory.appending(path: "s").path,
        ])
        let file = ClientFile(
            server: "https://a.example/am", issuer: Self.issuer, realm: "/", cookieName: "session", clientID: "app",
            redirectURI: "http://127.0.0.1/callback", scopes: ["accounts"], journey: "Login",
            resources: [.init(origin: "https://api.example", credential: "accessToken")], authority: nil, pins: [])
        let profile = ClientProfile(file: file, places: places, name: "default")
        let provider = Provider()
        let login = try profile.assent(bindsTokens: true, transport: provider, clock: provider.clock)
        try await login.tokens.install(Session(token: Secret("S1")))
        let tokens = try await login.tokens.tokens()
        #expect(tokens.isBound)
        // Another command in another process.
        let later = try profile.assent(transport: provider, clock: provider.clock)
        #expect(try await later.tokens.tokens() == tokens)
        let credential = try await later.tokens.credential(for: .get, url: "https://api.example/accounts?all=1")
        let proof = try #require(credential.proof).reveal()
        let verified = try DPoPProof.verify(
            proof, method: "GET", uri: "https://api.example/accounts", accessToken: tokens.accessToken,
            clock: provider.clock)
        #expect(verified.thumbprint == tokens.keyThumbprint && credential.authorization == Secret("DPoP access-1"))
        try await later.tokens.install(Session(token: Secret("S2")))
        #expect(try await later.tokens.tokens().keyThumbprint == tokens.keyThumbprint)
        _ = await later.tokens.signOut()
        let fresh = try profile.assent(transport: provider, clock: provider.clock)
        try await fresh.tokens.install(Session(token: Secret("S3")))
        #expect(try await !fresh.tokens.tokens().isBound)
        #expect(provider.types.withLock { $0 } == ["DPoP", "DPoP", "Bearer"])
    }
}
#endif
