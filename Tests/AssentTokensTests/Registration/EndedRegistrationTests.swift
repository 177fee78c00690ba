import AssentCore
import AssentJOSE
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

@Suite("The end of a registration") struct EndedRegistrationTests {
    private let clock = ManualClock()
    private let ring = KeyRing()
    private let provider: FakeProvider
    private let door: RegistrationDoor

    init() throws {
        (provider, door) = try FakeProvider.registering(clock: clock)
    }

    private func registered() async throws -> (TokenManager, AppRegistration) {
        let manager = try provider.installation(ring)
        let registration = try #require(manager.registration)
        try await registration.register()
        return (manager, registration)
    }

    /// A browser in which somebody signs in at once, or gives up.
    private struct Browser: RedirectReceiver {
        let provider: FakeProvider
        var givesUp = false
        let opened = Locked<[FormItems]>([])
        var redirectURI: String { "https://bank.example/app/callback" }

        func receive(
            opening url: String, accepting accepts: @escaping @Sendable (String) -> Bool
        ) async throws -> String {
            let query = try FormEncoding.parse(URLText.query(of: url)?.text ?? "")
            opened.withLock { $0.append(query) }
            if givesUp { throw CancellationError() }
            provider.change { $0.nonce = query["nonce"] ?? "" }
            var answer = FormItems()
            answer.append("code", "c")
            answer.append("iss", issuer)
            answer.append("state", query["state"] ?? "")
            return "\(redirectURI)?\(FormEncoding.encode(answer))"
        }

        var clientIDs: [String?] { opened.withLock { $0 }.map { $0["client_id"] } }
    }

    // MARK: By the app

    @Test("It ends at the server, by the token and the key, and then here; the key is destroyed")
    func unregister() async throws {
        let (_, registration) = try await registered()
        try await registration.unregister()
        #expect(door.clientIDs.isEmpty && ring.names.isEmpty)
        #expect(try await registration.current() == nil)
        #expect(await provider.store.names().isEmpty)
        let sent = try #require(provider.managed(.delete).first)
        #expect(sent.field("Authorization") == "DPoP registration-token-1" && sent.field("DPoP") != nil)
        #expect(sent.body.isEmpty && provider.managed(.delete).count == 1)
        // Nothing is left to end.
        try await registration.unregister()
        #expect(provider.managed(.delete).count == 1)
        #expect(try await registration.register().clientID == "bank-app~2")
    }

    @Test("A lost reply forgets nothing, and the same call ends it: the server does not know it any more")
    func lostReply() async throws {
        let (_, registration) = try await registered()
        let good = try #require(provider.behaviour.withLock { $0.other })
        provider.change {
            $0.other = { exchange in
                _ = try await good(exchange)
                throw HTTPTransportError(.connectionClosed, "The connection ended.", mayHaveHadEffect: true)
            }
        }
        await #expect(throws: TokenError.like(.transport)) { try await registration.unregister() }
        #expect(door.clientIDs.isEmpty && ring.names.count == 1)
        #expect(try await registration.current()?.clientID == "bank-app~1")
        provider.change { $0.other = good }
        try await registration.unregister()
        #expect(try await registration.current() == nil && ring.names.isEmpty)
    }

    @Test("A refusal that does not say that it has ended forgets nothing")
    func refusals() async throws {
        let (_, registration) = try await registered()
        let replies: [HTTPReply] = [
            .json(503, ["error": "temporarily_unavailable"]), .json(500, [:]), .json(404, [:]), .json(401, [:]),
            .json(403, ["error": "invalid_token"]), .json(429, [:], headers: [.retryAfter: "7"]),
            RegistrationDoor.error(401, "invalid_dpop_proof", scheme: "DPoP"),
            HTTPReply(HTTPResponse(status: .found, headerFields: [.location: "https://evil.example/"])),
        ]
        for reply in replies {
            door.change { $0.management = reply }
            let error = await #expect(throws: TokenError.self) { try await registration.unregister() }
            #expect(error?.code == .registrationRefused && error?.status == reply.status)
            #expect(error?.isTransient == [503, 500, 429].contains(reply.status))
            #expect(try await registration.current()?.clientID == "bank-app~1" && ring.names.count == 1)
        }
        door.change { $0.management = nil }
        try await registration.unregister()
        #expect(door.clientIDs.isEmpty)
    }

    @Test("A nonce that the server wants is taken, also for the end")
    func nonce() async throws {
        let (_, registration) = try await registered()
        door.proofs.change { $0.nonce = "later" }
        try await registration.unregister()
        #expect(door.clientIDs.isEmpty && provider.managed(.delete).count == 2)
    }

    @Test("Without its key nobody can end it at the server: the error says so, and it can be forgotten here")
    func lostKey() async throws {
        let (_, registration) = try await registered()
        ring.change { $0.keys = [:] }
        await #expect(throws: TokenError.like(.clientKeyMissing)) { try await registration.unregister() }
        #expect(provider.managed(.delete).isEmpty)
        try await registration.forget()
        #expect(try await registration.current() == nil && door.clientIDs == ["bank-app~1"])
        #expect(await provider.store.names().isEmpty)
    }

