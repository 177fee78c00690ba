import AssentCore
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

/// What a layer of the app's own may throw.
private struct OwnError: Error {}

@Suite struct RefreshTests {
    private func expired(_ change: (inout FakeProvider.Behaviour) -> Void = { _ in }) async throws -> (
        FakeProvider, TokenManager
    ) {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        _ = try await manager.tokens()
        provider.clock.advance(by: 601)
        provider.change(change)
        return (provider, manager)
    }

    private func refreshes(_ provider: FakeProvider) -> [InMemoryTransport.Exchange] {
        provider.sent("/access_token").filter { $0.form["grant_type"] == "refresh_token" }
    }

    @Test("A token that has ended is refreshed with a form that survives any character")
    func refresh() async throws {
        let (provider, manager) = try await expired()
        let tokens = try await manager.tokens()
        #expect(tokens.accessToken == Secret("access-2") && tokens.refreshToken == Secret("refresh+2&=%"))
        #expect(tokens.idToken?.subject == "ana")
        let sent = try #require(refreshes(provider).first)
        #expect(sent.text == "grant_type=refresh_token&refresh_token=refresh%2B1%26%3D%25&client_id=bank-app")
        #expect(try await provider.manager().storedTokens() == tokens)
        #expect(provider.sent("/authorize").count == 1)
    }

    @Test("A good token is used without asking anybody")
    func good() async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        let first = try await manager.tokens()
        let count = provider.exchanges.withLock { $0.count }
        for _ in 0..<10 { #expect(try await manager.tokens() == first) }
        #expect(provider.exchanges.withLock { $0.count } == count)
    }

    @Test("Good tokens and the session are told at once: nobody waits for a turn of the manager")
    func atOnce() async throws {
        guard #available(macOS 26, iOS 26, *) else { return }
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        _ = try await manager.tokens()
        let expected = try await manager.tokens()
        let told = Locked<(tokens: TokenSet?, session: Session?)>((nil, nil))
        let asking = Task.immediate {
            let tokens = try await manager.tokens()
            let session = try await manager.session()
            told.withLock { $0 = (tokens, session) }
        }
        // Before anybody waits for that task.
        let (tokens, session) = told.withLock { $0 }
        try await asking.value
        #expect(tokens == expected && session != nil)
    }

