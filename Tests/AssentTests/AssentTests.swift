import Assent
import AssentTesting
import Foundation
import HTTPTypes
import Testing

private let am = "https://am.example.com/am"
private let api = "https://api.bank.example"
private let issuer = "\(am)/oauth2/realms/root/realms/alpha"

/// The servers behind a façade: journeys end at once, tokens are granted, the bank wants an approval for a POST.
final class Servers: Sendable {
    let exchanges = Locked<[InMemoryTransport.Exchange]>([])
    let offline = Locked(false)
    let clock = ManualClock()
    /// Whose key sessions belong to that leave nothing behind; `nil` where the server knows no such sessions.
    let statelessKey = Locked<String?>(nil)
    /// What happens while the end of a registration is on its way back.
    let duringEnd = Locked<(@Sendable () async throws -> Void)?>(nil)
    /// Signs ID tokens for these audiences; `nil` when there are none.
    private let idTokens: (key: SoftwareSigningKey, audiences: [String])?
    private let nonce = Locked("")

    init(idTokens: (key: SoftwareSigningKey, audiences: [String])? = nil) { self.idTokens = idTokens }

    func assent(_ change: (inout Assent.Configuration) -> Void = { _ in }) throws -> Assent {
        var configuration = Assent.Configuration(
            server: am, realm: "alpha", client: .init(id: "app", redirectURI: "app:/cb", scopes: ["accounts"]),
            resources: [api: .accessToken], pins: [:], vault: .memory)
        configuration.transport = InMemoryTransport { [self] in try await answer($0) }
        configuration.clock = clock
        change(&configuration)
        return try Assent(configuration)
    }

    func sent(_ part: String) -> [InMemoryTransport.Exchange] {
        exchanges.withLock { $0 }.filter { $0.request.url?.contains(part) == true }
    }

    private func idToken() async throws -> JSONValue {
        guard let idTokens else { return .null }
        let claims: JSONValue = [
            "iss": .string(issuer), "sub": "ana", "aud": .array(idTokens.audiences.map(JSONValue.string)), "azp": "app",
            "iat": .integer(clock.epochSeconds), "exp": .integer(clock.epochSeconds + 600),
            "nonce": .string(nonce.withLock { $0 }),
        ]
        let header: JSONObject = ["kid": "k1"]
        return .string(try await JWS.sign(claims.serializedBytes(), header: header, with: idTokens.key))
    }

