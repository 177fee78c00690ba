import Assent
import AssentTesting
import Foundation
import HTTPTypes
import TestSupport
import Testing

@Suite("The façade's users") struct LoginTests {
    /// Seconds for a user who comes in any case.
    private static let unhurried = Double(Patience.seconds)

    /// Opens nothing: asks the loopback address itself, as a browser does at the end of a sign-in.
    private func browser(_ change: @escaping @Sendable (String) -> String = { $0 }) -> @Sendable (String) -> Void {
        { url in
            let query = URLText.query(of: url)
            let uri = query?[all: "redirect_uri"].first ?? ""
            let state = query?[all: "state"].first ?? ""
            Task {
                let transport = try NIOTransport(
                    configuration: NIOTransportConfiguration(
                        trustRoots: .system, pins: [:], allowPlaintextLoopback: true
                    ).withLeastLimit(.seconds(Patience.seconds)))
                let redirect = try HTTPCall(.get, url: change("\(uri)?code=c&state=\(state)"))
                // The port lets nobody be silent for ten seconds, as a machine that stands still may be.
                for _ in 0..<20 {
                    let reply = try? await transport.send(redirect)
                    if reply != nil { break }
                }
                await transport.shutdown()
            }
        }
    }

    private func assent(_ servers: Servers) throws -> Assent {
        try servers.assent { $0.client.redirectURI = "http://127.0.0.1/callback" }
    }

    @Test("A browser signs in; the user has tokens without a session, and replaces who was there before")
    func login() async throws {
        let servers = Servers()
        let assent = try assent(servers)
        try await assent.journey("Login") { step in
            step[NameCallback.self]?.name = "ana"
            return .next
        }
        _ = try await assent.user()?.token()
        _ = try await assent.send(.get("https://api.bank.example/balanced"))
        let user = try await assent.signIn(timeout: Self.unhurried, browser: browser())
        #expect(user.session == nil)
        #expect(try await user.token().accessToken == Secret("access"))
        #expect(servers.sent("/token/revoke").count == 2)
        #expect(servers.sent("/sessions?_action=logout").first?.text == #"{"tokenId":"SESS"}"#)
        #expect(try await assent.user()?.session == nil)
        #expect(try await assent.send(.get("https://api.bank.example/accounts")).status == 200)
        // The cookie of the user before is not sent.
        #expect(servers.sent("/accounts").last?.request.headerFields[.cookie] == nil)
        let redirect = try #require(servers.sent("/access_token").last).text
        #expect(redirect.contains("redirect_uri=http%3A%2F%2F127.0.0.1%3A"))
    }

