import AssentCore
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

/// A browser that brings redirects one after the other until one is accepted.
private struct FakeBrowser: RedirectReceiver {
    struct NothingCame: Error {}

    var redirectURI = "http://127.0.0.1:50123/callback"
    let refused = Locked<[String]>([])
    var redirects: @Sendable (_ request: FormItems) -> [String]

    func receive(opening url: String, accepting accepts: @escaping @Sendable (String) -> Bool) async throws -> String {
        let request = try FormEncoding.parse(URLText.query(of: url)?.text ?? "")
        for redirect in redirects(request) {
            if accepts(redirect) { return redirect }
            refused.withLock { $0.append(redirect) }
        }
        throw NothingCame()
    }
}

@Suite struct BrowserSignInTests {
    private static let uri = "http://127.0.0.1:50123/callback"

    /// The answer of a server that behaves well.
    private static func good(_ request: FormItems) -> String {
        var answer = FormItems()
        answer.append("code", "c0de+/=&")
        answer.append("iss", issuer)
        answer.append("state", request["state"] ?? "")
        return "\(uri)?\(FormEncoding.encode(answer))"
    }

    /// A browser; the provider learns the nonce as it would at the authorization endpoint.
    private func browser(
        _ provider: FakeProvider, _ redirects: @escaping @Sendable (FormItems) -> [String] = { [good($0)] }
    ) -> FakeBrowser {
        FakeBrowser { request in
            provider.change { $0.nonce = request["nonce"] ?? "" }
            return redirects(request)
        }
    }

    @Test("The tokens of a sign-in in a browser are bound, unless the key has gone while the user was there")
    func bound() async throws {
        for isRemoved in [false, true] {
            let provider = try FakeProvider()
            let (door, ring) = (ProofDoor(provider.clock, nonce: "n"), KeyRing())
            provider.binds(door)
            let manager = try provider.manager(redirectURI: "http://127.0.0.1/callback") { $0.dpop = .on(keys: ring) }
            let hash = Locked<String?>(nil)
            let browser = browser(provider) { request in
                hash.withLock { $0 = request["dpop_jkt"] }
                if isRemoved { ring.change { $0.keys = [:] } }
                return [Self.good(request)]
            }
            if isRemoved {
                let error = await #expect(throws: TokenError.self) { try await manager.signIn(through: browser) }
                #expect(error?.signInReason == .keyLost)
                #expect(try await manager.storedTokens() == nil)
                #expect(!provider.sent("/token/revoke").isEmpty)
            } else {
                let tokens = try await manager.signIn(through: browser).tokens
                #expect(tokens.isBound && tokens.keyThumbprint == hash.withLock { $0 })
                #expect(try await provider.bound(ring).tokens() == tokens)
            }
            #expect(door.asked == 2 && ring.made == 1)
        }
    }

    @Test("A browser brings a code; the tokens are checked, stored, and live by their refresh token without a session")
    func story() async throws {
        let provider = try FakeProvider()
        let manager = try provider.manager(redirectURI: "http://127.0.0.1/callback")
        let seen = Locked(FormItems())
        let browser = browser(provider) { request in
            seen.withLock { $0 = request }
            return [Self.good(request)]
        }
        let signIn = try await manager.signIn(
            through: browser, parameters: [.init("login_hint", "ana"), .init("state", "fixed"), .init("scope", "all")])
        #expect(signIn.tokens.accessToken == Secret("access-1") && signIn.tokens.idToken?.subject == "ana")
        #expect(signIn.replacedSession == nil && signIn.tokens.sessionFingerprint == nil)
        let request = seen.withLock { $0 }
        #expect(request["redirect_uri"] == Self.uri && request["login_hint"] == "ana")
        #expect(request[all: "state"].count == 1 && request["state"] != "fixed")
        #expect(request[all: "scope"] == ["openid accounts"] && request["code_challenge_method"] == "S256")
        let exchange = try #require(provider.sent("/access_token").first)
        #expect(exchange.form["redirect_uri"] == Self.uri && exchange.form["code"] == "c0de+/=&")
        #expect(
            request["code_challenge"]
                == Base64URL.encode(SHA2.sha256((exchange.form["code_verifier"] ?? "").utf8)))
        #expect(exchange.field("iPlanetDirectoryPro") == nil)