    private func answer(_ exchange: InMemoryTransport.Exchange) async throws -> HTTPReply {
        exchanges.withLock { $0.append(exchange) }
        if offline.withLock({ $0 }) { throw HTTPTransportError(.connectFailed, "offline") }
        let url = exchange.request.url ?? ""
        switch URLText.withoutQuery(url) {
        case "\(am)/json/realms/root/realms/alpha/authenticate":
            if exchange.text == "{}" {
                let name: JSONValue = [
                    "type": "NameCallback", "output": [["name": "prompt", "value": "Name"]],
                    "input": [["name": "IDToken1", "value": ""]],
                ]
                return .json(200, ["authId": "A", "callbacks": [name]])
            }
            var session: JSONObject = ["tokenId": "SESS", "successUrl": "/", "realm": "/alpha"]
            if let key = statelessKey.withLock({ $0 }) {
                session["assent_kind"] = "stateless"
                session["cnf"] = ["jkt": .string(key)]
            }
            return .json(
                200, .object(session),
                headers: [.setCookie: "iPlanetDirectoryPro=SESS; Path=/"]
                    + [HTTPField(name: .setCookie, value: "amlbcookie=01; Path=/; Secure")])
        case "\(am)/json/realms/root/realms/alpha/sessions": return .json(200, ["result": "Successfully logged out"])
        case "\(issuer)/.well-known/openid-configuration":
            return .json(
                200,
                [
                    "issuer": .string(issuer), "authorization_endpoint": .string("\(issuer)/authorize"),
                    "token_endpoint": .string("\(issuer)/access_token"),
                    "jwks_uri": .string("\(issuer)/connect/jwk_uri"),
                    "userinfo_endpoint": .string("\(issuer)/userinfo"),
                    "revocation_endpoint": .string("\(issuer)/token/revoke"),
                    "registration_endpoint": .string("\(issuer)/register"),
                ])
        case "\(issuer)/register":
            var answer = try JSONValue.parse(exchange.body).object ?? JSONObject()
            answer["client_id"] = "app~1"
            answer["registration_client_uri"] = .string("\(issuer)/register/app~1")
            answer["registration_access_token"] = "registration-token"
            return .json(201, .object(answer))
        case "\(issuer)/register/app~1":
            if let body = duringEnd.withLock({ $0 }) { try await body() }
            return HTTPReply(HTTPResponse(status: .noContent))
        case "\(issuer)/connect/jwk_uri":
            let keys = try idTokens.map { [try JWK(publicKeyInfo: $0.key.publicKeyInfo, keyID: "k1")] } ?? []
            return .json(200, JWKSet(keys).json)
        case "\(issuer)/userinfo": return .json(200, ["sub": "u-1", "name": "Ana"])
        case "\(issuer)/authorize":
            let query = URLText.query(of: url)
            let (uri, state) = (query?[all: "redirect_uri"].first ?? "", query?[all: "state"].first ?? "")
            nonce.withLock { $0 = query?[all: "nonce"].first ?? "" }
            return HTTPReply(
                HTTPResponse(status: .found, headerFields: [.location: "\(uri)?code=c&state=\(state)"]))
        case "\(issuer)/access_token":
            let isRefresh = exchange.text.hasPrefix("grant_type=refresh_token")
            var granted: JSONObject = [
                "access_token": isRefresh ? "access-2" : "access", "refresh_token": "refresh", "expires_in": 600,
            ]
            if idTokens != nil { granted["id_token"] = try await idToken() }
            return .json(200, .object(granted))
        case let path where path.hasPrefix(api):
            if path.hasSuffix("/balanced") {
                return .json(200, [:], headers: [.setCookie: "node=3; Path=/"])
            }
            if exchange.request.method == .get || url.contains("_txid") { return .json(200, [:]) }
            let advice = try Advice(transactionID: "tx-1").challengeFieldValue(server: am, realm: "/alpha")
            return HTTPReply(HTTPResponse(status: .unauthorized, headerFields: [.wwwAuthenticate: advice]))
        default: return .json(200, [:])
        }
    }
}

extension HTTPFields {
    fileprivate static func + (left: HTTPFields, right: [HTTPField]) -> HTTPFields {
        var all = left
        for field in right { all.append(field) }
        return all
    }
}

@Suite struct AssentTests {
    private func answer(_ step: inout JourneyStep) -> StepAction {
        step[NameCallback.self]?.name = "ana"
        return .next
    }

    @Test("What the app says of its tokens reaches those who keep them")
    func tokenSettings() throws {
        let assent = try Servers().assent {
            $0.renewBefore = 7
            $0.patience = 9
            $0.authorizationParameters = [.init("acr_values", "Strong")]
        }
        #expect(assent.tokens.configuration.renewBefore == 7 && assent.tokens.configuration.patience == 9)
        #expect(assent.tokens.configuration.authorizationParameters.map(\.value) == ["Strong"])
        let usual = try Servers().assent()
        let own = try TokenConfiguration(issuer: issuer, clientID: "app", redirectURI: "app:/cb")
        #expect(usual.tokens.configuration.renewBefore == own.renewBefore)
        #expect(usual.tokens.configuration.patience == own.patience)
    }

    @Test("An audience that the app trusts may stand beside it in an ID token, and no other one")
    func trustedAudiences() async throws {
        let key = try SoftwareSigningKey.generate(.es256)
        for trusted in [Set(["back-end"]), ["elsewhere"], []] {
            let assent = try Servers(idTokens: (key, ["app", "back-end"])).assent {
                $0.client = .init(id: "app", redirectURI: "app:/cb", scopes: ["openid", "accounts"])
                $0.trustedAudiences = trusted
            }
            _ = try await assent.journey("Login", handler: answer)
            let tokens = try? await assent.tokens.tokens()
            #expect((tokens?.idToken != nil) == trusted.contains("back-end"), "\(trusted)")
        }
    }

