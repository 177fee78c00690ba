import Assent
import AssentTesting
import AssentVault
import Foundation
import HTTPTypes
import TestSupport
import Testing

@Suite("The façade's switch for registration") struct RegisteredConfigurationTests {
    private let directory = FileManager.default.temporaryDirectory.appending(path: "assent-\(SystemRandom().uuid())")

    private var keys: SoftwareKeyProvider { SoftwareKeyProvider(unprotectedFile: directory.appending(path: "keys")) }

    @Test("After a journey the installation registers by itself, and asks for tokens as the client that it became")
    func journey() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let servers = Servers()
        let assent = try servers.assent {
            $0.registration = RegistrationConfiguration(
                keys: keys, initialAccessToken: Secret("initial"), clientName: "Ana's laptop")
        }
        try await assent.journey("Login") { step in
            step[NameCallback.self]?.name = "ana"
            return .next
        }
        let call = ResourceRequest.get("https://api.bank.example/balance")
        _ = try await assent.send(call)
        _ = try await assent.send(call)
        let registrations = servers.sent("/register")
        #expect(registrations.count == 1)
        let asked = try JSONValue.parse(try #require(registrations.first).body)
        #expect(asked["software_id"] == "app" && asked["client_name"] == "Ana's laptop")
        #expect(registrations.first?.request.headerFields[.authorization] == "Bearer initial")
        let form = try FormEncoding.parse(try #require(servers.sent("/access_token").first).body)
        let registered = try #require(try await assent.registration?.current())
        #expect(form["client_id"] == "app~1" && registered.clientID == "app~1")
        let message = try UnverifiedJWS.parse(try #require(form["client_assertion"]))
        let claims = try JWTValidation(
            issuer: "app~1", audience: assent.tokens.configuration.issuer, clock: servers.clock
        ).validate(try message.verified(with: JWKSet(try #require(asked["jwks"])), algorithms: ClientKey.algorithms))
        #expect(claims.sub == "app~1")
    }

    @Test("The end: signed out while the client can still say so, then ended at the server, then forgotten here")
    func unregister() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let servers = Servers()
        let assent = try servers.assent { $0.registration = RegistrationConfiguration(keys: keys) }
        try await assent.tokens.install(Session(token: Secret("SESS")))
        _ = try await assent.tokens.tokens()
        #expect(try await keys.keyNames().count == 1)
        #expect(try await assent.unregister().isComplete)
        let paths = servers.exchanges.withLock { $0 }.compactMap(\.request.path)
        let revoked = try #require(paths.lastIndex { $0.hasSuffix("/token/revoke") })
        let ended = try #require(paths.firstIndex { $0.hasSuffix("/register/app~1") })
        #expect(revoked < ended && servers.sent("/register/app~1").map(\.request.method) == [.delete])
        #expect(try await assent.registration?.current() == nil)
        #expect(try await assent.user() == nil)
        #expect(try await keys.keyNames().isEmpty)
    }

    @Test("A server that does not know sign-ins that leave nothing behind gives a usual session, which is ended: 9034")
    func stateless() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let servers = Servers()
        let assent = try servers.assent { $0.registration = RegistrationConfiguration(keys: keys) }
        func signIn() async throws {
            try await assent.authenticateStateless("Login") { step in
                step[NameCallback.self]?.name = "ana"
                return .next
            }
        }
        let early = await #expect(throws: ResourceError.self) { try await signIn() }
        #expect(early?.code == .deviceDeregistered && servers.sent("/authenticate").isEmpty)

        try await assent.registration?.register()
        let refused = await #expect(throws: ResourceError.self) { try await signIn() }
        #expect(refused?.code == .statelessRefused && refused?.number == 9034)
        let first = try #require(servers.sent("/authenticate").first)
        #expect(first.request.url?.contains("stateless=true") == true)
        let field = try #require(HTTPField.Name("DPoP"))
        #expect(servers.sent("/authenticate").allSatisfy { $0.request.headerFields[field] != nil })
        #expect(servers.sent("/sessions?_action=logout").first?.text == #"{"tokenId":"SESS"}"#)
        #expect(try await assent.user() == nil)
    }

    /// An installation that is registered, at a server that knows sign-ins that leave nothing behind.
    private func installation() async throws -> (Servers, Assent) {
        let servers = Servers()
        let assent = try servers.assent {
            $0.registration = RegistrationConfiguration(keys: keys)
            $0.deviceKeys = SoftwareKeyProvider(unprotectedFile: directory.appending(path: "device"))
        }
        let instance = try #require(try await assent.registration?.register())
        servers.statelessKey.withLock { $0 = instance.keyThumbprint }
        return (servers, assent)
    }

    private func signIn(_ assent: Assent, _ meanwhile: () async throws -> Void = {}) async throws {
        try await assent.authenticateStateless("Login") { step in
            step[NameCallback.self]?.name = "ana"
            try await meanwhile()
            return .next
        }
    }

    @Test("A sign-in in a browser takes the place of the one that is in memory: calls are the new user's")
    func browser() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (servers, assent) = try await installation()
        try await signIn(assent)
        #expect(try await assent.user()?.session?.token == Secret("SESS"))
        let user = try await assent.signIn(through: SignedInBrowser())
        #expect(user.session == nil)
        let now = try #require(try await assent.user())
        #expect(now.session == nil)
        #expect(servers.sent("/sessions?_action=logout").count == 1)
        _ = try await assent.send(.get("https://api.bank.example/balance"))
        #expect(servers.sent("/balance").last?.request.headerFields[.authorization] == "Bearer access")
    }

    @Test("While somebody is signed in in memory, another user's stored session opens no journey and enrols nothing")
    func storedSession() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (servers, assent) = try await installation()
        try await assent.tokens.install(Session(token: Secret("OTHER")))
        try await signIn(assent)
        let field = try #require(HTTPField.Name("iPlanetDirectoryPro"))

        await #expect(throws: SigningError.self) { try await assent.device.enrol { _ in Secret("0042") } }
        #expect(servers.sent("/invites").map { $0.request.headerFields[field] } == ["SESS"])

        let walked = servers.sent("/authenticate").count
        servers.statelessKey.withLock { $0 = nil }
        _ = await assent.journey.start("Login")
        try await assent.journey("Login") { step in
            step[NameCallback.self]?.name = "ana"
            return .next
        }
        let steps = servers.sent("/authenticate").dropFirst(walked)
        #expect(steps.count == 3 && steps.allSatisfy { $0.request.headerFields[field] == nil })
    }

    @Test("While who is signed in in memory is signed out, no call is sent in the name of whose session is stored")
    func signingOut() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let servers = Servers()
        let during = Locked<(@Sendable () async throws -> Void)?>(nil)
        let assent = try servers.assent {
            $0.registration = RegistrationConfiguration(keys: keys)
            $0.resources = ["https://api.bank.example": .session]
            let inner = $0.transport
            $0.transport = InMemoryTransport { exchange in
                let isEnd = exchange.request.path?.contains("_action=logout") == true
                if isEnd, let body = during.withLock({ $0.take() }) { try await body() }
                return try await inner?.send(HTTPCall(exchange.request, body: HTTPBody(exchange.body)))
                    ?? .json(500, [:])
            }
        }
        let instance = try #require(try await assent.registration?.register())
        servers.statelessKey.withLock { $0 = instance.keyThumbprint }
        try await assent.tokens.install(Session(token: Secret("OTHER")))
        try await signIn(assent)

        let refused = Locked<ResourceError.Code?>(nil)
        during.withLock {
            $0 = {
                do throws(ResourceError) {
                    _ = try await assent.userClient.sendAuthenticatedRequest(.get("https://api.bank.example/balance"))
                } catch {
                    refused.withLock { $0 = error.code }
                }
            }
        }
        #expect(await assent.signOut().isComplete)
        #expect(refused.withLock { $0 } == .userNotAuthenticated)
        #expect(servers.sent("/balance").isEmpty)
        let ended = servers.sent("/sessions?_action=logout").map(\.text)
        #expect(ended == [#"{"tokenId":"SESS"}"#, #"{"tokenId":"OTHER"}"#])
        #expect(try await assent.user() == nil)
    }