    @Test("A server that says no is told as such; nobody who comes is told in time; a cancelled sign-in ends")
    func failures() async throws {
        let servers = Servers()
        let assent = try assent(servers)
        let denied = await #expect(throws: TokenError.self) {
            try await assent.signIn(
                timeout: Self.unhurried, browser: browser { $0.replacing("code=c", with: "error=access_denied") })
        }
        #expect(denied?.code == .authorizationRefused && denied?.oauthError == "access_denied")
        let late = await #expect(throws: NIOTransportError.self) {
            try await assent.signIn(timeout: 0.05) { _ in }
        }
        #expect(late?.code == .noRedirect)
        let (began, begin) = AsyncStream.makeStream(of: Void.self)
        let waiting = Task { try await assent.signIn(timeout: Self.unhurried) { _ in begin.finish() } }
        for await _ in began {}
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        await #expect(throws: NIOTransportError.self) { try await servers.assent().signIn { _ in } }
        #expect(try await assent.user() == nil)
    }

    @Test("What a user can do: refresh, revoke, claims, sign out")
    func user() async throws {
        let servers = Servers()
        let assent = try servers.assent()
        try await assent.journey("Login") { step in
            step[NameCallback.self]?.name = "ana"
            return .next
        }
        let user = try #require(try await assent.user())
        _ = try await user.token()
        #expect(servers.sent("/access_token").count == 1)
        try await user.refresh()
        #expect(servers.sent("/access_token").count == 2)
        #expect(try await user.userInfo()["name"]?.string == "Ana")
        let asked = try #require(servers.sent("/userinfo").first).request.headerFields
        #expect(asked[.authorization] == "Bearer access-2")
        #expect(await user.revoke().isComplete)
        #expect(servers.sent("/token/revoke").count == 2 && servers.sent("_action=logout").isEmpty)
        #expect(try await assent.user()?.session != nil)
        _ = try await user.token()
        #expect(servers.sent("/authorize").count == 2)
        #expect(await user.signOut().isComplete)
        #expect(try await assent.user() == nil)
    }

    /// An SDK where Bob has signed in, and Ana, whom the app has kept from before.
    private static func kept(by servers: Servers) async throws -> (assent: Assent, ana: Assent.User) {
        let assent = try servers.assent()
        try await assent.tokens.install(Session(token: Secret("ANA")))
        let ana = try #require(try await assent.user())
        _ = try await ana.token()
        try await assent.tokens.install(Session(token: Secret("BOB")))
        return (assent, ana)
    }

    @Test("A user whom the app keeps for longer than the sign-in gives nobody else's tokens and claims")
    func keptUser() async throws {
        let servers = Servers()
        let (assent, ana) = try await Self.kept(by: servers)
        await #expect(throws: TokenError(.sessionChanged, "")) { try await ana.token() }
        await #expect(throws: TokenError(.sessionChanged, "")) { try await ana.refresh() }
        await #expect(throws: TokenError(.sessionChanged, "")) { try await ana.userInfo() }
        #expect(servers.sent("/userinfo").isEmpty)
        let bob = try #require(try await assent.user())
        #expect(try await bob.userInfo()["name"]?.string == "Ana")
        _ = await assent.signOut()
        await #expect(throws: TokenError(.signInNeeded, "")) { try await bob.token() }
    }

    @Test("A user whom the app keeps for longer than the sign-in revokes and ends nothing of who has signed in since")
    func keptUserSignsOut() async throws {
        let servers = Servers()
        let (assent, ana) = try await Self.kept(by: servers)
        let bob = try #require(try await assent.user())
        let access = try await bob.token().accessToken
        let revoked = servers.sent("/token/revoke").count
        #expect(await ana.revoke().localFailure?.code == .sessionChanged)
        #expect(await ana.signOut().localFailure?.code == .sessionChanged)
        #expect(servers.sent("/token/revoke").count == revoked && servers.sent("_action=logout").isEmpty)
        #expect(try await bob.token().accessToken == access)
        #expect(await bob.signOut().isComplete)
        #expect(servers.sent("_action=logout").count == 1)
        // Nobody is signed in, so that nothing is left to do.
        #expect(await ana.signOut().isComplete)
        #expect(await bob.revoke().isComplete)
    }

    /// A layer of the app's own that keeps a sign-out back until its task is cancelled, or fails.
    private struct HeldSignOut: HTTPMiddleware {
        struct OwnError: Error {}

        let isCancelled: Bool
        let isHeld = Locked(true)
        let asked = AsyncStream.makeStream(of: Void.self)

        func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply {
            let isSignOut = ["_action=logout", "/token/revoke"].contains { call.request.path?.hasSuffix($0) == true }
            guard isSignOut, isHeld.withLock({ $0 }) else { return try await next.send(call) }
            asked.continuation.yield()
            guard isCancelled else { throw OwnError() }
            let (never, continuation) = AsyncStream.makeStream(of: Void.self)
            for await _ in never {}
            continuation.finish()
            throw CancellationError()
        }
    }

    @Test(
        "What a cancelled task, or a layer of the app's own, keeps the server from hearing at a sign-out is told later",
        arguments: [true, false])
    func interruptedSignOut(isCancelled: Bool) async throws {
        let servers = Servers()
        let held = HeldSignOut(isCancelled: isCancelled)
        let assent = try servers.assent { $0.layers = [held] }
        try await assent.tokens.install(Session(token: Secret("SESS")))
        _ = try await assent.tokens.tokens()
        let leaving = Task { await assent.signOut() }
        for await _ in held.asked.stream { break }
        if isCancelled { leaving.cancel() }
        let result = await leaving.value
        #expect(result.undone.map(\.step) == [.revokeTokens, .endSession] && result.undone.allSatisfy(\.isKept))
        #expect(try await assent.tokens.session() == nil)
        held.isHeld.withLock { $0 = false }
        #expect(try await assent.retrySignOuts().isEmpty)
        #expect(servers.sent("/token/revoke").count == 2)
        #expect(servers.sent("_action=logout").map(\.text) == [#"{"tokenId":"SESS"}"#])
    }

    @Test("A provider without a page to sign out at gets no browser, and all else is done")
    func browserSignOut() async throws {
        let servers = Servers()
        let assent = try assent(servers)
        _ = try await assent.signIn(timeout: Self.unhurried, browser: browser())
        let opened = Locked<[String]>([])
        let result = await assent.signOut { url in opened.withLock { $0.append(url) } }
        #expect(result.isComplete && opened.withLock { $0.isEmpty })
        #expect(try await assent.user() == nil)
        #expect(servers.sent("/token/revoke").count == 2)
    }

    /// A vault whose disk is full.
    private struct FullStore: SecretStore {
        private static let failure = SecretStoreError(.diskFull, "The disk is full.")

        func value(_ name: String) async throws -> StoredSecret? { throw Self.failure }

        func update(_ name: String, to value: Secret?, expected: ExpectedVersion) async throws -> UInt64 {
            throw Self.failure
        }

        func names() async throws -> [String] { throw Self.failure }

        func removeAll() async throws { throw Self.failure }

        func lease(_ name: String, deadline: Date) async throws -> any SecretLease { throw Self.failure }
    }

    @Test("A remembered user who cannot be looked for is told why, and not that the app's own code has failed")
    func fullStore() async throws {
        let place = FileManager.default.temporaryDirectory.appending(path: "assent-\(SystemRandom().uuid())")
        let assent = try Servers().assent {
            $0.vault = .store(FullStore())
            $0.deviceKeys = SoftwareKeyProvider(unprotectedFile: place)
        }
        let pin = await #expect(throws: ResourceError.self) { try await assent.logIn("ana", pin: Secret("0042")) }
        #expect(pin?.number == 9024 && pin?.detail == "The disk is full.")
        let implicit = await #expect(throws: ResourceError.self) {
            try await assent.userClient.implicitlyAuthenticate("ana", scopes: [])
        }
        #expect(implicit?.number == 9024 && implicit?.detail == "The disk is full.")
        let without = try Servers().assent()
        let none = await #expect(throws: ResourceError.self) {
            try await without.userClient.implicitlyAuthenticate("ana", scopes: [])
        }
        #expect(none?.number == 9026)
    }

    @Test("What a sign-out without a network left undone is done when the app asks again")
    func retry() async throws {
        let servers = Servers()
        let assent = try servers.assent()
        try await assent.journey("Login") { step in
            step[NameCallback.self]?.name = "ana"
            return .next
        }
        _ = try await assent.user()?.token()
        servers.offline.withLock { $0 = true }
        #expect(await assent.signOut().undone.filter(\.isKept).count == 2)
        #expect(try await assent.retrySignOuts().count == 2)
        servers.offline.withLock { $0 = false }
        #expect(try await assent.retrySignOuts().isEmpty)
        #expect(servers.sent("/token/revoke").dropLast().last?.text.contains("token=refresh") == true)
        #expect(servers.sent("_action=logout").last?.text == #"{"tokenId":"SESS"}"#)
        #expect(try await assent.retrySignOuts().isEmpty)
    }
}
