import AssentCore
import AssentJOSE
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

@Suite("A configuration that changes after the registration") struct ChangedRegistrationTests {
    /// The process ends: nothing of what follows happens.
    private struct Crash: Error {}

    private static let otherURI = "https://bank.example/app/other"
    private static let more = ["openid", "accounts", "profile"]

    private let clock = ManualClock()
    private let ring = KeyRing()
    private let provider: FakeProvider
    private let door: RegistrationDoor

    init() throws {
        (provider, door) = try FakeProvider.registering(clock: clock)
    }

    /// A process of the installation, with this configuration.
    private func installation(
        redirectURI: String = redirectURI, scopes: [String] = ["openid", "accounts"]
    ) throws -> TokenManager {
        try provider.manager(scopes: scopes, redirectURI: redirectURI) {
            $0.registration = RegistrationConfiguration(keys: ring)
        }
    }

    private func process(
        redirectURI: String = redirectURI, scopes: [String] = ["openid", "accounts"]
    ) throws -> AppRegistration {
        try #require(try installation(redirectURI: redirectURI, scopes: scopes).registration)
    }

    private var changes: [InMemoryTransport.Exchange] { provider.managed(.put) }

    /// A browser in which nobody signs in, and that looks what the server has heard before it opened.
    private struct Browser: RedirectReceiver {
        let provider: FakeProvider
        let redirectURI: String
        let heard = Locked<[Int]>([])

        func receive(
            opening url: String, accepting accepts: @escaping @Sendable (String) -> Bool
        ) async throws -> String {
            heard.withLock { $0.append(provider.managed(.put).count) }
            throw CancellationError()
        }
    }

    // MARK: Changed

    @Test("The server hears of it once: all that is registered, by the token and the key, which stay")
    func told() async throws {
        let first = try await process().register()
        let registration = try process(redirectURI: Self.otherURI, scopes: Self.more)
        let changed = try await registration.register()
        #expect(changed.clientID == first.clientID && changed.keyThumbprint == first.keyThumbprint)
        #expect(changed.scopes == Self.more && changed.registeredAt == first.registeredAt)
        #expect(try await registration.current() == changed)

        let sent = try #require(changes.first)
        #expect(sent.field("Authorization") == "DPoP registration-token-1")
        #expect(sent.field("Content-Type") == "application/json")
        let names = Set(sent.json.object?.members.map(\.name) ?? [])
        #expect(
            names == [
                "client_id", "software_id", "jwks", "token_endpoint_auth_method", "redirect_uris", "scope",
                "assent_platform",
            ])
        #expect(sent.json["client_id"] == "bank-app~1" && sent.json["scope"] == "openid accounts profile")
        #expect(sent.json["redirect_uris"]?.strings == [Self.otherURI])
        #expect(door.proofs.seen.map(\.thumbprint) == [first.keyThumbprint, first.keyThumbprint])

