#if os(Linux)
import ArgumentParser
import Assent
import AssentCore
import AssentJOSE
import AssentTokens
import Foundation
import HTTPTypes
import Testing

@testable import AssentCLI

@Suite("A profile whose installation registers")
struct RegisteredLoginTests {
    private static let issuer = "https://a.example/am/oauth2"

    /// An authorization server that registers whoever has the initial access token, and gives tokens to those alone.
    private final class Provider: HTTPTransport {
        let registered = Locked<[String: JWKSet]>([:])

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            let url = call.request.url ?? ""
            let body = try await call.body?.collect(upTo: 1 << 16) ?? []
            switch URLText.withoutQuery(url) {
            case "\(issuer)/.well-known/openid-configuration":
                return Self.reply(
                    200,
                    [
                        "issuer": .string(issuer), "authorization_endpoint": .string("\(issuer)/authorize"),
                        "token_endpoint": .string("\(issuer)/access_token"),
                        "registration_endpoint": .string("\(issuer)/register"),
                    ])
            case "\(issuer)/register":
                guard call.request.headerFields[.authorization] == "Bearer initial" else {
                    return Self.reply(401, ["error": "invalid_token"])
                }
                return try register(body)
            case "\(issuer)/authorize":
                let state = URLText.query(of: url)?[all: "state"].first ?? ""
                return HTTPReply(
                    HTTPResponse(
                        status: .found, headerFields: [.location: "http://127.0.0.1/callback?code=c&state=\(state)"]))
            case "\(issuer)/access_token": return try tokens(try FormEncoding.parse(body))
            default:
                let id = url.split(separator: "/").last.map(String.init) ?? ""
                guard call.request.method == .delete, registered.withLock({ $0.removeValue(forKey: id) }) != nil else {
                    return Self.reply(401, ["error": "invalid_token"])
                }
                return HTTPReply(HTTPResponse(status: .noContent))
            }
        }

        private func register(_ body: [UInt8]) throws -> HTTPReply {
            let asked = try JSONValue.parse(body)
            let keys = try JWKSet(asked["jwks"] ?? .null)
            let id = registered.withLock { registered in
                let id = "app~\(registered.count + 1)"
                registered[id] = keys
                return id
            }
            var answer = asked.object ?? JSONObject()
            answer["client_id"] = .string(id)
            answer["client_id_issued_at"] = 1_790_000_000
            answer["registration_client_uri"] = .string("\(issuer)/register/\(id)")
            answer["registration_access_token"] = "token"
            return Self.reply(201, .object(answer))
        }

        private func tokens(_ form: FormItems) throws -> HTTPReply {
            guard let keys = registered.withLock({ $0[form["client_id"] ?? ""] }), let text = form["client_assertion"],
                (try? UnverifiedJWS.parse(text).verified(with: keys, algorithms: ClientKey.algorithms)) != nil
            else { return Self.reply(401, ["error": "invalid_client"]) }
            return Self.reply(200, ["access_token": "access", "token_type": "Bearer", "expires_in": 600])
        }

        private static func reply(_ status: Int, _ json: JSONValue) -> HTTPReply {
            HTTPReply(HTTPResponse(status: .init(code: status)), body: HTTPBody(json.serializedBytes()))
        }
    }

    @Test("It registers at the sign-in with the token in the file, and needs the file no more; later commands know it")
    func kept() async throws {
        let home = try VaultCommandTests.Home()
        let places = Places(environment: [
            "HOME": home.directory.path, "XDG_CONFIG_HOME": home.directory.appending(path: "c").path,
            "XDG_STATE_HOME": home.directory.appending(path: "s").path,
        ])
        let tokenFile = home.directory.appending(path: "token.txt")
        var file = ClientFile(
            server: "https://a.example/am", issuer: Self.issuer, realm: "/", cookieName: "session", clientID: "app",
            redirectURI: "http://127.0.0.1/callback", scopes: ["accounts"], journey: "Login",
            resources: [], authority: nil, pins: [])
        file.registration = .init(clientName: "laptop", initialAccessTokenFile: tokenFile.path)
        let profile = ClientProfile(file: file, places: places, name: "default")
        let provider = Provider()

        // There is no token: the server says what is missing.
        let early = try profile.assent(transport: provider)
        let error = await #expect(throws: TokenError.self) { try await early.registration?.register() }
        #expect(error?.code == .registrationRefused && error?.suggestion?.contains("initialAccessToken") == true)

        try Data("initial\n".utf8).write(to: tokenFile)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: tokenFile.path)
        let login = try profile.assent(transport: provider)
        try await login.tokens.install(Session(token: Secret("S1")))
        #expect(try await login.tokens.tokens().accessToken == Secret("access"))
        try FileManager.default.removeItem(at: tokenFile)

        let later = try profile.assent(transport: provider)
        let instance = try #require(try await later.registration?.current())
        #expect(instance.clientID == "app~1" && instance.clientName == "laptop")
        #expect(instance.line == "Registration:  app~1, since 2026-09-21T14:13:20Z")
        #expect(instance.status["client_id"] == "app~1" && instance.status["registered_at"] == 1_790_000_000)
        #expect(instance.status["jkt"]?.string == instance.keyThumbprint && instance.status.members.count == 4)
        try await later.unregister()
        #expect(provider.registered.withLock { $0.isEmpty })
        #expect(try await profile.assent(transport: provider).registration?.current() == nil)
    }

    @Test("A token that the command was given takes the place of the one in the file")
    func given() async throws {
        let home = try VaultCommandTests.Home()
        let places = Places(environment: [
            "HOME": home.directory.path, "XDG_CONFIG_HOME": home.directory.appending(path: "c").path,
            "XDG_STATE_HOME": home.directory.appending(path: "s").path,
        ])
        let tokenFile = home.directory.appending(path: "token.txt")
        try Data("another".utf8).write(to: tokenFile)
        var file = ClientFile(
            server: "https://a.example/am", issuer: Self.issuer, realm: "/", cookieName: "session", clientID: "app",
            redirectURI: "http://127.0.0.1/callback", scopes: ["accounts"], journey: "Login",
            resources: [], authority: nil, pins: [])
        file.registration = .init(initialAccessTokenFile: tokenFile.path)
        var profile = ClientProfile(file: file, places: places, name: "default")
        profile.initialAccessToken = Secret("initial")
        let assent = try profile.assent(transport: Provider())
        #expect(try await assent.registration?.register().clientID == "app~1")
    }

    @Test("Wrong usage is refused before anything is read")
    func usage() throws {
        #expect(throws: (any Error).self) {
            try RegisterCommand.parse(["--token-file", "t", "--token-fd", "3"])
        }
        #expect(try UnregisterCommand.parse(["--forget"]).forget)
        #expect(try RegisterCommand.parse(["--token-file", "t", "--json"]).tokenFile == "t")
    }
}
#endif
