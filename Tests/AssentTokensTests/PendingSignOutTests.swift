import AssentCore
import AssentTesting
import AssentVault
import Foundation
import HTTPTypes
import Testing

@testable import AssentTokens

/// AM, as far as it ends sessions.
private final class FakeSessions: SessionEnding {
    let ended = Locked<[String]>([])
    let failure = Locked<TokenError?>(nil)

    func end(_ session: Session) async throws {
        if let failure = failure.withLock({ $0 }) { throw failure }
        ended.withLock { $0.append(session.token.reveal()) }
    }
}

@Suite struct PendingSignOutTests {
    private let sessions = FakeSessions()

    private func manager(_ provider: FakeProvider) throws -> TokenManager {
        TokenManager(
            configuration: try TokenConfiguration(
                issuer: issuer, clientID: "bank-app", redirectURI: redirectURI, scopes: ["openid", "accounts"]),
            transport: InMemoryTransport { try await provider.answer($0) }, store: provider.store,
            sessions: sessions, clock: provider.clock, random: SeededRandom(seed: 7))
    }

    /// Signs somebody in, so that there are tokens.
    private func signIn(_ manager: TokenManager, _ token: String) async throws -> TokenSet {
        try await manager.install(Session(token: Secret(token)))
        return try await manager.tokens()
    }

    private let offline = HTTPTransportError(.connectFailed, "offline")

    @Test("A record that cannot be read hides no other, and the server is not said to know of it")
    func hiddenBehindUnreadable() async throws {
        let provider = try FakeProvider()
        let manager = try manager(provider)
        _ = try await signIn(manager, "SESS")
        provider.change { $0.other = { _ in HTTPReply(HTTPResponse(status: .ok)) } }
        let session = try #require(await provider.store.names().first { $0.hasPrefix("session.") })
        try await provider.store.update(session, to: Secret("{}"), expected: .any)
        let result = await manager.signOut()
        #expect(provider.sent("/token/revoke").first?.text.contains("refresh") == true)
        #expect(result.undone.map(\.step) == [.endSession] && result.undone.allSatisfy { !$0.isKept })
        #expect(result.undone.first?.reason.contains("cannot be read") == true && !result.isComplete)
        #expect(await provider.store.names().isEmpty)
    }

    @Test("A session whose key cannot be used now is ended when it can, and one that the server refuses to end never")
    func lockedKey() async throws {
        for (code, isKept) in [(.keyUnavailable, true), (.signOutRefused, false)] as [(TokenError.Code, Bool)] {
            let provider = try FakeProvider()
            let manager = try manager(provider)
            _ = try await signIn(manager, "SESS")
            sessions.failure.withLock { $0 = TokenError(code, "The session is not ended.") }
            let result = await manager.signOut()
            #expect(result.undone.map(\.step) == [.endSession] && result.undone.map(\.isKept) == [isKept])
            sessions.failure.withLock { $0 = nil }
            #expect(try await manager.retrySignOuts().isEmpty)
            #expect(sessions.ended.withLock { $0 } == ["SESS"])
        }
    }

