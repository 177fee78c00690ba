import Assent
import AssentCore
import AssentServer
import Foundation
import HTTPTypes
import Testing

@testable import AssentDemo

/// Installations of an app that register at the real server, by the façade alone.
@Suite("The façade with an installation that registers")
struct RegisteredFacadeTests {
    /// An installation, or another process of one with the same vault.
    private func installation(_ story: Story, _ vault: String, token: Secret?) throws -> Assent {
        try story.makeAssent(vault: vault) { configuration, keys in
            configuration.client.id = InstallationScene.app
            configuration.patience = 3600
            configuration.registration = RegistrationConfiguration(
                keys: keys, initialAccessToken: token, clientName: "Ana's laptop")
        }
    }

    private func operating(_ story: Story) async throws -> Assent {
        let assent = try story.makeAssent(vault: "operator")
        try await story.signIn(assent, forcing: false)
        return assent
    }

    private func listed(_ story: Story, _ operating: Assent) async throws -> [String] {
        let reply = try await InstallationScene(story).administer(
            operating, "listRegistrations", ["app": .string(InstallationScene.app)])
        let answer = try JSONValue.parse(try await reply.body.collect(upTo: 1 << 16))
        return try #require(answer["result"]?.array).compactMap { $0["clientId"]?.string }
    }

    @Test(
        "Two processes that begin at once are one client, by a token for one; refresh, revocation and the end are its own"
    )
    func once() async throws {
        try await World.run(logger: CollectingLog().logger) { story in
            let operating = try await operating(story)
            let token = try await InstallationScene(story).initialAccessToken(operating)
            let (first, second) = (
                try installation(story, "shared", token: token), try installation(story, "shared", token: token)
            )
            // The one that waits for the lease looks again and again, by the story's clock.
            let (instance, same) = try await story.clock.running {
                async let one = first.registration?.register()
                async let other = second.registration?.register()
                return (try #require(try await one), try await other)
            }
            #expect(instance.clientID == same?.clientID && instance.keyThumbprint == same?.keyThumbprint)
            #expect(try await listed(story, operating) == [instance.clientID])
            #expect(
                instance.clientName == "Ana's laptop"
                    && Set(instance.scopes) == ["openid", "profile", "email", "accounts"])

            try await story.signIn(first, forcing: false)
            let tokens = try await second.tokens.tokens()
            #expect(tokens.idToken?.claims.aud == [instance.clientID])
            let renewed = try await first.tokens.tokens(rejecting: tokens.accessToken)
            #expect(renewed.accessToken != tokens.accessToken)
            #expect(try await story.balance(first) == "1000.00")

            #expect(try await first.unregister().isComplete)
            #expect(try await listed(story, operating).isEmpty)
            #expect(try await second.registration?.current() == nil)
            // The token was for one installation.
            let error = await #expect(throws: TokenError.self) { try await second.registration?.register() }
            #expect(error?.code == .registrationRefused && error?.oauthError == "invalid_token")
            for app in [first, second, operating] { await app.shutdown() }
        }
    }

