import AssentCore
import AssentJOSE
import AssentTesting
import AssentVault
import Foundation
import HTTPTypes
import Testing

@testable import AssentTokens

private let bank = "https://api.bank.example"
private let journeys = "https://am.example.com/am/json/realms/root/realms/alpha/authenticate"

/// An app whose sessions belong to a key: what walks its journeys, and its token manager.
private struct App: SessionEnding {
    let provider: FakeProvider
    let ring: KeyRing
    let door: ProofDoor
    let proofs: SessionProofs
    /// The sessions that were ended, and the requests that ended them.
    let ended = Locked<[Session]>([])
    let isOffline = Locked(false)

    init(
        _ provider: FakeProvider, _ ring: KeyRing = KeyRing(), nonce: String? = nil,
        dpop: ((KeyRing) -> DPoPConfiguration)? = nil
    ) throws {
        self.provider = provider
        self.ring = ring
        door = ProofDoor(provider.clock, nonce: nonce)
        var configuration = try TokenConfiguration(
            issuer: issuer, clientID: "bank-app", redirectURI: redirectURI, scopes: ["openid", "accounts"])
        configuration.dpop = dpop?(ring) ?? .on(keys: ring)
        proofs = SessionProofs(
            configuration, store: provider.store, clock: provider.clock, random: SystemRandom())
        self.configuration = configuration
    }

    private let configuration: TokenConfiguration

    func manager() -> TokenManager {
        TokenManager(
            configuration: configuration, transport: InMemoryTransport { [provider] in try await provider.answer($0) },
            proving: proofs, sessions: self, clock: provider.clock, random: SystemRandom())
    }

    /// A server that takes proofs alone; with `session`, of that session.
    func server(_ session: Secret? = nil) -> InMemoryTransport {
        InMemoryTransport { [door] exchange in
            guard let error = door.refusal(of: exchange, token: session) else {
                return .json(200, [:], headers: door.fields)
            }
            var fields = door.fields
            fields[.wwwAuthenticate] = "DPoP error=\"\(error)\""
            return .json(401, [:], headers: fields)
        }
    }

    func call(_ url: String = journeys) throws -> HTTPCall {
        try HTTPCall(.post, url: url, body: HTTPBody(Array("{}".utf8)))
    }

    /// A session as a journey gives it that the server has bound to the key of its first proof.
    func signIn(_ token: String = "SESS") async throws -> Session {
        #expect(try await proofs.send(call(), for: .journey(nil), over: server()).status == 200)
        let key = try #require(door.seen.last).thumbprint
        return Session(token: Secret(token), realm: "/alpha", keyThumbprint: key)
    }

    func end(_ session: Session) async throws {
        if isOffline.withLock({ $0 }) { throw TokenError(.transport, "offline") }
        do {
            let reply = try await proofs.send(call(), for: .session(session), over: server(session.token))
            if reply.status == 200 { ended.withLock { $0.append(session) } }
        } catch let error as SessionProofError {
            throw TokenError(.signOutRefused, error.detail)
        }
    }
}