    @Test(
        "The threshold is the configured one, also for a token that was just asked for",
        arguments: [(0, 599, 0), (0, 600, 1), (300, 299, 0), (300, 300, 1), (599, 0, 0), (599, 1, 1)]
            as [(TimeInterval, TimeInterval, Int)])
    func threshold(renewBefore: TimeInterval, age: TimeInterval, count: Int) async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn { $0.renewBefore = renewBefore }
        _ = try await manager.tokens()
        for step in [age, 0] {
            provider.clock.advance(by: step)
            _ = try await manager.tokens()
        }
        #expect(refreshes(provider).count == count)
    }

    @Test("A token that was handed out a moment before its threshold is renewed a moment after it")
    func acrossThreshold() async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        _ = try await manager.tokens()
        provider.clock.advance(by: 539.7)
        _ = try await manager.tokens()
        #expect(refreshes(provider).isEmpty)
        provider.clock.advance(by: 0.5)
        _ = try await manager.tokens()
        #expect(refreshes(provider).count == 1)
    }

    @Test("A thousand tasks that need a token make one request")
    func contention() async throws {
        let (provider, manager) = try await expired()
        let results = try await withThrowingTaskGroup(of: TokenSet.self) { group in
            for _ in 0..<1000 { group.addTask { try await manager.tokens() } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(results.count == 1000 && results.allSatisfy { $0.accessToken == Secret("access-2") })
        #expect(refreshes(provider).count == 1)
    }

    @Test("Several managers on one store, as in several processes, make one request")
    func processes() async throws {
        let (provider, _) = try await expired()
        let managers = try (0..<8).map { _ in try provider.manager() }
        try await withThrowingTaskGroup(of: TokenSet.self) { group in
            for index in 0..<200 { group.addTask { try await managers[index % 8].tokens() } }
            for try await tokens in group { #expect(tokens.accessToken == Secret("access-2")) }
        }
        #expect(refreshes(provider).count == 1)
    }

    @Test("A token that was refused is renewed once, however many were refused with it")
    func rejected() async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        let old = try await manager.tokens().accessToken
        try await withThrowingTaskGroup(of: TokenSet.self) { group in
            for _ in 0..<100 { group.addTask { try await manager.tokens(rejecting: old) } }
            for try await tokens in group { #expect(tokens.accessToken == Secret("access-2")) }
        }
        #expect(refreshes(provider).count == 1)
    }

    @Test("The old refresh token is kept when the server gives no other")
    func notRotated() async throws {
        let (_, manager) = try await expired { $0.rotates = false }
        #expect(try await manager.tokens().refreshToken == Secret("refresh+1&=%"))
        #expect(try await manager.storedTokens()?.refreshToken == Secret("refresh+1&=%"))
    }

    @Test(
        "Only invalid_grant removes tokens; anything else is thrown and may be tried again",
        arguments: [
            { throw HTTPTransportError(.connectFailed, "offline") },
            { throw HTTPTransportError(.connectionClosed, "lost", mayHaveHadEffect: true) },
            { HTTPReply(HTTPResponse(status: .serviceUnavailable)) }, { HTTPReply(HTTPResponse(status: .notFound)) },
            { HTTPReply(HTTPResponse(status: .badRequest), body: HTTPBody("invalid_grant")) },
            { .json(400, ["error": "Invalid Grant"]) }, { .json(400, ["error": "invalid_request"]) },
            { .json(400, ["error": ["invalid_grant"]]) }, { .json(429, [:]) },
            { .json(500, ["error": "server_error"]) },
            { .json(503, [:]) }, { HTTPReply(HTTPResponse(status: .ok), body: HTTPBody("<html>")) },
            { .json(200, [:]) }, { .json(302, [:]) },
        ] as [@Sendable () throws -> HTTPReply])
    func keeps(reply: @escaping @Sendable () throws -> HTTPReply) async throws {
        let (provider, manager) = try await expired { $0.tokenReply = { _ in try reply() } }
        await #expect(throws: TokenError.self) { try await manager.tokens() }
        #expect(try await manager.storedTokens()?.refreshToken == Secret("refresh+1&=%"))
        #expect(provider.sent("/authorize").count == 1)
        provider.change { $0.tokenReply = nil }
        #expect(try await manager.tokens().accessToken == Secret("access-2"))
    }

    @Test(
        "A client that may not refresh gets new tokens with the session, and keeps the old ones when that fails",
        arguments: [
            (400, "invalid_client"), (401, "invalid_client"), (400, "unauthorized_client"), (400, "invalid_scope"),
            (400, "unsupported_grant_type"),
        ])
    func refusedClient(status: Int, error: String) async throws {
        let (provider, manager) = try await expired {
            $0.tokenReply = { _ in .json(status, ["error": .string(error)]) }
        }
        let thrown = await #expect(throws: TokenError.self) { try await manager.tokens() }
        #expect(thrown?.code == .tokenRefused && thrown?.oauthError == error && thrown?.suggestion != nil)
        #expect(try await manager.storedTokens()?.refreshToken == Secret("refresh+1&=%"))
        #expect(try await manager.session() != nil)
        provider.change {
            $0.tokenReply = {
                $0["grant_type"] == "refresh_token" ? .json(status, ["error": .string(error)]) : nil
            }
        }
        #expect(try await manager.tokens().accessToken == Secret("access-2"))
        #expect(provider.sent("/authorize").count == 3)
    }

    @Test("A refusal without a reason is tried by the session, which is asked only then", arguments: [400, 401, 403])
    func withoutReason(status: Int) async throws {
        let (provider, manager) = try await expired {
            $0.tokenReply = {
                $0["grant_type"] == "refresh_token" ? HTTPReply(HTTPResponse(status: .init(code: status))) : nil
            }
        }
        #expect(try await manager.tokens().accessToken == Secret("access-2"))
        #expect(refreshes(provider).count == 1 && provider.sent("/authorize").count == 2)
    }

    @Test("A token that is nearly over still serves while the server cannot be reached")
    func stillGood() async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        let first = try await manager.tokens()
        provider.clock.advance(by: 570)
        provider.change { $0.tokenReply = { _ in throw HTTPTransportError(.connectFailed, "offline") } }
        #expect(try await manager.tokens() == first)
        await #expect(throws: TokenError.like(.transport)) { try await manager.tokens(rejecting: first.accessToken) }
    }

    @Test("After invalid_grant the session gets new tokens, once")
    func fallBack() async throws {
        let (provider, manager) = try await expired {
            $0.tokenReply = { $0["grant_type"] == "refresh_token" ? .json(400, ["error": "invalid_grant"]) : nil }
        }
        #expect(try await manager.tokens().accessToken == Secret("access-2"))
        #expect(refreshes(provider).count == 1 && provider.sent("/authorize").count == 2)
    }

    @Test("After invalid_grant without a session that is accepted the user must sign in, and is told why")
    func signIn() async throws {
        let (provider, manager) = try await expired {
            $0.tokenReply = { _ in .json(400, ["error": "invalid_grant"]) }
            $0.authorizeReply = { .json(401, [:]) }
        }
        let error = await #expect(throws: TokenError.self) { try await manager.tokens() }
        #expect(error?.code == .signInNeeded && error?.signInReason == .sessionRefused)
        #expect(try await manager.storedTokens() == nil)
        #expect(provider.sent("/authorize").count == 2)
    }

    @Test("A session that the server refuses is removed: nobody is signed in then, and nobody is asked again")
    func refusedSession() async throws {
        for location in [
            "https://am.example.com/am/?goto=%3Fstate=S", "\(redirectURI)?error=login_required&iss=I&state=S",
        ] {
            let provider = try FakeProvider()
            provider.change {
                $0.location = { good in
                    location.replacing("iss=I", with: "iss=\(PercentEncoding.encode(issuer))")
                        .replacing("state=S", with: "state=\(good["state"] ?? "")")
                }
            }
            let manager = try await provider.signedIn()
            let error = await #expect(throws: TokenError.self) { try await manager.tokens() }
            #expect(error?.signInReason == .sessionRefused && error?.suggestion == "Sign in.")
            #expect(try await manager.session() == nil)
            #expect(await provider.store.names().isEmpty)
            let again = await #expect(throws: TokenError.self) { try await manager.tokens() }
            #expect(again?.signInReason == .notSignedIn)
            #expect(provider.sent("/authorize").count == 1)
        }
    }

    @Test("Tokens that are still good outlive the session that the server refused, and it is asked once")
    func tokensOutliveSession() async throws {
        let provider = try FakeProvider()
        provider.change { $0.rotates = false }
        let manager = try await provider.signedIn()
        let first = try await manager.tokens()
        provider.clock.advance(by: 550)
        provider.change { $0.authorizeReply = { .json(401, ["error": "login_required"]) } }
        for _ in 0..<3 { #expect(try await manager.tokens() == first) }
        #expect(provider.sent("/authorize").count == 2)
        #expect(try await manager.session() == nil)
        provider.clock.advance(by: 60)
        let error = await #expect(throws: TokenError.self) { try await manager.tokens() }
        #expect(error?.signInReason == .expired)
    }

    @Test("A sign-in that happens while the server refuses the old session is not removed with it")
    func signInMeanwhile() async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        let store = provider.store
        let name = try #require(await store.names().first { $0.hasPrefix("session") })
        let old = try #require(await store.value(name)).value
        let isFirst = Locked(true)
        provider.change {
            $0.authorizeReply = {
                guard
                    isFirst.withLock({ first in
                        defer { first = false }; return first
                    })
                else {
                    throw HTTPTransportError(.connectFailed, "offline")
                }
                return .json(401, ["error": "login_required"])
            }
        }
        let race = ChangingStore(store) { update in
            guard update.name == name, update.value == nil else { return }
            try await store.update(name, to: old, expected: .any)
        }
        let other = TokenManager(
            configuration: manager.configuration, transport: InMemoryTransport { try await provider.answer($0) },
            store: race, clock: provider.clock)
        await #expect(throws: TokenError.like(.transport)) { try await other.tokens() }
        #expect(try await manager.session() != nil)
    }

    @Test("A refresh whose reply was lost is repeated with the same attempt, stored before it was sent")
    func lostReply() async throws {
        let seen = Locked<[String]>([])
        let (provider, manager) = try await expired {
            $0.discovery["assent_refresh_attempt_supported"] = true
            $0.tokenReply = { form in
                seen.withLock { $0.append(form["attempt_id"] ?? "none") }
                throw HTTPTransportError(.connectionClosed, "lost", mayHaveHadEffect: true)
            }
        }
        let fresh = try provider.manager()
        await #expect(throws: TokenError.like(.transport)) { try await fresh.tokens() }
        let again = try provider.manager()
        await #expect(throws: TokenError.like(.transport)) { try await again.tokens() }
        provider.change {
            $0.tokenReply = { form in
                seen.withLock { $0.append(form["attempt_id"] ?? "none") }
                return nil
            }
        }
        _ = try await again.tokens()
        provider.clock.advance(by: 601)
        _ = try await again.tokens()
        let ids = seen.withLock { $0 }
        #expect(ids.count == 4 && Set(ids[0...2]).count == 1 && ids[3] != ids[0] && !ids.contains("none"))
        _ = manager
    }

    @Test("Nothing is handed out that could not be stored")
    func unstorable() async throws {
        let (provider, _) = try await expired()
        let store = RefusingStore(provider.store)
        let manager = TokenManager(
            configuration: try TokenConfiguration(issuer: issuer, clientID: "bank-app", redirectURI: redirectURI),
            transport: InMemoryTransport { exchange in
                store.refuses.withLock { $0 = true }
                return .json(
                    200,
                    exchange.request.method == .post
                        ? ["access_token": "new", "refresh_token": "new", "expires_in": 60]
                        : .object(provider.behaviour.withLock { $0.discovery }))
            }, store: store, clock: provider.clock)
        await #expect(throws: TokenError.like(.storageFailed)) { try await manager.tokens() }
    }

    @Test("A refresh may not bring another user's ID token")
    func otherUser() async throws {
        let (provider, manager) = try await expired()
        let other = Locked("")
        provider.change {
            $0.claims = {
                $0["sub"] = "bob"; $0["at_hash"] = nil
            }
        }
        let token = try await provider.idToken(access: "x")
        other.withLock { $0 = token }
        provider.change {
            $0.tokenReply = { _ in
                .json(200, ["access_token": "b", "refresh_token": "r", "id_token": .string(token), "expires_in": 60])
            }
        }
        await #expect(throws: TokenError.like(.invalidIDToken)) { try await manager.tokens() }
    }

    @Test(
        "A clock that was set wrong since the sign-in loses no refresh token: the ID token's times are not judged",
        arguments: [-86_400, -60, 60, 86_400] as [Int64])
    func wrongClock(ahead: Int64) async throws {
        let (provider, manager) = try await expired()
        let time = provider.clock.epochSeconds - ahead
        provider.change {
            $0.claims = {
                $0["iat"] = .integer(time)
                $0["exp"] = .integer(time + 30)
                $0["at_hash"] = nil
            }
        }
        let token = try await provider.idToken(access: "x")
        provider.change {
            $0.tokenReply = { _ in
                .json(200, ["access_token": "b", "refresh_token": "r", "id_token": .string(token), "expires_in": 60])
            }
        }
        let tokens = try await manager.tokens()
        #expect(tokens.refreshToken == Secret("r") && tokens.idToken?.text == Secret(token))
        #expect(try await manager.storedTokens() == tokens)
    }

    @Test(
        "A refresh token that has come is kept, and the old ID token, where the new one cannot be verified now",
        arguments: [
            HTTPTransportError(.connectFailed, "down"), HTTPTransportError(.cancelled, "stopped"), OwnError(),
        ] as [any Error])
    func noKeys(failure: any Error) async throws {
        let (provider, manager) = try await expired()
        // So long the provider's keys are used without asking again.
        provider.clock.advance(by: 86_400)
        let token = try await provider.idToken(access: "x")
        provider.change {
            $0.keysReply = { throw failure }
            $0.tokenReply = { _ in
                .json(200, ["access_token": "b", "refresh_token": "r", "id_token": .string(token), "expires_in": 60])
            }
        }
        let tokens = try await manager.tokens()
        #expect(tokens.refreshToken == Secret("r") && tokens.idToken?.subject == "ana")
        #expect(tokens.idToken?.text != Secret(token))
        #expect(try await manager.storedTokens() == tokens)
    }

    @Test("A new sign-in removes and revokes the tokens of the one before")
    func otherSession() async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        _ = try await manager.tokens()
        try await manager.install(Session(token: Secret("SESS")))
        #expect(try await manager.storedTokens() != nil)
        try await manager.install(Session(token: Secret("BOB")))
        #expect(try await manager.storedTokens() == nil)
        #expect(provider.sent("/token/revoke").first?.form["token"] == "refresh+1&=%")
        _ = try await manager.tokens()
        #expect(provider.sent("/authorize").last?.field("iPlanetDirectoryPro") == "BOB")
    }
}

