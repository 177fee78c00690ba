import AssentCore
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

@Suite("An installation's own token") struct DeviceTokensTests {
    private let clock = ManualClock()
    private let ring = KeyRing()
    private let provider: FakeProvider
    private let door: RegistrationDoor

    init() throws {
        (provider, door) = try FakeProvider.registering(clock: clock)
        provider.change { $0.tokenType = "DPoP" }
    }

    private func manager() throws -> TokenManager {
        try provider.installation(ring) { $0.registration?.deviceScopes = ["app"] }
    }

    private func forms() throws -> [FormItems] {
        try provider.sent("/access_token").map { try FormEncoding.parse($0.body) }
    }

    @Test("Fifty tasks send one request, by the registered client, with its assertion and a proof; nothing is stored")
    func race() async throws {
        let manager = try manager()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<50 { group.addTask { try await manager.device.authenticate(scopes: ["app"]) } }
            try await group.waitForAll()
        }
        let forms = try forms()
        #expect(forms.count == 1 && door.registered == 1)
        let form = try #require(forms.first)
        #expect(form["grant_type"] == "client_credentials" && form["scope"] == "app")
        #expect(form["client_id"] == "bank-app~1" && form["client_assertion"] != nil)
        #expect(provider.sent("/access_token").first?.field("DPoP") != nil)
        #expect(provider.registrations.first?.json["scope"] == "openid accounts app")
        let stored = try await manager.storedTokens()
        #expect(stored == nil)
    }

    @Test("A refused token is renewed once and the call repeated once, also when the next one is refused")
    func refused() async throws {
        let manager = try manager()
        try await manager.device.authenticate(scopes: ["app"])
        let seen = Locked<[String?]>([])
        let transport = AuthenticatingTransport(
            manager.device, resources: [try Origin("https://api.bank.example"): .accessToken(of: [.device])],
            over: InMemoryTransport { exchange in
                seen.withLock { $0.append(exchange.field("Authorization")) }
                return .json(401, [:], headers: [.wwwAuthenticate: #"DPoP error="invalid_token""#])
            })
        let reply = try await transport.send(try HTTPCall(.get, url: "https://api.bank.example/app-info"))
        #expect(reply.status == 401)
        #expect(seen.withLock { $0 } == ["DPoP access-1", "DPoP access-2"])
        #expect(try forms().count == 2)
    }

    @Test("An origin of the user gets nothing of the installation, nor the other way round; nothing is sent")
    func otherKinds() async throws {
        let manager = try manager()
        try await manager.device.authenticate(scopes: ["app"])
        let call = try HTTPCall(.get, url: "https://api.bank.example/x")
        let sources: [(any AccessTokenSource, ResourceAccess)] = [
            (manager.device, .accessToken), (manager.device, .nothing), (manager, .accessToken(of: [.device])),
            (manager, .accessToken(of: [])), (manager, .nothing),
        ]
        for (source, access) in sources {
            let transport = AuthenticatingTransport(
                source, resources: [try Origin("https://api.bank.example"): access],
                over: InMemoryTransport { _ in
                    Issue.record("sent")
                    return .json(200, [:])
                })
            let error = await #expect(throws: TokenError.self) { _ = try await transport.send(call) }
            #expect(error?.code == .invalidConfiguration)
        }
    }

    @Test("A scope that the server does not grant is refused by name")
    func scope() async throws {
        let manager = try manager()
        provider.change { $0.tokenReply = { _ in .json(400, ["error": "invalid_scope"]) } }
        let error = await #expect(throws: TokenError.self) {
            try await manager.device.authenticate(scopes: ["unknown"])
        }
        #expect(error?.code == .scopeRefused)
    }

    @Test("It ends with the registration, by the app and by the server")
    func end() async throws {
        let manager = try manager()
        try await manager.device.authenticate(scopes: ["app"])
        try await manager.registration?.unregister()
        let byApp = await #expect(throws: TokenError.self) { try await manager.device.token(rejecting: nil) }
        #expect(byApp?.code == .deviceNotAuthenticated)
        try await manager.device.authenticate(scopes: ["app"])
        let token = try #require(try await manager.device.token(rejecting: nil))
        door.change { $0.clients = [:] }
        let byServer = await #expect(throws: TokenError.self) {
            try await manager.device.token(rejecting: token.value)
        }
        #expect(byServer?.code == .notRegistered)
        let instance = try await manager.registration?.current()
        #expect(instance == nil && ring.names.isEmpty)
    }

    @Test("An origin that gets the session alone is not called for the installation; nobody's call goes bare")
    func session() async throws {
        let manager = try manager()
        try await manager.device.authenticate(scopes: ["app"])
        let sent = Locked<[HTTPFields]>([])
        let inner = InMemoryTransport { exchange in
            sent.withLock { $0.append(exchange.request.headerFields) }
            return .json(200, [:])
        }
        let origin = try Origin("https://api.bank.example")
        let call = try HTTPCall(.get, url: "https://api.bank.example/status")
        let error = await #expect(throws: TokenError.self) {
            try await AuthenticatingTransport(manager.device, resources: [origin: .session], over: inner).send(call)
        }
        #expect(error?.code == .invalidConfiguration)
        #expect(sent.withLock { $0.isEmpty })
        _ = try await AuthenticatingTransport(NoTokens(), resources: [origin: .both], over: inner).send(call)
        let fields = try #require(sent.withLock { $0.first })
        #expect(fields[.authorization] == nil && fields[.dpop] == nil && fields[.cookie] == nil)
    }
}