@Suite("Journeys and sessions with proofs") struct SessionProofTests {
    @Test("A journey is proved without a token, request by request, by a key that is made once under the lease")
    func journey() async throws {
        let app = try App(try FakeProvider(), nonce: "n")
        for _ in 0..<3 {
            #expect(try await app.proofs.send(app.call(), for: .journey(nil), over: app.server()).status == 200)
        }
        #expect(app.door.seen.count == 3 && app.door.asked == 4, "the first one had no nonce yet")
        #expect(Set(app.door.seen.map(\.thumbprint)).count == 1 && app.ring.made == 1)
        #expect(Set(app.door.seen.map(\.jti)).count == 3)
        let others = try (0..<4).map { _ in try App(app.provider, app.ring, nonce: "n") }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for other in others {
                group.addTask { _ = try await other.signIn() }
            }
            try await group.waitForAll()
        }
        #expect(app.ring.made == 1)
    }

    @Test("Beside a session that belongs to no key a journey proves the key of the next one, and without keys nothing")
    func unbound() async throws {
        let app = try App(try FakeProvider())
        let plain = InMemoryTransport { exchange in .json(exchange.field("DPoP") == nil ? 200 : 500, [:]) }
        let session = Session(token: Secret("AM"))
        let off = try App(app.provider, app.ring, dpop: { _ in .off })
        let kept = try App(app.provider, app.ring, dpop: { .kept(keys: $0) })
        for other in [off, kept] {
            for purpose in [.journey(nil), .journey(session), .session(session)] as [ProofPurpose] {
                #expect(try await other.proofs.send(other.call(), for: purpose, over: plain).status == 200)
            }
        }
        // Asking about the session, and ending it, needs no proof.
        #expect(try await app.proofs.send(app.call(), for: .session(session), over: plain).status == 200)
        #expect(app.ring.made == 0)
        try await app.manager().install(session)
        #expect(try await kept.manager().session() == session)

        // The proof names no token: it is about the next session, not about this one.
        for (token, status) in [(session.token, 401), (nil, 200)] as [(Secret?, Int)] {
            let reply = try await app.proofs.send(app.call(), for: .journey(session), over: app.server(token))
            #expect(reply.status == status)
        }
        // The session has ended, and the server has bound the next one.
        let next = Session(token: Secret("NEXT"), keyThumbprint: try #require(app.door.seen.last).thumbprint)
        try await app.manager().install(next)
        #expect(try await app.proofs.usable(try await app.manager().session())?.keyName == app.ring.names.first)
        // Beside that one a journey proves its token.
        let stored = try await app.manager().session()
        let reply = try await app.proofs.send(app.call(), for: .journey(stored), over: app.server(next.token))
        #expect(reply.status == 200 && app.ring.made == 1)
    }

    @Test("The stored session names its key, and another process proves it; one that was ended by a wipe is not stored")
    func stored() async throws {
        let provider = try FakeProvider()
        let app = try App(provider)
        let session = try await app.signIn()
        try await app.manager().install(session)
        let other = try App(provider, app.ring)
        let found = try #require(try await other.manager().session())
        #expect(found.keyThumbprint == session.keyThumbprint && found.keyName == app.ring.names.first)
        let reply = try await other.proofs.send(
            other.call(), for: .session(found), over: other.server(found.token))
        #expect(reply.status == 200)
        #expect(other.door.seen.last?.thumbprint == session.keyThumbprint)
        // The proof of one session is none of another.
        let strange = try await other.proofs.send(
            other.call(), for: .session(found), over: other.server(Secret("X")))
        #expect(strange.status == 401)

        let late = try await app.signIn("LATE")
        app.ring.change { $0.keys = [:] }
        let error = await #expect(throws: TokenError.self) { try await app.manager().install(late) }
        #expect(error?.signInReason == .keyLost)
        #expect(try await other.manager().session()?.token == Secret("SESS"))
    }

    @Test("What is stored of a session of a key cannot be read as one without, whatever is taken from it")
    func tampered() async throws {
        let provider = try FakeProvider()
        let app = try App(provider)
        try await app.manager().install(try await app.signIn())
        try await provider.tampering(with: "session.") {
            await #expect(throws: TokenError.like(.storageFailed)) { try await app.manager().session() }
        }
    }

    @Test("Tokens are asked for with the session and its proof, and belong to the same key")
    func tokens() async throws {
        let provider = try FakeProvider()
        let app = try App(provider)
        provider.binds(ProofDoor(provider.clock))
        let session = try await app.signIn()
        let manager = app.manager()
        try await manager.install(session)
        let tokens = try await manager.tokens()
        #expect(tokens.keyThumbprint == session.keyThumbprint && app.ring.made == 1)
        let asked = try #require(provider.sent("/authorize").last)
        let proof = try DPoPProof.verify(
            asked.field("DPoP") ?? "", method: "GET", uri: asked.request.url ?? "", accessToken: session.token,
            clock: provider.clock)
        #expect(proof.thumbprint == session.keyThumbprint)
    }

    @Test("A refused proof at the authorization endpoint removes no session")
    func refusedProof() async throws {
        let provider = try FakeProvider()
        let app = try App(provider)
        let session = try await app.signIn()
        let manager = app.manager()
        try await manager.install(session)
        provider.change {
            $0.authorizeReply = {
                .json(
                    401, ["error": "invalid_dpop_proof"],
                    headers: [.wwwAuthenticate: #"DPoP error="invalid_dpop_proof""#])
            }
        }
        await #expect(throws: TokenError.like(.authorizationRefused)) { try await manager.tokens() }
        #expect(try await manager.session()?.token == session.token)
    }

    @Test("A resource that gets the session alone gets its proof, also after it has asked for a nonce")
    func resource() async throws {
        let provider = try FakeProvider()
        let app = try App(provider, nonce: "n1")
        let session = try await app.signIn()
        let manager = app.manager()
        try await manager.install(session)
        let seen = Locked<[InMemoryTransport.Exchange]>([])
        let server = app.server(session.token)
        let transport = AuthenticatingTransport(
            manager, resources: [try Origin(bank): .session],
            over: InMemoryTransport { exchange in
                seen.withLock { $0.append(exchange) }
                return try await server.send(
                    try HTTPCall(
                        exchange.request.method, url: exchange.request.url ?? "",
                        headerFields: exchange.request.headerFields))
            })
        #expect(try await transport.send(app.call(bank + "/transfers?x=1")).status == 200)
        let sent = seen.withLock { $0 }
        #expect(sent.count == 2 && sent.allSatisfy { $0.field("iPlanetDirectoryPro") == "SESS" })
        #expect(sent.allSatisfy { $0.field("Authorization") == nil })
        #expect(app.door.seen.last?.thumbprint == session.keyThumbprint)
        var own = try app.call(bank)
        own.request.headerFields[.dpop] = "x"
        let foreign = own
        await #expect(throws: TokenError.like(.unprovable)) { try await transport.send(foreign) }
    }

    @Test("The sign-out proves the session that it ends, and then removes the key")
    func signOut() async throws {
        let provider = try FakeProvider()
        let app = try App(provider)
        provider.binds(ProofDoor(provider.clock))
        let manager = app.manager()
        try await manager.install(try await app.signIn())
        _ = try await manager.tokens()
        // The session's key is not the tokens' alone.
        #expect(await manager.revoke().isComplete && app.ring.names.count == 1)
        #expect(try await manager.tokens().isBound && app.ring.made == 1)
        app.isOffline.withLock { $0 = true }
        #expect(await manager.signOut().undone.map(\.step) == [.endSession])
        #expect(app.ring.names.count == 1 && app.ended.withLock { $0.isEmpty })
        #expect(try await manager.session() == nil)
        // The next sign-in has a key of its own, which stays.
        let next = try await app.signIn("NEXT")
        try await manager.install(next)
        #expect(app.ring.names.count == 2)
        app.isOffline.withLock { $0 = false }
        #expect(try await manager.retrySignOuts().isEmpty)
        #expect(app.ended.withLock { $0.map(\.token) } == [Secret("SESS")])
        #expect(app.ring.names.count == 1)
        #expect(try await app.proofs.usable(try await manager.session())?.token == Secret("NEXT"))
        #expect(await manager.signOut().isComplete)
        #expect(app.ring.names.isEmpty)
        #expect(await provider.store.names().isEmpty)
    }

    @Test("A session that nobody could end is given up with its key: for want of room, or because its time is over")
    func givenUp() async throws {
        let provider = try FakeProvider()
        let app = try App(provider)
        let manager = app.manager()
        app.isOffline.withLock { $0 = true }
        for number in 0...PendingSignOuts.limit {
            try await manager.install(try await app.signIn("S\(number)"))
            #expect(await manager.signOut().undone.map(\.isKept) == [true])
        }
        #expect(app.ring.made == PendingSignOuts.limit + 1 && app.ring.names.count == PendingSignOuts.limit)

        provider.clock.advance(by: PendingSignOuts.lifetime)
        app.ring.change { $0.failure = KeyProviderError(.unavailable, "It is not there.") }
        #expect(try await manager.retrySignOuts().isEmpty)
        #expect(try await manager.pendingSignOuts().isEmpty)
        // Their names stay as long as the keys do.
        #expect(app.ring.names.count == PendingSignOuts.limit)
        app.ring.change { $0.failure = nil }
        #expect(try await manager.retrySignOuts().isEmpty)
        #expect(app.ring.names.isEmpty && app.ended.withLock { $0.isEmpty })
        #expect(await provider.store.names().isEmpty)
    }

    @Test("A key of a session that was given up and cannot be removed makes no later sign-out one that has failed")
    func stuckKey() async throws {
        let provider = try FakeProvider()
        let app = try App(provider)
        let manager = app.manager()
        app.isOffline.withLock { $0 = true }
        try await manager.install(try await app.signIn("OLD"))
        #expect(await manager.signOut().undone.map(\.isKept) == [true])
        let old = app.ring.names
        app.ring.change { $0.stuck = Set(old) }
        provider.clock.advance(by: PendingSignOuts.lifetime)
        app.isOffline.withLock { $0 = false }
        try await manager.install(try await app.signIn("NEW"))
        let result = await manager.signOut()
        #expect(result.isComplete, "\(result)")
        #expect(app.ended.withLock { $0.map(\.token) } == [Secret("NEW")])
        // Its name is still noted.
        #expect(app.ring.names == old)
        app.ring.change { $0.stuck = [] }
        #expect(try await manager.retrySignOuts().isEmpty)
        #expect(app.ring.names.isEmpty)
        #expect(await provider.store.names().isEmpty)
    }

    @Test("A lost key: the session is not sent, and a new sign-in begins without it")
    func lost() async throws {
        let provider = try FakeProvider()
        let app = try App(provider)
        let manager = app.manager()
        try await manager.install(try await app.signIn())
        #expect(try await app.proofs.usable(try await manager.session()) != nil)
        app.ring.change { $0.keys = [:] }
        let later = try App(provider, app.ring)
        let found = try #require(try await later.manager().session())
        let error = await #expect(throws: SessionProofError.self) {
            try await later.proofs.send(later.call(), for: .session(found), over: later.server(found.token))
        }
        #expect(error?.isLost == true && later.door.asked == 0)
        let tokens = await #expect(throws: TokenError.self) { try await later.manager().tokens() }
        #expect(tokens?.signInReason == .keyLost && provider.sent("/authorize").isEmpty)
        #expect(try await later.proofs.usable(try await later.manager().session()) == nil)
        let new = try await later.signIn("NEW")
        try await later.manager().install(new)
        #expect(try await later.proofs.usable(try await later.manager().session())?.token == Secret("NEW"))
        // A provider that is not there now is no reason to sign in again.
        later.ring.change { $0.failure = KeyProviderError(.unavailable, "It is not there.") }
        let third = try App(provider, app.ring)
        await #expect(throws: TokenError.like(.keyUnavailable)) { try await third.proofs.usable(new) }
    }
}