        _ = try await registration.register()
        #expect(changes.count == 1 && door.registered == 1 && ring.made == 1)
    }

    @Test("Either of them alone is a change, and so is the way back")
    func either() async throws {
        _ = try await process().register()
        _ = try await process(scopes: ["openid"]).register()
        _ = try await process(redirectURI: Self.otherURI, scopes: ["openid"]).register()
        _ = try await process().register()
        #expect(changes.map { $0.json["scope"]?.string } == ["openid", "openid", "openid accounts"])
        #expect(changes.map { $0.json["redirect_uris"]?.strings } == [[redirectURI], [Self.otherURI], [redirectURI]])
    }

    @Test("The same scopes in another order are no change, and neither are fewer that the server gave")
    func same() async throws {
        door.change { $0.spoil = { $0["scope"] = "openid" } }
        #expect(try await process().register().scopes == ["openid"])
        _ = try await process().register()
        _ = try await process(scopes: ["accounts", "openid"]).register()
        #expect(changes.isEmpty && provider.registrations.count == 1)
    }

    @Test("Many processes tell it once")
    func once() async throws {
        _ = try await process().register()
        let processes = try (0..<8).map { _ in try process(scopes: Self.more) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for registration in processes { group.addTask { _ = try await registration.register() } }
            try await group.waitForAll()
        }
        #expect(changes.count == 1 && door.registered == 1)
    }

    @Test("A refresh does without it; the next sign-in with a session tells it before it asks for a code")
    func session() async throws {
        let before = try installation()
        try await before.install(Session(token: Secret("SESS")))
        _ = try await before.tokens()
        clock.advance(by: 601)
        let manager = try installation(scopes: Self.more)
        _ = try await manager.tokens()
        #expect(provider.tokenRequests("refresh_token").count == 1 && changes.isEmpty)

        try await manager.install(Session(token: Secret("NEXT")))
        _ = try await manager.tokens()
        let sent = provider.exchanges.withLock { $0 }
        let change = try #require(sent.firstIndex(where: { $0.request.method == .put }))
        let question = try #require(
            sent.lastIndex(where: { $0.request.url?.hasPrefix("\(issuer)/authorize") == true }))
        #expect(changes.count == 1 && change < question)
    }

    @Test("A sign-in in a browser tells it before the browser opens")
    func browser() async throws {
        _ = try await process().register()
        let browser = Browser(provider: provider, redirectURI: Self.otherURI)
        let manager = try installation(redirectURI: Self.otherURI)
        await #expect(throws: CancellationError.self) { try await manager.signIn(through: browser) }
        #expect(browser.heard.withLock { $0 } == [1])
    }

    @Test("A nonce that the server wants is taken, and the same request goes out once more")
    func nonce() async throws {
        _ = try await process().register()
        door.proofs.change { $0.nonce = "later" }
        #expect(try await process(scopes: Self.more).register().scopes == Self.more)
        #expect(changes.count == 2 && Set(changes.map(\.body)).count == 1)
        #expect(Set(door.proofs.texts).count == 3)
    }

    @Test("A registration that was stored without what was asked for can be read, and is brought up to date once")
    func oldRecord() async throws {
        _ = try await process().register()
        let name = try #require(await provider.store.names().first)
        let stored = try #require(try await provider.store.value(name))
        var record = try #require(try JSONValue.parse(stored.value.revealBytes()).object)
        #expect(record["askedRedirect"]?.string == redirectURI && record["askedScope"] == "openid accounts")
        record["askedRedirect"] = nil
        record["askedScope"] = nil
        let old = Secret(bytes: JSONValue.object(record).serializedBytes())
        try await provider.store.update(name, to: old, expected: .any)

        let registration = try process()
        #expect(try await registration.current()?.clientID == "bank-app~1" && changes.isEmpty)
        _ = try await registration.register()
        #expect(try await registration.register().clientID == "bank-app~1")
        #expect(changes.count == 1 && door.registered == 1)
    }

    @Test("A new registration token in the answer takes the place of the old one")
    func newToken() async throws {
        _ = try await process().register()
        door.change { $0.spoil = { $0["registration_access_token"] = "another" } }
        let registration = try process(scopes: Self.more)
        _ = try await registration.register()
        try await registration.unregister()
        #expect(provider.managed(.delete).map { $0.field("Authorization") } == ["DPoP another"])
    }

    // MARK: Not changed, or perhaps

    @Test("A server that has ended the registration makes a new one, with another key")
    func ended() async throws {
        let first = try await process().register()
        door.change { $0.clients = [:] }
        let registration = try process(scopes: Self.more)
        let second = try await registration.register()
        #expect(second.clientID == "bank-app~2" && second.keyThumbprint != first.keyThumbprint)
        #expect(second.scopes == Self.more && ring.names.count == 1)
        _ = try await registration.register()
        #expect(changes.count == 1 && door.registered == 2)
    }

    @Test(
        "A refusal says what to do and what the server says; the old registration stays, for the old configuration too",
        arguments: [
            (400, "invalid_redirect_uri", "redirect URI"), (400, "invalid_client_metadata", "scopes"),
            (400, "invalid_software_statement", "softwareStatement"), (403, "access_denied", "unregister"),
            (401, "invalid_client", "unregister"), (404, "invalid_token", "unregister"), (405, "", "unregister"),
            (302, "", "unregister"),
        ])
    func refusals(status: Int, code: String, advice: String) async throws {
        let first = try await process().register()
        door.change {
            $0.management = .json(status, ["error": .string(code), "error_description": "not for this app"])
        }
        let registration = try process(redirectURI: Self.otherURI)
        for count in 1...2 {
            let error = await #expect(throws: TokenError.self) { try await registration.register() }
            #expect(error?.code == .registrationRefused && error?.isTransient == false && error?.status == status)
            #expect(error?.oauthError == code && error?.suggestion?.contains(advice) == true)
            #expect(error?.detail.hasSuffix("It says: not for this app") == true)
            #expect(try await registration.current() == first && changes.count == count)
        }
        #expect(try await process().register() == first)
        #expect(changes.count == 2 && door.registered == 1 && ring.made == 1)
    }

    @Test("Too often: the error says when to try again")
    func tooOften() async throws {
        let first = try await process().register()
        door.change { $0.management = .json(429, [:], headers: [.retryAfter: "7"]) }
        let registration = try process(scopes: Self.more)
        let error = await #expect(throws: TokenError.self) { try await registration.register() }
        #expect(error?.code == .registrationRefused && error?.isTransient == true)
        #expect(error?.suggestion == "Try again in 7 seconds.")
        #expect(try await registration.current() == first)
    }

    @Test(
        "A lost reply: the error says that the outcome is unknown, and the next try sends the same",
        arguments: [
            HTTPTransportError(.connectionClosed, "The connection ended.", mayHaveHadEffect: true),
            HTTPTransportError(.timedOut, "It took too long.", mayHaveHadEffect: true),
            HTTPTransportError(.bodyTooLarge, "The reply is too large."),
        ])
    func lostReply(lost: HTTPTransportError) async throws {
        let first = try await process().register()
        let good = try #require(provider.behaviour.withLock { $0.other })
        provider.change {
            $0.other = { exchange in
                _ = try await good(exchange)
                throw lost
            }
        }
        let registration = try process(scopes: Self.more)
        let error = await #expect(throws: TokenError.self) { try await registration.register() }
        #expect(error?.code == .registrationUnknown && error?.transportError == lost)
        #expect(error?.detail.contains("Nobody knows") == true && error?.suggestion?.contains("same change") == true)
        #expect(try await registration.current()?.scopes == first.scopes && changes.count == 1)

        provider.change { $0.other = good }
        let changed = try await registration.register()
        #expect(changed.clientID == first.clientID && changed.scopes == Self.more)
        #expect(changes.count == 2 && Set(changes.map(\.body)).count == 1 && ring.made == 1)
    }

    @Test("After an answer that is no use, or a crash, the server also hears of the way back: it may have the change")
    func wayBack() async throws {
        _ = try await process().register()
        door.change { $0.spoil = { $0["client_id"] = nil } }
        await #expect(throws: TokenError.like(.malformedReply)) { try await process(scopes: Self.more).register() }
        door.change { $0.spoil = { _ in } }
        let good = try #require(provider.behaviour.withLock { $0.other })
        provider.change {
            $0.other = { exchange in
                _ = try await good(exchange)
                throw Crash()
            }
        }
        await #expect(throws: Crash.self) { try await process().register() }
        provider.change { $0.other = good }
        #expect(try await process().register().scopes == ["openid", "accounts"])
        _ = try await process().register()
        #expect(changes.map { $0.json["scope"]?.string?.contains("profile") } == [true, false, false])
    }

    @Test("A server that failed, a proof that was refused and an answer that nobody can read leave the outcome unknown")
    func uncertain() async throws {
        let first = try await process().register()
        let registration = try process(scopes: Self.more)
        let replies: [HTTPReply] = [
            .json(503, ["error": "temporarily_unavailable"]), .json(500, ["error": "invalid_client_metadata"]),
            .json(408, [:]), RegistrationDoor.error(401, "invalid_dpop_proof", scheme: "DPoP"),
            .json(200, "no object"),
        ]
        for reply in replies {
            door.change { $0.management = reply }
            let error = await #expect(throws: TokenError.self) { try await registration.register() }
            #expect(error?.code == .registrationUnknown && error?.isTransient == false, "\(reply.status)")
            #expect(error?.detail.contains("Nobody knows") == true)
            #expect(try await registration.current()?.scopes == first.scopes)
        }
        door.change { $0.management = nil }
        #expect(try await registration.register().scopes == Self.more)
        #expect(door.registered == 1 && ring.made == 1)
    }

    @Test("Without a connection nothing was changed, and the same may work later")
    func noConnection() async throws {
        let first = try await process().register()
        provider.change {
            $0.other = { _ in throw HTTPTransportError(.connectFailed, "The connection was refused.") }
        }
        let registration = try process(scopes: Self.more)
        let error = await #expect(throws: TokenError.self) { try await registration.register() }
        #expect(error?.code == .transport && error?.isTransient == true)
        #expect(try await registration.current() == first)
    }

    @Test("An answer that is not about this installation is not stored")
    func answers() async throws {
        let first = try await process().register()
        let foreign = try JWK(publicKeyInfo: SoftwareSigningKey.generate(.es256).publicKeyInfo)
        let spoilers: [(@Sendable (inout JSONObject) -> Void, TokenError.Code)] = [
            ({ $0["client_id"] = "bank-app~9" }, .malformedReply), ({ $0["client_id"] = nil }, .malformedReply),
            ({ $0["registration_access_token"] = nil }, .malformedReply),
            ({ $0["registration_client_uri"] = "https://evil.example/register/1" }, .unusableEndpoint),
            ({ $0["token_endpoint_auth_method"] = "client_secret_basic" }, .malformedReply),
            ({ $0["jwks"] = JWKSet([foreign]).json }, .malformedReply),
            ({ $0["redirect_uris"] = [.string(redirectURI)] }, .malformedReply),
        ]
        let registration = try process(redirectURI: Self.otherURI)
        for (spoil, code) in spoilers {
            door.change { $0.spoil = spoil }
            await #expect(throws: TokenError.like(code)) { try await registration.register() }
            let kept = try await registration.current()
            #expect(kept?.clientID == first.clientID && kept?.address == first.address)
            #expect(kept?.keyThumbprint == first.keyThumbprint)
        }
        door.change { $0.spoil = { _ in } }
        #expect(try await registration.register().clientID == first.clientID)
    }
}