    @Test("The story: sign in, read, pay with approval, sign out")
    func story() async throws {
        let servers = Servers()
        let assent = try servers.assent()
        #expect(try await assent.user() == nil)
        let session = try await assent.journey("Login", handler: answer)
        #expect(session.token == Secret("SESS"))
        #expect(try await assent.user()?.session == session)
        #expect(try await assent.send(.get("\(api)/accounts")).status == 200)
        #expect(servers.sent("/accounts").first?.request.headerFields[.authorization] == "Bearer access")
        let call = try ResourceRequest.post("\(api)/transfers", json: ["amount": "200.00"])
        let reply = try await assent.send(call) { approval in
            #expect(approval.binding == .notStated)
            return answer(&approval.step)
        }
        #expect(reply.status == 200)
        #expect(servers.sent("/transfers").map(\.text) == Array(repeating: #"{"amount":"200.00"}"#, count: 2))
        #expect(servers.sent("/transfers").last?.request.path == "/transfers?_txid=tx-1")

        let result = await assent.signOut()
        #expect(result.isComplete)
        #expect(
            servers.sent("/token/revoke").map(\.text).map { String($0.prefix(13)) } == [
                "token=refresh", "token=access&",
            ])
        let out = try #require(servers.sent("/sessions?_action=logout").first)
        #expect(out.text == #"{"tokenId":"SESS"}"#)
        #expect(
            out.request.headerFields[try #require(HTTPField.Name("Accept-API-Version"))] == "resource=3.1,protocol=1.0")
        #expect(try await assent.user() == nil)
        await #expect(throws: TokenError(.signInNeeded, "")) { try await assent.send(.get("\(api)/accounts")) }
    }

    @Test("Journeys walked node by node sign in as well")
    func nodes() async throws {
        let assent = try Servers().assent()
        guard case .continue(var step) = await assent.journey.start("Login") else {
            Issue.record("no step")
            return
        }
        step[NameCallback.self]?.name = "ana"
        guard case .success = await assent.journey.next(step) else {
            Issue.record("no success")
            return
        }
        #expect(try await assent.user()?.session?.token == Secret("SESS"))
        #expect(try await assent.user()?.token().accessToken == Secret("access"))
    }

    @Test("Code that takes an authorized client is given the app's own: with its user and its cookies")
    func authorizedClient() async throws {
        let servers = Servers()
        let assent = try servers.assent()
        let call = try HTTPCall(.get, url: "\(api)/accounts")
        await #expect(throws: TokenError(.signInNeeded, "")) { try await assent.authorizedClient.send(call) }
        try await assent.journey("Login", handler: answer)
        _ = try await assent.send(.get("\(api)/balanced"))
        let reply = try await assent.authorizedClient.send(call)
        #expect(reply.status == 200)
        let sent = try #require(servers.sent("/accounts").last)
        #expect(sent.request.headerFields[.authorization] == "Bearer access")
        #expect(sent.request.headerFields[.cookie] == "node=3")
        _ = await assent.signOut()
        await #expect(throws: TokenError(.signInNeeded, "")) { try await assent.authorizedClient.send(call) }
    }

    @Test("The load balancer's cookie goes back to AM and nowhere else; the session's cookie is not kept")
    func cookies() async throws {
        let servers = Servers()
        let assent = try servers.assent()
        try await assent.journey("Login", handler: answer)
        _ = try await assent.send(.get("\(api)/accounts"))
        #expect(servers.sent("/authorize").first?.request.headerFields[.cookie] == "amlbcookie=01")
        #expect(servers.sent("/accounts").first?.request.headerFields[.cookie] == nil)
        _ = await assent.signOut()
        try await assent.journey("Login", handler: answer)
        #expect(servers.sent("/authenticate?").last?.request.headerFields[.cookie] == nil)
    }

    @Test("A resource gets its own cookies back, nobody else does, and they end with the sign-out")
    func resourceCookies() async throws {
        let servers = Servers()
        let assent = try servers.assent()
        try await assent.journey("Login", handler: answer)
        _ = try await assent.send(.get("\(api)/balanced"))
        _ = try await assent.send(.get("\(api)/accounts"))
        #expect(servers.sent("/accounts").last?.request.headerFields[.cookie] == "node=3")
        try await assent.user()?.refresh()
        #expect(servers.sent("/access_token").last?.request.headerFields[.cookie] == "amlbcookie=01")
        _ = await assent.signOut()
        try await assent.journey("Login", handler: answer)
        _ = try await assent.send(.get("\(api)/accounts"))
        #expect(servers.sent("/accounts").last?.request.headerFields[.cookie] == nil)
    }