    @Test("An installation has a token of its own without anybody signed in, and none after its registration")
    func device() async throws {
        try await World.run(logger: CollectingLog().logger) { story in
            let operating = try await operating(story)
            let token = try await InstallationScene(story).initialAccessToken(operating)
            let assent = try story.makeAssent(vault: "device") { configuration, keys in
                configuration.client.id = InstallationScene.app
                configuration.registration = RegistrationConfiguration(keys: keys, initialAccessToken: token)
                configuration.registration?.deviceScopes = ["app-data"]
            }
            try await assent.tokens.device.authenticate(scopes: ["app-data"])
            let first = try #require(try await assent.tokens.device.token(rejecting: nil))
            let next = try #require(try await assent.tokens.device.token(rejecting: first.value))
            #expect(first.value != next.value)
            let stored = try await assent.tokens.storedTokens()
            #expect(stored == nil)
            let refused = await #expect(throws: TokenError.self) {
                try await assent.tokens.device.authenticate(scopes: ["app-data", "unknown"])
            }
            #expect(refused?.code == .scopeRefused)
            #expect(try await assent.unregister().isComplete)
            let ended = await #expect(throws: TokenError.self) {
                try await assent.tokens.device.token(rejecting: nil)
            }
            #expect(ended?.code == .deviceNotAuthenticated)
            for app in [assent, operating] { await app.shutdown() }
        }
    }

    @Test("What the operator has ended registers again with the user's session, while the token has uses left")
    func ended() async throws {
        try await World.run(logger: CollectingLog().logger) { story in
            let operating = try await operating(story)
            let assent = try installation(
                story, "ended", token: try await InstallationScene(story).initialAccessToken(operating, count: 2))
            try await story.signIn(assent, forcing: false)
            let tokens = try await assent.tokens.tokens()
            let first = try #require(try await assent.registration?.current())
            let reply = try await InstallationScene(story).administer(
                operating, "endRegistration", ["clientId": .string(first.clientID)])
            #expect(reply.status == 200)
            let renewed = try await assent.tokens.tokens(rejecting: tokens.accessToken)
            let second = try #require(try await assent.registration?.current())
            #expect(second.clientID != first.clientID && second.keyThumbprint != first.keyThumbprint)
            #expect(renewed.idToken?.claims.aud == [second.clientID])
            #expect(try await listed(story, operating) == [second.clientID])
            for app in [assent, operating] { await app.shutdown() }
        }
    }

    @Test("An app that the server does not have, or wants a token for, says so; nothing is registered")
    func refused() async throws {
        try await World.run(logger: CollectingLog().logger) { story in
            let operating = try await operating(story)
            let token = try await InstallationScene(story).initialAccessToken(operating)
            let none = try installation(story, "none", token: nil)
            let error = await #expect(throws: TokenError.self) { try await none.registration?.register() }
            #expect(error?.code == .registrationRefused && error?.oauthError == "invalid_token")
            let more = try story.makeAssent(vault: "more") { configuration, keys in
                configuration.client = .init(
                    id: InstallationScene.app, redirectURI: configuration.client.redirectURI,
                    scopes: ["openid", "everything"])
                configuration.registration = RegistrationConfiguration(keys: keys, initialAccessToken: token)
            }
            let scope = await #expect(throws: TokenError.self) { try await more.registration?.register() }
            #expect(scope?.code == .registrationRefused && scope?.oauthError == "invalid_client_metadata")
            #expect(try await listed(story, operating).isEmpty)
            // No refused request has used the token.
            let good = try installation(story, "good", token: token)
            #expect(try await good.registration?.register() != nil)
            for app in [none, more, good, operating] { await app.shutdown() }
        }
    }

    @Test("Another redirect URI and fewer scopes are put to the server before a sign-in, by token and proof alone")
    func changed() async throws {
        let puts = Puts()
        let other = "http://127.0.0.1/other"
        try await World.run(
            logger: CollectingLog().logger, watching: { Puts.Watched(puts: puts, transport: $0) },
            editing: {
                let uris = "name: Bank app\n        redirectURIs: [\"http://127.0.0.1/callback\""
                return $0.replacing("\(uris)]", with: "\(uris), \"\(other)\"]")
            }
        ) { story in
            let operating = try await operating(story)
            let token = try await InstallationScene(story).initialAccessToken(operating)
            let before = try installation(story, "changed", token: token)
            let first = try #require(try await before.registration?.register())
            #expect(puts.calls.isEmpty)

            let after = try story.makeAssent(vault: "changed") { configuration, keys in
                configuration.client = .init(
                    id: InstallationScene.app, redirectURI: other, scopes: ["openid", "accounts"])
                configuration.registration = RegistrationConfiguration(keys: keys)
            }
            try await story.signIn(after, forcing: false)
            #expect(try await after.tokens.tokens().idToken?.claims.aud == [first.clientID])
            let second = try #require(try await after.registration?.current())
            #expect(second.clientID == first.clientID && second.keyThumbprint == first.keyThumbprint)
            #expect(Set(second.scopes) == ["openid", "accounts"] && second.clientName == nil)
            #expect(try await listed(story, operating) == [first.clientID])
            let sent = try #require(puts.calls.last)
            // One is accepted; before it the server may have asked for a nonce.
            let accepted = try puts.calls.filter { try Puts.hasNonce($0) }
            #expect(accepted.count == 1 && puts.calls.count <= 2)
            #expect(sent.request.headerFields[.authorization]?.hasPrefix("DPoP ") == true)

            // The same request again, then without its proof, then without its token.
            let (replayed, unproved, unnamed) = (sent, Puts.without(.dpop, sent), Puts.without(.authorization, sent))
            for (call, error) in [
                (replayed, "invalid_dpop_proof"), (unproved, "invalid_dpop_proof"), (unnamed, "invalid_token"),
            ] {
                let reply = try await story.transport.send(call)
                let answer = try JSONValue.parse(try await reply.body.collect(upTo: 1 << 16))
                #expect(reply.status == 401 && answer["error"]?.string == error, "\(answer)")
            }
            for app in [before, after, operating] { await app.shutdown() }
        }
    }

    /// The changes of registrations that apps have sent.
    private struct Puts: Sendable {
        private let kept = Locked<[HTTPCall]>([])

        var calls: [HTTPCall] { kept.withLock { $0 } }

        /// Whether the proof has a nonce.
        static func hasNonce(_ call: HTTPCall) throws -> Bool {
            let parts = call.request.headerFields[.dpop]?.split(separator: ".") ?? []
            let payload = try #require(parts.dropFirst().first.flatMap { Base64URL.decode($0) })
            return try JSONValue.parse(payload)["nonce"] != nil
        }

        static func without(_ name: HTTPField.Name, _ call: HTTPCall) -> HTTPCall {
            var call = call
            call.request.headerFields[name] = nil
            return call
        }

        struct Watched: HTTPTransport {
            let puts: Puts
            let transport: any HTTPTransport

            @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
                if call.request.method == .put { puts.kept.withLock { $0.append(call) } }
                return try await transport.send(call)
            }
        }
    }
}
