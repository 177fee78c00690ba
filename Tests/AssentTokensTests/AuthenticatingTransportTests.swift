import AssentCore
import AssentTesting
import AssentTokens
import AssentVault
import HTTPTypes
import Testing

private let bank = "https://api.bank.example"

/// A resource that refuses access tokens until a test says otherwise.
private final class Bank: Sendable {
    let exchanges = Locked<[InMemoryTransport.Exchange]>([])
    /// Which access token it accepts.
    let accepts = Locked("access-2")
    private let challenge: String?

    init(challenge: String?) { self.challenge = challenge }

    var tokens: [String?] { exchanges.withLock { $0.map { $0.field("Authorization") } } }

    func transport(_ provider: FakeProvider, access: ResourceAccess = .accessToken) throws -> AuthenticatingTransport {
        AuthenticatingTransport(
            try provider.manager(), resources: [try Origin(bank): access],
            over: InMemoryTransport { [self] exchange in
                exchanges.withLock { $0.append(exchange) }
                let good = "Bearer \(accepts.withLock { $0 })"
                if exchange.field("Authorization") == good { return .json(200, [:]) }
                var fields = HTTPFields()
                fields[.wwwAuthenticate] = challenge
                return .json(401, [:], headers: fields)
            })
    }
}

@Suite("Credentials of calls to resources") struct AuthenticatingTransportTests {
    private static let invalidToken = #"Bearer realm="bank", error="invalid_token""#

    private func call(
        _ method: HTTPRequest.Method = .post, once: Bool = false, replayable: Bool = true
    ) throws -> HTTPCall {
        let bytes = Array("{}".utf8)
        let body =
            replayable
            ? HTTPBody(bytes)
            : HTTPBody(length: bytes.count, isReplayable: false) {
                let rest = Locked<[UInt8]?>(bytes)
                return { rest.withLock { $0.take() } }
            }
        var call = try HTTPCall(method, url: "\(bank)/transfers", body: method == .get ? nil : body)
        call.isSentOnce = once
        return call
    }

    private func signedIn() async throws -> FakeProvider {
        let provider = try FakeProvider()
        _ = try await provider.signedIn().tokens()
        return provider
    }

    @Test("A call with effect whose token was refused is sent once more, since the resource did nothing")
    func refusedPost() async throws {
        let bank = Bank(challenge: Self.invalidToken)
        let reply = try await bank.transport(try await signedIn()).send(call())
        #expect(reply.status == 200 && bank.tokens == ["Bearer access-1", "Bearer access-2"])
        #expect(bank.exchanges.withLock { $0.map(\.text) } == ["{}", "{}"])
    }

    @Test(
        "Where somebody has signed in since a call was sent, it is sent once more for the same user alone",
        arguments: [("bob", true, 1), ("ana", true, 2), ("ana", false, 1)] as [(String, Bool, Int)])
    func anotherSignIn(user: String, isNamed: Bool, times: Int) async throws {
        let provider = try FakeProvider()
        let manager = try provider.manager(scopes: isNamed ? ["openid"] : ["accounts"])
        try await manager.install(Session(token: Secret("SESS")))
        let sent = Locked<[String?]>([])
        let transport = AuthenticatingTransport(
            manager, resources: [try Origin(bank): .accessToken],
            over: InMemoryTransport { exchange in
                sent.withLock { $0.append(exchange.field("Authorization")) }
                guard exchange.field("Authorization") == "Bearer access-1" else { return .json(200, [:]) }
                provider.change { $0.claims = { $0["sub"] = .string(user) } }
                try await manager.install(Session(token: Secret("NEXT")))
                return .json(401, [:], headers: [.wwwAuthenticate: Self.invalidToken])
            })
        #expect(try await transport.send(call()).status == (times == 1 ? 401 : 200))
        #expect(sent.withLock { $0.count } == times)
        #expect(try await manager.session()?.token == Secret("NEXT"))
    }

    @Test("A second refusal comes back as it is")
    func refusedTwice() async throws {
        let bank = Bank(challenge: Self.invalidToken)
        bank.accepts.withLock { $0 = "none" }
        #expect(try await bank.transport(try await signedIn()).send(call()).status == 401)
        #expect(bank.tokens == ["Bearer access-1", "Bearer access-2"])
    }