    @Test("A provider that cannot remove the key leaves a note of it and no registration; the next try takes it up")
    func keyStays() async throws {
        let (_, registration) = try await registered()
        door.change { state in
            state.management = HTTPReply(HTTPResponse(status: .noContent))
            state.clients = [:]
        }
        let good = try #require(provider.behaviour.withLock { $0.other })
        provider.change {
            $0.other = { [ring] exchange in
                ring.change { $0.failure = KeyProviderError(.unavailable, "It is not there.") }
                return try await good(exchange)
            }
        }
        await #expect(throws: TokenError.like(.clientKeyUnavailable)) { try await registration.unregister() }
        #expect(try await registration.current() == nil && ring.names.count == 1)
        provider.change { $0.other = good }
        ring.change { $0.failure = nil }
        try await registration.unregister()
        #expect(ring.names.isEmpty && provider.managed(.delete).count == 1)
        #expect(await provider.store.names().isEmpty)
    }

    // MARK: By the server

    @Test("A session's tokens: an installation that the server has ended registers again, once")
    func endedWithSession() async throws {
        let (manager, registration) = try await registered()
        try await manager.install(Session(token: Secret("SESS")))
        _ = try await manager.tokens()
        door.change { $0.clients = [:] }
        clock.advance(by: 601)
        let tokens = try await manager.tokens()
        #expect(tokens.idToken?.claims.aud == ["bank-app~2"] && door.registered == 2)
        #expect(try await registration.current()?.clientID == "bank-app~2" && ring.names.count == 1)
    }

    @Test("A server that refuses the client, and still knows the registration, gets no other one")
    func refusedButKnown() async throws {
        let (manager, _) = try await registered()
        try await manager.install(Session(token: Secret("SESS")))
        provider.change { $0.tokenReply = { _ in FakeProvider.refusal } }
        let error = await #expect(throws: TokenError.self) { try await manager.tokens() }
        #expect(error?.code == .tokenRefused && error?.oauthError == "invalid_client")
        #expect(door.registered == 1 && provider.managed(.get).count == 1 && provider.sent("/authorize").count == 1)
    }

    @Test("A server that ends each registration at once is not asked without end")
    func endless() async throws {
        let (manager, _) = try await registered()
        try await manager.install(Session(token: Secret("SESS")))
        door.change { state in
            state.clients = [:]
            state.registeredHook = { [door] in door.change { $0.clients = [:] } }
        }
        await #expect(throws: TokenError.like(.tokenRefused)) { try await manager.tokens() }
        #expect(door.registered == 2)
    }

    @Test("In a browser: the registration is looked up first, so that nobody meets an unknown client there")
    func endedBeforeBrowser() async throws {
        let (manager, _) = try await registered()
        let browser = Browser(provider: provider, givesUp: true)
        await #expect(throws: CancellationError.self) { try await manager.signIn(through: browser) }
        door.change { $0.clients = [:] }
        await #expect(throws: CancellationError.self) { try await manager.signIn(through: browser) }
        #expect(browser.clientIDs == ["bank-app~1", "bank-app~2"])
        // Whoever cannot say does not end it.
        door.change { $0.management = .json(503, [:]) }
        await #expect(throws: CancellationError.self) { try await manager.signIn(through: browser) }
        #expect(browser.clientIDs.last == "bank-app~2" && door.registered == 2)
    }

    @Test("Only tokens: the error says to sign in, nothing is removed and nothing registers; the next sign-in does")
    func endedWithTokens() async throws {
        let (manager, registration) = try await registered()
        let browser = Browser(provider: provider)
        let tokens = try await manager.signIn(through: browser).tokens
        door.change { $0.clients = [:] }
        clock.advance(by: 601)
        let error = await #expect(throws: TokenError.self) { try await manager.tokens() }
        #expect(error?.code == .tokenRefused && error?.oauthError == "invalid_client")
        #expect(error?.detail.contains("bank-app~1") == true && error?.suggestion?.contains("Sign in") == true)
        #expect(try await manager.storedTokens() == tokens && door.registered == 1)
        #expect(try await registration.current()?.clientID == "bank-app~1")
        let anew = try await manager.signIn(through: browser).tokens
        #expect(anew.idToken?.claims.aud == ["bank-app~2"] && browser.clientIDs.last == "bank-app~2")
    }

    @Test("Forgotten here with tokens left: they are not sent as another client's; the session gets new ones")
    func forgottenHere() async throws {
        let (manager, registration) = try await registered()
        try await manager.install(Session(token: Secret("SESS")))
        _ = try await manager.tokens()
        try await registration.forget()
        clock.advance(by: 601)
        #expect(try await manager.tokens().idToken?.claims.aud == ["bank-app~2"])
        #expect(provider.tokenRequests("refresh_token").isEmpty)
        try await registration.forget()
        let result = await manager.signOut()
        // The server has ended what it gave to a registration that has ended.
        #expect(result.undone.map(\.step) == [.revokeTokens] && result.undone.allSatisfy { !$0.isKept })
        #expect(door.registered == 2 && provider.sent("/token/revoke").isEmpty)
    }
}
