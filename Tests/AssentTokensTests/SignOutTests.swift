import AssentCore
import AssentJOSE
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

@Suite struct SignOutTests {
    @Test("Signing out forgets everything first and revokes the refresh token")
    func signOut() async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        _ = try await manager.tokens()
        // What is left in the store when the server hears of it.
        let left = Locked<[[String]]>([])
        provider.change {
            $0.other = { [store = provider.store] _ in
                let names = await store.names().filter { !$0.hasPrefix("signout.") }
                left.withLock { $0.append(names) }
                return HTTPReply(HTTPResponse(status: .ok))
            }
        }
        #expect(await provider.store.names().isEmpty == false)
        let result = await manager.signOut()
        #expect(left.withLock { !$0.isEmpty && $0.allSatisfy(\.isEmpty) })
        #expect(result.isComplete && result.session?.token == Secret("SESS"))
        let sent = try #require(provider.sent("/token/revoke").first)
        #expect(sent.text == "token=refresh%2B1%26%3D%25&token_type_hint=refresh_token&client_id=bank-app")
        #expect(provider.sent("/endSession").isEmpty)
        #expect(try await manager.session() == nil)
        #expect(try await manager.storedTokens() == nil)
        #expect(await provider.store.names().isEmpty)
        let error = await #expect(throws: TokenError.self) { try await manager.tokens() }
        #expect(error?.signInReason == .notSignedIn)
    }

    @Test(
        "Whatever the server says, nothing stays here, and what it was not told is named",
        arguments: [
            { throw HTTPTransportError(.connectFailed, "offline") }, { HTTPReply(HTTPResponse(status: .badRequest)) },
            { .json(500, ["error": "server_error"]) }, { .json(302, [:]) },
        ] as [@Sendable () throws -> HTTPReply])
    func offline(reply: @escaping @Sendable () throws -> HTTPReply) async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        _ = try await manager.tokens()
        provider.change { $0.other = { _ in try reply() } }
        let result = await manager.signOut()
        #expect(result.undone.map(\.step) == [.revokeTokens] && !result.isComplete && result.localFailure == nil)
        #expect(await provider.store.names().allSatisfy { $0.hasPrefix("signout.") })
    }

    @Test("Without an AM session the provider's own session is ended by the ID token")
    func endSession() async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        let tokens = try await manager.tokens()
        let names = await provider.store.names()
        let session = try #require(names.first { $0.hasPrefix("session") })
        try await provider.store.update(session, to: nil, expected: .any)
        provider.clock.advance(by: 6)
        _ = await manager.signOut()
        let sent = try #require(provider.sent("/endSession").first)
        #expect(sent.query["id_token_hint"] == tokens.idToken?.text.reveal() && sent.query["client_id"] == "bank-app")
    }

    /// Asks for tokens, and returns when the server has the request. It answers when the continuation yields.
    private func asking(
        _ manager: TokenManager, of provider: FakeProvider
    ) async -> (asking: Task<TokenSet, any Error>, release: AsyncStream<Void>.Continuation) {
        let (began, begin) = AsyncStream.makeStream(of: Void.self)
        let (released, release) = AsyncStream.makeStream(of: Void.self)
        provider.change {
            $0.tokenReply = { _ in
                begin.yield()
                for await _ in released { break }
                return nil
            }
        }
        let asking = Task { try await manager.tokens() }
        for await _ in began { break }
        return (asking, release)
    }

    /// Signs out, while somebody else is at work for longer than the sign-out waits.
    private func signOutWithoutWaiting(_ manager: TokenManager, of provider: FakeProvider) async -> SignOutResult {
        let out = Task { await manager.signOut() }
        while provider.clock.sleeperCount == 0, !Task.isCancelled { await Task.yield() }
        provider.clock.advance(by: 21)
        return await out.value
    }

    @Test("A refresh that is under way while the user signs out brings nothing back")
    func race() async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        _ = try await manager.tokens()
        provider.clock.advance(by: 601)
        let (refresh, release) = await asking(manager, of: provider)
        let out = Task { await manager.signOut() }
        for _ in 0..<100 { await Task.yield() }
        release.yield()
        _ = try? await refresh.value
        _ = await out.value
        #expect(await provider.store.names().isEmpty)
        await #expect(throws: TokenError.like(.signInNeeded)) { try await manager.tokens() }
    }

    /// Signs out while tokens are asked for, so slowly that the sign-out waits no longer. The server answers when this
    /// returns.
    private func signOutDuringRenewal(
        of provider: FakeProvider, _ manager: TokenManager, over other: TokenManager
    ) async throws -> Task<TokenSet, any Error> {
        let (late, release) = await asking(manager, of: provider)
        _ = await signOutWithoutWaiting(other, of: provider)
        release.yield()
        return late
    }

    @Test(
        "The first tokens of a session that come after a sign-out has waited long enough are not kept, but revoked",
        arguments: [true, false])
    func lateFirstTokens(isSameManager: Bool) async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        let other = try isSameManager ? manager : provider.manager()
        let asking = try await signOutDuringRenewal(of: provider, manager, over: other)
        await #expect(throws: TokenError.like(.signInNeeded)) { try await asking.value }
        #expect(provider.sent("/token/revoke").map { $0.form["token"] } == ["refresh+1&=%", "access-1"])
        #expect(await provider.store.names().isEmpty)
        provider.change { $0.tokenReply = nil }
        await #expect(throws: TokenError.like(.signInNeeded)) { try await manager.tokens() }
    }

    @Test("The successors of tokens that come after such a sign-out are revoked as well: it knew only those before")
    func lateSuccessors() async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        _ = try await manager.tokens()
        provider.clock.advance(by: 601)
        let asking = try await signOutDuringRenewal(of: provider, manager, over: manager)
        await #expect(throws: TokenError.like(.signInNeeded)) { try await asking.value }
        #expect(
            provider.sent("/token/revoke").map { $0.form["token"] }
                == ["refresh+1&=%", "access-1", "refresh+2&=%", "access-2"])
        #expect(await provider.store.names().isEmpty)
    }

    @Test("First tokens that are stored while such a sign-out forgets are forgotten and revoked as well")
    func firstTokensBetween() async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        _ = try await manager.tokens()
        let name = try #require(await provider.store.names().first { $0.hasPrefix("tokens.") })
        let stored = try #require(try await provider.store.value(name))
        try await provider.store.update(name, to: nil, expected: .any)
        // A renewal that holds the lease stores them just before the session goes.
        let store = ChangingStore(provider.store) { [inner = provider.store] update in
            guard update.name.hasPrefix("session."), update.value == nil else { return }
            try await inner.update(name, to: stored.value, expected: .any)
        }
        let leaving = TokenManager(
            configuration: manager.configuration, transport: InMemoryTransport { try await provider.answer($0) },
            store: store, clock: provider.clock)
        let lease = try await provider.store.lease(name, deadline: .distantFuture)
        #expect(await signOutWithoutWaiting(leaving, of: provider).isComplete)
        await lease.release()
        #expect(provider.sent("/token/revoke").map { $0.form["token"] } == ["refresh+1&=%", "access-1"])
        #expect(await provider.store.names().isEmpty)
    }

    @Test("A store that refuses is told as a local failure")
    func localFailure() async throws {
        let provider = try FakeProvider()
        _ = try await provider.signedIn().tokens()
        let store = RefusingStore(provider.store)
        store.refuses.withLock { $0 = true }
        let manager = TokenManager(
            configuration: try TokenConfiguration(issuer: issuer, clientID: "bank-app", redirectURI: redirectURI),
            transport: InMemoryTransport { _ in .json(500, [:]) }, store: store, clock: provider.clock)
        let result = await manager.signOut()
        #expect(result.localFailure?.code == .storageFailed)
        // The server did not answer, and what it was to hear could not be noted either.
        #expect(result.undone.map(\.step) == [.revokeTokens] && result.undone.allSatisfy { !$0.isKept })
    }

    @Test("Claims about the user are about this user, and a refused token is renewed once")
    func userInfo() async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        provider.change { $0.other = { _ in .json(200, ["sub": "ana", "name": "Ana"]) } }
        #expect(try await manager.userInfo()["name"] == "Ana")
        #expect(provider.sent("/userinfo").first?.field("Authorization") == "Bearer access-1")
        provider.change { $0.other = { _ in .json(200, ["sub": "bob"]) } }
        await #expect(throws: TokenError.like(.userInfoRefused)) { try await manager.userInfo() }
        provider.change {
            $0.other = {
                $0.field("Authorization") == "Bearer access-1"
                    ? .json(401, ["error": "invalid_token"]) : .json(200, ["sub": "ana"])
            }
        }
        #expect(try await manager.userInfo()["sub"] == "ana")
        provider.change { $0.other = { _ in .json(401, [:]) } }
        await #expect(throws: TokenError.like(.userInfoRefused)) { try await manager.userInfo() }
    }

    @Test("No description, mirror or dump shows a token")
    func secrecy() async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        let tokens = try await manager.tokens()
        var shown = "\(tokens) \(String(reflecting: tokens)) \(tokens.idToken.map { "\($0)" } ?? "")"
        dump(tokens, to: &shown)
        let result = await manager.signOut()
        dump(result, to: &shown)
        for secret in ["access-1", "refresh+1", "SESS", "ana", tokens.idToken?.text.reveal() ?? "?"] {
            #expect(!shown.contains(secret))
        }
    }
}