    @Test(
        "A call with effect is not repeated when the resource does not say that it refused the token; the next has another",
        arguments: [nil, "Bearer", #"Bearer error="insufficient_scope""#, #"Basic realm="bank""#, "Bearer error=\"x"])
    func unclear(challenge: String?) async throws {
        let bank = Bank(challenge: challenge)
        let transport = try bank.transport(try await signedIn())
        #expect(try await transport.send(call()).status == 401)
        #expect(bank.tokens == ["Bearer access-1"])
        #expect(try await transport.send(call()).status == 200)
        #expect(bank.tokens == ["Bearer access-1", "Bearer access-2"])
    }

    @Test("A call that is sent once is never repeated, safe or not, and the next one has another token")
    func sentOnce() async throws {
        for method in [HTTPRequest.Method.get, .post] {
            let bank = Bank(challenge: Self.invalidToken)
            let transport = try bank.transport(try await signedIn())
            #expect(try await transport.send(call(method, once: true)).status == 401)
            #expect(bank.tokens == ["Bearer access-1"])
            #expect(try await transport.send(call(method, once: true)).status == 200)
            #expect(bank.tokens == ["Bearer access-1", "Bearer access-2"])
        }
    }

    @Test("A call that is sent once comes back as refused also when nobody can renew the token")
    func sentOnceSignedOut() async throws {
        let provider = try await signedIn()
        provider.change {
            $0.tokenReply = { _ in .json(400, ["error": "invalid_grant"]) }
            $0.authorizeReply = { .json(401, ["error": "login_required"]) }
        }
        let bank = Bank(challenge: Self.invalidToken)
        #expect(try await bank.transport(provider).send(call(once: true)).status == 401)
        #expect(bank.tokens == ["Bearer access-1"])
    }

    @Test("A cancelled call that is sent once says that it was not sent")
    func cancelledOnce() async throws {
        let bank = Bank(challenge: nil)
        let provider = try await signedIn()
        provider.clock.advance(by: 601)
        // The renewal goes on for others who may want it; here nobody does.
        let (held, release) = AsyncStream.makeStream(of: Void.self)
        defer { release.finish() }
        provider.change {
            $0.tokenReply = { _ in
                for await _ in held {}
                throw CancellationError()
            }
        }
        let transport = try bank.transport(provider)
        let call = try call(once: true)
        let sending = Task { try await transport.send(call) }
        while provider.sent("/access_token").count < 2 { await Task.yield() }
        sending.cancel()
        let error = await #expect(throws: HTTPTransportError.self) { try await sending.value }
        #expect(error?.code == .cancelled && error?.mayHaveHadEffect == false && bank.tokens.isEmpty)
    }

    @Test("Content that can be read once is not sent again, and the next call has another token")
    func stream() async throws {
        let bank = Bank(challenge: Self.invalidToken)
        let transport = try bank.transport(try await signedIn())
        #expect(try await transport.send(call(replayable: false)).status == 401)
        #expect(try await transport.send(call(replayable: false)).status == 200)
        #expect(bank.tokens == ["Bearer access-1", "Bearer access-2"])
    }

    @Test("When grant and session are over, a refused call ends with the word that the user must sign in")
    func signIn() async throws {
        let provider = try await signedIn()
        provider.change {
            $0.tokenReply = { _ in .json(400, ["error": "invalid_grant"]) }
            $0.authorizeReply = { .json(401, ["error": "login_required"]) }
        }
        let bank = Bank(challenge: Self.invalidToken)
        let transport = try bank.transport(provider)
        for method in [HTTPRequest.Method.post, .get] {
            let error = await #expect(throws: TokenError.self) { try await transport.send(call(method)) }
            #expect(error?.code == .signInNeeded && error?.suggestion == "Sign in.")
        }
        #expect(bank.tokens == ["Bearer access-1"])
        #expect(await provider.store.names().isEmpty)
    }

    @Test("A renewal that fails for a reason that may pass leaves the refusal as the answer")
    func offline() async throws {
        let provider = try await signedIn()
        provider.change { $0.tokenReply = { _ in throw HTTPTransportError(.connectFailed, "offline") } }
        let bank = Bank(challenge: Self.invalidToken)
        #expect(try await bank.transport(provider).send(call()).status == 401)
        #expect(bank.tokens == ["Bearer access-1"])
    }

    @Test("Another origin gets no credential, whatever it answers")
    func otherOrigin() async throws {
        let bank = Bank(challenge: Self.invalidToken)
        let transport = try bank.transport(try await signedIn(), access: .both)
        let call = try HTTPCall(.get, url: "https://bank.example/")
        #expect(try await transport.send(call).status == 401)
        #expect(bank.tokens == [nil])
        #expect(bank.exchanges.withLock { $0[0].field("Cookie") } == nil)
    }

    /// What the server says of sessions.
    private struct Sessions: SessionEnding {
        let isAccepted: Bool?
        func end(_ session: Session) async throws {}
        func isAccepted(_ session: Session) async -> Bool? { isAccepted }
    }

    @Test(
        "A resource that gets the session alone and refuses it: only a session that has ended at the server is removed",
        arguments: [(false, false), (true, true), (nil, true)] as [(Bool?, Bool)])
    func endedSession(isAccepted: Bool?, stays: Bool) async throws {
        let clock = ManualClock()
        let tokens = TokenManager(
            configuration: try TokenConfiguration(
                issuer: "https://am.example.com/am/oauth2", clientID: "app", redirectURI: "app:/cb", scopes: []),
            transport: InMemoryTransport { _ in .json(500, [:]) }, store: MemorySecretStore(clock: clock),
            sessions: Sessions(isAccepted: isAccepted), clock: clock, random: SeededRandom(seed: 1))
        try await tokens.install(Session(token: Secret("SESS")))
        let calls = Locked(0)
        let resources = AuthenticatingTransport(
            tokens, resources: [try Origin(bank): .session],
            over: InMemoryTransport { exchange in
                calls.withLock { $0 += 1 }
                #expect(exchange.field("iPlanetDirectoryPro") == "SESS")
                return .json(401, [:])
            })
        if stays {
            #expect(try await resources.send(call()).status == 401)
        } else {
            // What is sent once is judged by its reply.
            #expect(try await resources.send(call(once: true)).status == 401)
            let error = await #expect(throws: TokenError.self) { try await resources.send(call()) }
            #expect(error?.code == .signInNeeded && error?.signInReason == .sessionRefused)
        }
        #expect((try await tokens.session() != nil) == stays)
        #expect(calls.withLock { $0 } == (stays ? 1 : 2))
    }
}