        #expect(try await provider.manager().storedTokens() == signIn.tokens)
        provider.clock.advance(by: 601)
        #expect(try await manager.tokens().accessToken == Secret("access-2"))
        #expect(provider.sent("/authorize").isEmpty)
        provider.clock.advance(by: 601)
        provider.change { $0.tokenReply = { _ in .json(400, ["error": "invalid_grant"]) } }
        let error = await #expect(throws: TokenError.self) { try await manager.tokens() }
        #expect(error?.signInReason == .refreshRefused)
    }

    @Test(
        "What does not belong to this request is not taken, and the right answer still counts",
        arguments: [
            "U?code=evil&iss=I", "U?code=evil&iss=I&state=", "U?code=evil&iss=I&state=Sx", "U?code=evil&iss=I&state=s",
            "U?code=evil&iss=I&state=S&state=S", "U?error=access_denied", "U?error=access_denied&state=x", "U", "U?",
            "U2?code=evil&iss=I&state=S", "http://127.0.0.1:50124/callback?code=evil&iss=I&state=S",
            "https://evil.example/callback?code=evil&iss=I&state=S", "U?code=evil&iss=I&state=%zz", "U#state=S",
        ])
    func foreign(template: String) async throws {
        let provider = try FakeProvider()
        let manager = try provider.manager()
        let browser = browser(provider) { request in
            let filled = template.replacing("U", with: Self.uri).replacing("I", with: PercentEncoding.encode(issuer))
                .replacing("state=S", with: "state=\(request["state"] ?? "")")
            return [filled, Self.good(request)]
        }
        _ = try await manager.signIn(through: browser)
        #expect(browser.refused.withLock { $0.count } == 1)
        #expect(provider.sent("/access_token").map { $0.form["code"] } == ["c0de+/=&"])
    }

    @Test(
        "An answer with the right state ends the sign-in, and a bad one gives nothing",
        arguments: [
            ("code=c&state=S", .foreignAnswer, nil),
            ("code=c&iss=https%3A%2F%2Fevil.example&state=S", .foreignAnswer, nil),
            ("code=c&iss=&state=S", .foreignAnswer, nil), ("code=c&iss=I&iss=I&state=S", .malformedReply, nil),
            ("code=c&code=d&iss=I&state=S", .malformedReply, nil), ("iss=I&state=S", .malformedReply, nil),
            ("error=access_denied&iss=I&state=S", .authorizationRefused, "access_denied"),
            ("error=access_denied&state=S", .foreignAnswer, nil),
            ("error=consent_required&iss=I&state=S", .authorizationRefused, "consent_required"),
            ("error=%1B%5B2J&iss=I&state=S", .authorizationRefused, "unknown"),
            ("error=login_required&code=c&iss=I&state=S", .authorizationRefused, "login_required"),
        ] as [(String, TokenError.Code, String?)])
    func refused(template: String, code: TokenError.Code, oauthError: String?) async throws {
        let provider = try FakeProvider()
        let manager = try provider.manager()
        let browser = browser(provider) { request in
            let filled = template.replacing("I", with: PercentEncoding.encode(issuer))
                .replacing("state=S", with: "state=\(request["state"] ?? "")")
            return ["\(Self.uri)?\(filled)", Self.good(request)]
        }
        let error = await #expect(throws: TokenError.self) { try await manager.signIn(through: browser) }
        #expect(error?.code == code && error?.oauthError == oauthError)
        #expect(provider.sent("/access_token").isEmpty)
        #expect(try await manager.storedTokens() == nil)
    }

    @Test(
        "A receiver's failure, a refused code and an ID token that does not hold leave who was signed in as they were")
    func failures() async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        let before = try await manager.tokens()
        await #expect(throws: FakeBrowser.NothingCame.self) {
            try await manager.signIn(through: browser(provider) { _ in [] })
        }
        provider.change { $0.tokenReply = { _ in .json(400, ["error": "invalid_grant"]) } }
        await #expect(throws: TokenError.like(.tokenRefused)) { try await manager.signIn(through: browser(provider)) }
        provider.change {
            $0.tokenReply = nil
            $0.claims = { $0["nonce"] = "another" }
        }
        await #expect(throws: TokenError.like(.invalidIDToken)) { try await manager.signIn(through: browser(provider)) }
        provider.change { $0.discoveryReply = { throw HTTPTransportError(.connectFailed, "down") } }
        let other = try provider.manager()
        await #expect(throws: TokenError.like(.transport)) { try await other.signIn(through: browser(provider)) }
        #expect(try await manager.storedTokens() == before)
        #expect(try await manager.session()?.token == Secret("SESS"))
    }

    @Test("Another user's sign-in in a browser meets neither session nor tokens of the one before")
    func otherUser() async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        let old = try await manager.tokens()
        provider.change { $0.claims = { $0["sub"] = "bob" } }
        let signIn = try await manager.signIn(through: browser(provider))
        #expect(signIn.replacedSession?.token == Secret("SESS"))
        #expect(try await manager.session() == nil)
        #expect(try await manager.tokens() == signIn.tokens && signIn.tokens.accessToken != old.accessToken)
        #expect(signIn.tokens.idToken?.subject == "bob")
        let revoked = provider.sent("/token/revoke").map { $0.form["token"] }
        #expect(revoked == [old.refreshToken?.reveal(), old.accessToken.reveal()])
        // A later sign-in by a journey takes over in the same way.
        try await manager.install(Session(token: Secret("NEXT")))
        #expect(try await manager.storedTokens() == nil)
        #expect(provider.sent("/token/revoke").last?.form["token"] == signIn.tokens.accessToken.reveal())
    }

    @Test("A sign-in that is cancelled while it waits to be stored leaves no valid tokens at the server")
    func cancelled() async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        let before = try await manager.tokens()
        let revoked = Locked<[String?]>([])
        provider.change {
            $0.other = { exchange in
                try Task.checkCancellation()
                revoked.withLock { $0.append(exchange.form["token"]) }
                return .json(200, [:])
            }
        }
        let name = try #require(await provider.store.names().first { $0.hasPrefix("tokens.") })
        let lease = try await provider.store.lease(name, deadline: .distantFuture)
        let browser = browser(provider)
        let signIn = Task { try await manager.signIn(through: browser) }
        while provider.sent("/access_token").count < 2 { await Task.yield() }
        signIn.cancel()
        await #expect(throws: CancellationError.self) { try await signIn.value }
        #expect(revoked.withLock { $0 } == ["refresh+2&=%", "access-2"])
        await lease.release()
        #expect(try await manager.storedTokens() == before)
    }

    @Test("Who signs in while the tokens before are revoked is not the user who has just come from the browser")
    func anotherMeanwhile() async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        _ = try await manager.tokens()
        let isFirst = Locked<Bool?>(true)
        provider.change {
            $0.other = { _ in
                if isFirst.withLock({ $0.take() }) != nil {
                    try await manager.install(Session(token: Secret("BOB")))
                }
                return .json(200, [:])
            }
        }
        let signIn = try await manager.signIn(through: browser(provider))
        await #expect(throws: TokenError.like(.sessionChanged)) { try await signIn.user.tokens() }
        #expect(try await manager.tokens().accessToken != signIn.tokens.accessToken)
    }

    @Test("Tokens that cannot be stored are revoked and not handed out")
    func unstorable() async throws {
        let provider = try FakeProvider()
        let store = RefusingStore(provider.store)
        let discovery = provider.behaviour.withLock { $0.discovery }
        let revoked = Locked<[String]>([])
        let manager = TokenManager(
            configuration: try TokenConfiguration(
                issuer: issuer, clientID: "bank-app", redirectURI: redirectURI, scopes: []),
            transport: InMemoryTransport { exchange in
                if exchange.request.method == .get { return .json(200, .object(discovery)) }
                store.refuses.withLock { $0 = true }
                if let token = exchange.form["token"] { revoked.withLock { $0.append(token) } }
                return .json(200, ["access_token": "a", "refresh_token": "r", "expires_in": 60])
            }, store: store, clock: provider.clock)
        await #expect(throws: TokenError.like(.storageFailed)) { try await manager.signIn(through: browser(provider)) }
        #expect(revoked.withLock { $0 } == ["r", "a"])
    }
}