    @Test("While a sign-in is under way every other one, of this kind or by a PIN, is 9007 and sends nothing")
    func oneAtATime() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (servers, assent) = try await installation()
        try await signIn(assent) {
            let sent = servers.exchanges.withLock { $0.count }
            let second = await #expect(throws: ResourceError.self) { try await signIn(assent) }
            #expect(second?.number == 9007 && second?.domain == .generic)
            let pin = await #expect(throws: ResourceError.self) { try await assent.logIn("ana", pin: Secret("0042")) }
            #expect(pin?.number == 9007 && pin?.domain == .generic)
            #expect(servers.exchanges.withLock { $0.count } == sent)
        }
        #expect(try await assent.user()?.session?.token == Secret("SESS"))
        // The refused ones have not ended the first one's turn, and the first one has: the next is let in.
        try await signIn(assent)
    }

    @Test("Who signs out while a sign-in is under way is not signed in by what comes late: 9006")
    func signedOutMeanwhile() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (servers, assent) = try await installation()
        let late = await #expect(throws: ResourceError.self) {
            try await signIn(assent) { #expect(await assent.signOut().isComplete) }
        }
        #expect(late?.number == 9006 && late?.domain == .generic)
        #expect(try await assent.user() == nil)
        #expect(servers.sent("/sessions?_action=logout").count == 1)
        try await signIn(assent)
        #expect(try await assent.user() != nil)
    }

    @Test("After the end of the registration nobody is signed in, also who signed in while the server was told of it")
    func endedMeanwhile() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (servers, assent) = try await installation()
        let tests = self
        servers.duringEnd.withLock {
            $0 = {
                try await tests.signIn(assent)
                #expect(try await assent.user() != nil)
            }
        }
        _ = try await assent.unregister()
        #expect(servers.sent("/register/app~1").count == 1)
        #expect(try await assent.user() == nil)
        #expect(try await assent.registration?.current() == nil)
        #expect(try await keys.keyNames().isEmpty)
    }

    @Test("Without a server nothing but the sign-out is done, and the registration is still there")
    func offline() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let servers = Servers()
        let assent = try servers.assent { $0.registration = RegistrationConfiguration(keys: keys) }
        try await assent.registration?.register()
        servers.offline.withLock { $0 = true }
        let error = await #expect(throws: TokenError.self) { try await assent.unregister() }
        #expect(error?.code == .transport && error?.isTransient == true)
        #expect(try await assent.registration?.current()?.clientID == "app~1")
        #expect(try await keys.keyNames().count == 1)
    }

    @Test("Without the switch nothing registers, and ending it is a sign-out")
    func off() async throws {
        let servers = Servers()
        let assent = try servers.assent()
        try await assent.tokens.install(Session(token: Secret("SESS")))
        _ = try await assent.tokens.tokens()
        #expect(assent.registration == nil)
        #expect(try await assent.unregister().isComplete && servers.sent("/register").isEmpty)
    }
}