    @Test("What the network kept from being told is kept sealed, told when asked, and then gone")
    func retry() async throws {
        let provider = try FakeProvider()
        let manager = try manager(provider)
        let tokens = try await signIn(manager, "SESS")
        provider.change { $0.other = { [offline] _ in throw offline } }
        sessions.failure.withLock { $0 = TokenError(.transport, "offline", transportError: offline) }
        let result = await manager.signOut()
        #expect(result.undone.map(\.step) == [.revokeTokens, .endSession] && result.undone.allSatisfy(\.isKept))
        #expect(result.localFailure == nil && !result.isComplete)
        #expect(try await manager.session() == nil)
        #expect(try await manager.storedTokens() == nil)
        #expect(await provider.store.names().allSatisfy { $0.hasPrefix("signout.") })
        await #expect(throws: TokenError.like(.signInNeeded)) { try await manager.tokens() }

        #expect(try await manager.pendingSignOuts() == [.revokeTokens, .endSession])
        #expect(try await manager.retrySignOuts().map(\.step) == [.revokeTokens, .endSession])
        provider.change { $0.other = nil }
        #expect(try await manager.retrySignOuts().map(\.step) == [.endSession])
        sessions.failure.withLock { $0 = nil }
        // Another process, after a restart.
        let other = try self.manager(provider)
        #expect(try await other.retrySignOuts().isEmpty)
        #expect(
            provider.sent("/token/revoke").suffix(2).map { $0.form["token"] }
                == [tokens.refreshToken?.reveal(), tokens.accessToken.reveal()])
        #expect(sessions.ended.withLock { $0 } == ["SESS"])
        #expect(await provider.store.names().isEmpty)
        let count = provider.sent("/token/revoke").count
        #expect(try await other.retrySignOuts().isEmpty)
        #expect(provider.sent("/token/revoke").count == count)
    }

    @Test(
        "What the server refuses for good is named and not kept; what may pass is",
        arguments: [
            (400, false), (401, false), (403, false), (404, false), (302, false), (408, true), (429, true), (500, true),
            (503, true),
        ])
    func kept(status: Int, isKept: Bool) async throws {
        let provider = try FakeProvider()
        let manager = try manager(provider)
        _ = try await signIn(manager, "SESS")
        provider.change { $0.other = { _ in .json(status, ["error": "x"]) } }
        let result = await manager.signOut()
        #expect(result.undone.map(\.isKept) == [isKept])
        #expect(try await manager.pendingSignOuts().isEmpty == !isKept)
        #expect(await provider.store.names().isEmpty == !isKept)
    }

    @Test("A sign-out that is interrupted after everything is forgotten can still be told")
    func interrupted() async throws {
        let provider = try FakeProvider()
        let manager = try manager(provider)
        let tokens = try await signIn(manager, "SESS")
        provider.change { $0.other = { [offline] _ in throw offline } }
        // Killed while it tells the server, a process leaves behind what the server sees in the store at that moment.
        let (asked, ask) = AsyncStream.makeStream(of: [String].self)
        let watching = TokenManager(
            configuration: manager.configuration,
            transport: InMemoryTransport { [store = provider.store] exchange in
                if exchange.request.url?.hasSuffix("/token/revoke") == true { ask.yield(await store.names()) }
                return try await provider.answer(exchange)
            }, store: provider.store, sessions: sessions, clock: provider.clock)
        _ = await watching.signOut()
        var names: [String] = []
        for await seen in asked {
            names = seen
            break
        }
        #expect(names.count == 1 && names.allSatisfy { $0.hasPrefix("signout.") })
        provider.change { $0.other = nil }
        #expect(try await self.manager(provider).retrySignOuts().isEmpty)
        #expect(
            provider.sent("/token/revoke").suffix(2).map { $0.form["token"] }
                == [tokens.refreshToken?.reveal(), tokens.accessToken.reveal()])
    }

    @Test("No user's tokens meet another's: each is told alone, and none is ever handed out")
    func users() async throws {
        let provider = try FakeProvider()
        let manager = try manager(provider)
        let ana = try await signIn(manager, "ANA")
        provider.change { $0.other = { [offline] _ in throw offline } }
        sessions.failure.withLock { $0 = TokenError(.transport, "offline") }
        _ = await manager.signOut()
        let bob = try await signIn(manager, "BOB")
        #expect(bob.accessToken != ana.accessToken)
        #expect(try await manager.session()?.token == Secret("BOB"))
        provider.change { $0.other = nil }
        sessions.failure.withLock { $0 = nil }
        #expect(try await manager.retrySignOuts().isEmpty)
        #expect(sessions.ended.withLock { $0 } == ["ANA"])
        let told = provider.sent("/token/revoke").map { $0.form["token"] }
        #expect(told.suffix(2) == [ana.refreshToken?.reveal(), ana.accessToken.reveal()])
        #expect(!told.contains(bob.refreshToken?.reveal()) && !told.contains(bob.accessToken.reveal()))
        #expect(try await manager.tokens() == bob)
    }

    @Test("A caller that is cancelled keeps nothing from being forgotten")
    func cancelled() async throws {
        let provider = try FakeProvider()
        let manager = try manager(provider)
        _ = try await signIn(manager, "SESS")
        provider.change { $0.other = { _ in throw HTTPTransportError(.cancelled, "cancelled") } }
        let result = await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await manager.signOut()
        }.value
        #expect(result.localFailure == nil && result.undone.map(\.isKept) == [true])
        #expect(try await manager.storedTokens() == nil)
        #expect(try await manager.session() == nil)
        provider.change { $0.other = nil }
        #expect(try await manager.retrySignOuts().isEmpty)
    }

    @Test("At most so many things are kept, and none for longer than a month")
    func bounds() async throws {
        let provider = try FakeProvider()
        let manager = try manager(provider)
        provider.change { $0.other = { [offline] _ in throw offline } }
        for number in 0..<20 {
            _ = try await signIn(manager, "S\(number)")
            _ = await manager.signOut()
        }
        // What a sign-out adds makes room for itself, also what is then told at once.
        #expect(try await manager.pendingSignOuts().count == PendingSignOuts.limit - 1)
        provider.clock.advance(by: PendingSignOuts.lifetime)
        #expect(try await manager.pendingSignOuts().isEmpty)
        #expect(try await manager.retrySignOuts().isEmpty)
        #expect(await provider.store.names().isEmpty)
    }

    @Test("A record that cannot be read stands in nobody's way")
    func unreadable() async throws {
        let provider = try FakeProvider()
        let manager = try manager(provider)
        _ = try await signIn(manager, "SESS")
        provider.change { $0.other = { [offline] _ in throw offline } }
        _ = await manager.signOut()
        let name = try #require(await provider.store.names().first)
        for text in [
            "", "{", "[]", #"{"entries":5}"#, #"{"entries":[{},5,{"id":"x","step":"burn","secret":"y","since":1}]}"#,
        ] {
            try await provider.store.update(name, to: Secret(text), expected: .any)
            #expect(try await manager.retrySignOuts().isEmpty)
        }
        _ = try await signIn(manager, "NEXT")
        #expect(await manager.signOut().undone.count == 1)
    }

    @Test("Many sign-outs and retries at once lose nothing and repeat nothing for ever")
    func concurrent() async throws {
        let provider = try FakeProvider()
        let managers = try (0..<4).map { _ in try manager(provider) }
        provider.change { $0.other = { [offline] _ in throw offline } }
        for (number, manager) in managers.enumerated() {
            _ = try await signIn(manager, "S\(number)")
            _ = await manager.signOut()
        }
        provider.change { $0.other = nil }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for manager in managers { group.addTask { _ = try await manager.retrySignOuts() } }
            try await group.waitForAll()
        }
        #expect(await provider.store.names().isEmpty)
        let told = Set(provider.sent("/token/revoke").compactMap { $0.form["token"] })
        #expect(told.count == 8)
    }

    @Test("Revoking leaves the session, which gets new tokens; refreshing gets new ones though the old are good")
    func revokeAndRefresh() async throws {
        let provider = try FakeProvider()
        let manager = try manager(provider)
        let first = try await signIn(manager, "SESS")
        let result = await manager.revoke()
        #expect(result.isComplete && result.session == nil)
        #expect(
            provider.sent("/token/revoke").map { $0.form["token"] }
                == [first.refreshToken?.reveal(), first.accessToken.reveal()])
        #expect(try await manager.storedTokens() == nil)
        #expect(try await manager.session()?.token == Secret("SESS"))
        let second = try await manager.tokens()
        #expect(second.accessToken != first.accessToken)
        let third = try await manager.refresh()
        #expect(third.accessToken != second.accessToken)
        #expect(try await manager.tokens() == third)
        provider.change { $0.tokenReply = { _ in throw HTTPTransportError(.connectFailed, "offline") } }
        await #expect(throws: TokenError.like(.transport)) { try await manager.refresh() }
        #expect(try await manager.tokens() == third)
        #expect(sessions.ended.withLock { $0.isEmpty })
    }

    @Test("No description or dump of a result or an entry shows what is kept")
    func secrecy() async throws {
        let provider = try FakeProvider()
        let manager = try manager(provider)
        let tokens = try await signIn(manager, "S3SSION")
        provider.change { $0.other = { [offline] _ in throw offline } }
        sessions.failure.withLock { $0 = TokenError(.transport, "offline") }
        let result = await manager.signOut()
        let entries = try await manager.pending.load(now: provider.clock.now)
        #expect(entries.count == 2)
        var shown = "\(result) \(entries)"
        dump(result, to: &shown)
        dump(entries, to: &shown)
        for secret in ["S3SSION", tokens.refreshToken?.reveal() ?? "?", "access-1"] { #expect(!shown.contains(secret)) }
    }
}