    @Test("A resource's cookies end with the next sign-in as well: they may say who the user before was")
    func resourceCookiesOfAnother() async throws {
        let servers = Servers()
        let assent = try servers.assent()
        try await assent.journey("Login", handler: answer)
        _ = try await assent.send(.get("\(api)/balanced"))
        try await assent.journey("Login", handler: answer)
        _ = try await assent.send(.get("\(api)/accounts"))
        #expect(servers.sent("/accounts").last?.request.headerFields[.cookie] == nil)
    }

    @Test("A call that begins while the server is told of the user before has no cookie of that user")
    func resourceCookiesMeanwhile() async throws {
        let servers = Servers()
        let during = Locked<(@Sendable () async throws -> Void)?>(nil)
        let assent = try servers.assent {
            let inner = $0.transport
            $0.transport = InMemoryTransport { exchange in
                let isRevocation = exchange.request.path?.hasSuffix("/token/revoke") == true
                if isRevocation, let body = during.withLock({ $0.take() }) { try await body() }
                return try await inner?.send(HTTPCall(exchange.request, body: HTTPBody(exchange.body)))
                    ?? .json(500, [:])
            }
        }
        try await assent.tokens.install(Session(token: Secret("BEFORE")))
        _ = try await assent.send(.get("\(api)/balanced"))
        _ = try await assent.send(.get("\(api)/accounts"))
        #expect(servers.sent("/accounts").last?.request.headerFields[.cookie] == "node=3")
        during.withLock { $0 = { _ = try await assent.send(.get("\(api)/accounts")) } }
        try await assent.journey("Login", handler: answer)
        #expect(during.withLock { $0 == nil } && servers.sent("/authorize").count == 2)
        #expect(servers.sent("/accounts").count == 2)
        #expect(servers.sent("/accounts").last?.request.headerFields[.cookie] == nil)
    }

    @Test("A layer of the app sees every call, and may say a resource's own advice in words that the SDK knows")
    func layers() async throws {
        struct Own: HTTPMiddleware {
            func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply {
                var call = call
                call.request.headerFields[.userAgent] = "BankApp/7"
                var reply = try await next.send(call)
                if reply.status == 403, call.request.path?.contains("_txid") == false {
                    reply.response.status = .unauthorized
                    reply.response.headerFields[.wwwAuthenticate] = try Advice(transactionID: "tx-9")
                        .challengeFieldValue(server: am, realm: "/alpha")
                }
                return reply
            }
        }
        let servers = Servers()
        let assent = try servers.assent {
            $0.layers = [Own()]
            let inner = $0.transport
            $0.transport = InMemoryTransport { exchange in
                if exchange.request.path == "/own" { return .json(403, ["ask": "the user"]) }
                let call = HTTPCall(exchange.request, body: HTTPBody(exchange.body))
                return try await inner?.send(call) ?? .json(500, [:])
            }
        }
        try await assent.journey("Login", handler: answer)
        let reply = try await assent.send(try .post("\(api)/own", json: ["a": 1])) { answer(&$0.step) }
        #expect(reply.status == 200)
        #expect(servers.sent("/own").last?.request.path == "/own?_txid=tx-9")
        let agents = servers.exchanges.withLock { $0.map { $0.request.headerFields[.userAgent] } }
        #expect(!agents.isEmpty && agents.allSatisfy { $0 == "BankApp/7" })
    }

    @Test("Without a layer of the app each call says which app it is, in which version, and by which library")
    func userAgent() async throws {
        let servers = Servers()
        let assent = try servers.assent { $0.client.version = "3.2.0" }
        try await assent.tokens.install(Session(token: Secret("SESS")))
        _ = try await assent.send(.get("\(api)/accounts"))
        let agents = servers.exchanges.withLock { $0.map { $0.request.headerFields[.userAgent] ?? "" } }
        #expect(!agents.isEmpty && agents.allSatisfy { $0.hasPrefix("app/3.2.0 Assent/") && $0.hasSuffix(")") })
    }