/// A store in which something happens just before an update.
struct ChangingStore: SecretStore {
    typealias Update = (name: String, value: Secret?)

    private let store: any SecretStore
    private let before: @Sendable (Update) async throws -> Void

    init(_ store: any SecretStore, before: @escaping @Sendable (Update) async throws -> Void) {
        self.store = store
        self.before = before
    }

    func value(_ name: String) async throws -> StoredSecret? { try await store.value(name) }
    func update(_ name: String, to value: Secret?, expected: ExpectedVersion) async throws -> UInt64 {
        try await before((name, value))
        return try await store.update(name, to: value, expected: expected)
    }
    func names() async throws -> [String] { try await store.names() }
    func removeAll() async throws { try await store.removeAll() }
    func lease(_ name: String, deadline: Date) async throws -> any SecretLease {
        try await store.lease(name, deadline: deadline)
    }
}

/// A store that refuses updates once it is told to.
struct RefusingStore: SecretStore {
    let refuses = Locked(false)
    private let store: any SecretStore
    private let code: SecretStoreError.Code

    init(_ store: any SecretStore, with code: SecretStoreError.Code = .storageFailed) {
        self.store = store
        self.code = code
    }

    func value(_ name: String) async throws -> StoredSecret? { try await store.value(name) }
    func update(_ name: String, to value: Secret?, expected: ExpectedVersion) async throws -> UInt64 {
        if refuses.withLock({ $0 }) { throw SecretStoreError(code, "disk full") }
        return try await store.update(name, to: value, expected: expected)
    }
    func names() async throws -> [String] { try await store.names() }
    func removeAll() async throws { try await store.removeAll() }
    func lease(_ name: String, deadline: Date) async throws -> any SecretLease {
        try await store.lease(name, deadline: deadline)
    }
}