    @Test(
        "16 What an app may not give is refused before anything is sent, also the session's field by its configured name"
    )
    func protectedFields() async throws {
        let servers = Servers()
        let assent = try servers.assent { $0.sessionCookieName = "our-session" }
        for name in ["Authorization", "authorization", "DPoP", "User-Agent", "X-TXID", "OUR-Session", "Proxy-x"] {
            let headers: HTTPFields = [try #require(HTTPField.Name(name)): "mine"]
            let error = await #expect(throws: ResourceError.self, "\(name)") {
                try await assent.send(.get("\(api)/accounts", headers: headers))
            }
            #expect(error?.code == .invalidHeaders && error?.domain == .fetchResource)
        }
        for path in ["/accounts", "\(api)/a/../b", "\(api)/a#b"] {
            await #expect(throws: ResourceError(.fetchResource, .invalidRequest, "")) {
                try await assent.send(.get(path))
            }
        }
        #expect(servers.exchanges.withLock { $0.isEmpty })
    }

    @Test("A form with files is not asked about: it would be another request")
    func formAsked() async throws {
        let servers = Servers()
        let assent = try servers.assent()
        let form = ResourceRequest(
            path: "\(api)/files", method: .post, multipartData: [MultipartPart(name: "file", data: [1, 2])])
        let error = await #expect(throws: ResourceError.self) {
            try await assent.ask(form, about: PendingRequest(transactionID: "t-1", idempotencyKey: nil))
        }
        #expect(error?.code == .invalidRequest)
        #expect(servers.exchanges.withLock { $0.isEmpty })
    }

    @Test("When the server refuses the session, nobody is signed in any more")
    func sessionEnded() async throws {
        let servers = Servers()
        let ended = Locked(false)
        let assent = try servers.assent {
            let inner = $0.transport
            $0.transport = InMemoryTransport { exchange in
                let url = exchange.request.url ?? ""
                if ended.withLock({ $0 }) {
                    if url.hasPrefix("\(issuer)/authorize") { return .json(401, ["error": "login_required"]) }
                    if url.hasPrefix("\(issuer)/access_token") { return .json(400, ["error": "invalid_grant"]) }
                    if url.hasPrefix(api) {
                        return .json(401, [:], headers: [.wwwAuthenticate: #"Bearer error="invalid_token""#])
                    }
                }
                let call = HTTPCall(exchange.request, body: HTTPBody(exchange.body))
                return try await inner?.send(call) ?? .json(500, [:])
            }
        }
        try await assent.journey("Login", handler: answer)
        _ = try await assent.send(.get("\(api)/accounts"))
        ended.withLock { $0 = true }
        let error = await #expect(throws: TokenError.self) {
            try await assent.send(try .post("\(api)/transfers", json: ["a": 1])) { answer(&$0.step) }
        }
        #expect(error?.code == .signInNeeded && error?.signInReason == .sessionRefused)
        #expect(try await assent.user() == nil)
        ended.withLock { $0 = false }
        try await assent.journey("Login", handler: answer)
        let start = try #require(servers.sent("/authenticate").last { $0.text == "{}" })
        #expect(start.request.headerFields[try #require(HTTPField.Name("iPlanetDirectoryPro"))] == nil)
    }

    @Test(
        "A resource that gets the session alone: the server is asked about a refused one, and an ended one is removed")
    func sessionAloneEnded() async throws {
        let servers = Servers()
        let ended = Locked(false)
        let assent = try servers.assent {
            $0.resources = [api: .session]
            let inner = $0.transport
            $0.transport = InMemoryTransport { exchange in
                let url = exchange.request.url ?? ""
                if url.hasPrefix(api) { return .json(401, [:]) }
                if url.contains("_action=getSessionInfo"), ended.withLock({ $0 }) {
                    return .json(401, ["code": 401, "message": "Access Denied"])
                }
                let call = HTTPCall(exchange.request, body: HTTPBody(exchange.body))
                return try await inner?.send(call) ?? .json(500, [:])
            }
        }
        try await assent.journey("Login", handler: answer)
        #expect(try await assent.send(.get("\(api)/accounts")).status == 401)
        #expect(servers.sent("_action=getSessionInfo").count == 1)
        #expect(try await assent.user()?.session?.token == Secret("SESS"))
        ended.withLock { $0 = true }
        let error = await #expect(throws: TokenError.self) { try await assent.send(.get("\(api)/accounts")) }
        #expect(error?.code == .signInNeeded && error?.signInReason == .sessionRefused)
        #expect(try await assent.user() == nil)
    }

    @Test("The load balancer's cookie outlives the process in the vault, and ends with the session")
    func cookiesOutlive() async throws {
        let secrets = MemorySecretStore()
        let servers = Servers()
        try await servers.assent { $0.vault = .store(secrets) }.journey("Login", handler: answer)
        let next = try servers.assent { $0.vault = .store(secrets) }
        _ = try await next.send(.get("\(api)/accounts"))
        #expect(servers.sent("/authorize").first?.request.headerFields[.cookie] == "amlbcookie=01")
        _ = await next.signOut()
        #expect(await secrets.names().isEmpty)
    }

    @Test("Signing out without a network leaves nothing here and names what the server was not told")
    func offline() async throws {
        let servers = Servers()
        let assent = try servers.assent()
        try await assent.journey("Login", handler: answer)
        _ = try await assent.send(.get("\(api)/accounts"))
        servers.offline.withLock { $0 = true }
        let result = await assent.signOut()
        #expect(Set(result.undone.map(\.step)) == [.revokeTokens, .endSession] && result.localFailure == nil)
        #expect(result.error?.number == 10009 && result.error?.domain == .generic)
        #expect(try await assent.user() == nil)
    }

    @Test("A journey that makes no session signs nobody in or out")
    func noSession() async throws {
        let assent = try Servers().assent {
            $0.transport = InMemoryTransport { _ in .json(200, ["successUrl": "/", "realm": "/"]) }
        }
        #expect(try await assent.journey("Check", options: .init(noSession: true)) { _ in .next }.token.isEmpty)
        #expect(try await assent.user() == nil)
    }

    @Test("Session and tokens outlive the process in a sealed vault, where neither is readable")
    func vault() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "assent-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(at: folder) }
        let directory = folder.appending(path: "vault")
        let vault = Assent.Vault.file(at: directory, keys: .softwareFile(folder.appending(path: "key")))
        let servers = Servers()
        let first = try servers.assent { $0.vault = vault }
        try await first.journey("Login", handler: answer)
        _ = try await first.send(.get("\(api)/accounts"))
        let second = try servers.assent { $0.vault = vault }
        #expect(try await second.user()?.session?.token == Secret("SESS"))
        #expect(try await second.send(.get("\(api)/accounts")).status == 200)
        #expect(servers.sent("/access_token").count == 1)
        let files = try #require(FileManager.default.enumerator(at: directory, includingPropertiesForKeys: nil))
        for case let file as URL in files {
            let bytes = (try? Data(contentsOf: file)) ?? Data()
            #expect(bytes.range(of: Data("SESS".utf8)) == nil && bytes.range(of: Data("refresh".utf8)) == nil)
        }
    }

    @Test("A vault that wants hardware never becomes a software vault")
    func hardware() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "assent-\(UUID().uuidString)")
        let assent = try Servers().assent { $0.vault = .file(at: directory, keys: .requireHardware([])) }
        await #expect(throws: TokenError(.storageFailed, "")) { try await assent.journey("Login", handler: answer) }
        #expect(!FileManager.default.fileExists(atPath: directory.path(percentEncoded: false)))
    }

    @Test(
        "A configuration that cannot work is refused when it is made",
        arguments: [
            { $0.server = "http://am.example.com/am" }, { $0.server = "am.example.com" }, { $0.realm = ".." },
            { $0.client.id = "" }, { $0.client.redirectURI = "" }, { $0.resources = ["api.bank.example": .session] },
            { $0.sessionCookieName = "a b" }, { $0.issuer = "http://elsewhere.example" },
            {
                $0.transport = nil; $0.pins = ["am.example.com": []]
            },
        ] as [@Sendable (inout Assent.Configuration) -> Void])
    func configuration(change: @Sendable (inout Assent.Configuration) -> Void) {
        #expect(throws: (any Error).self) { try Servers().assent(change) }
    }
}
