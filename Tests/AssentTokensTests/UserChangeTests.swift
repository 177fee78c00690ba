import AssentCore
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

private let bank = "https://api.bank.example"

/// The user's tokens, after which something happens before the session is read.
private struct InterruptedSource: AccessTokenSource {
    let manager: TokenManager
    let afterwards: @Sendable () async throws -> Void

    var kind: CallKind { .user }
    var user: TokenManager? { manager }

    func token(rejecting rejected: Secret?) async throws -> AccessToken? {
        let token = try await manager.token(rejecting: rejected)
        try await afterwards()
        return token
    }
}

@Suite("Calls that wait while somebody signs in or out") struct UserChangeTests {
    private let sent = Locked<[InMemoryTransport.Exchange]>([])

    private func transport(
        _ source: any AccessTokenSource, _ access: ResourceAccess
    ) throws -> AuthenticatingTransport {
        AuthenticatingTransport(
            source, resources: [try Origin(bank): access],
            over: InMemoryTransport { [sent] exchange in
                sent.withLock { $0.append(exchange) }
                return .json(200, [:])
            })
    }

    @Test("A call that waits for a renewal while somebody signs in is not sent: its token would be that user's")
    func renewal() async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        _ = try await manager.tokens()
        provider.clock.advance(by: 601)
        let name = try #require(await provider.store.names().first { $0.hasPrefix("tokens.") })
        let lease = try await provider.store.lease(name, deadline: .distantFuture)
        let signIn = Task { try await manager.install(Session(token: Secret("BOB"))) }
        while provider.clock.sleeperCount < 1 { await Task.yield() }
        let transport = try transport(manager, .accessToken)
        let call = try HTTPCall(.post, url: "\(bank)/transfers", body: HTTPBody("{}"))
        let sending = Task { try await transport.send(call) }
        while provider.clock.sleeperCount < 2 { await Task.yield() }
        await lease.release()
        try await signIn.value
        await #expect(throws: TokenError.like(.sessionChanged)) { try await sending.value }
        #expect(sent.withLock { $0.isEmpty })
        // The renewal was not in vain: the next call has its token.
        #expect(try await transport.send(call).status == 200)
        #expect(sent.withLock { $0.map { $0.field("Authorization") } } == ["Bearer access-2"])
    }

    @Test(
        "A token is not sent beside the session of somebody who signs in before that is read",
        arguments: [true, false])
    func session(signsOut: Bool) async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        let source = InterruptedSource(manager: manager) {
            if signsOut { _ = await manager.signOut() }
            try await manager.install(Session(token: Secret("BOB")))
        }
        let call = try HTTPCall(.get, url: "\(bank)/accounts")
        let transport = try transport(source, .both)
        await #expect(throws: TokenError.like(.sessionChanged)) { try await transport.send(call) }
        #expect(sent.withLock { $0.isEmpty })
    }

    @Test("Where another process signs somebody in between token and session, both are read again and are one user's")
    func anotherProcess() async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        let other = try provider.manager()
        let isFirst = Locked<Bool?>(true)
        let source = InterruptedSource(manager: manager) {
            guard isFirst.withLock({ $0.take() }) != nil else { return }
            try await other.install(Session(token: Secret("BOB")))
            // So long what was read of the store is believed.
            provider.clock.advance(by: 1)
        }
        let call = try HTTPCall(.get, url: "\(bank)/accounts")
        #expect(try await transport(source, .both).send(call).status == 200)
        let exchanges = sent.withLock { $0 }
        #expect(exchanges.map { $0.field("Authorization") } == ["Bearer access-2"])
        #expect(exchanges.map { $0.field("iPlanetDirectoryPro") } == ["BOB"])
    }

    @Test(
        "A call is not sent once more, for its proof's nonce, after somebody has signed in", arguments: [true, false])
    func nonce(isSentOnce: Bool) async throws {
        let provider = try FakeProvider()
        provider.binds(ProofDoor(provider.clock))
        let manager = try await provider.boundSignedIn(KeyRing())
        let transport = AuthenticatingTransport(
            manager, resources: [try Origin(bank): .accessToken],
            over: InMemoryTransport { [sent] exchange in
                sent.withLock { $0.append(exchange) }
                try await manager.install(Session(token: Secret("BOB")))
                let fields: HTTPFields = [.wwwAuthenticate: #"DPoP error="use_dpop_nonce""#, .dpopNonce: "n-1"]
                return .json(401, [:], headers: fields)
            })
        var call = try HTTPCall(.post, url: "\(bank)/transfers", body: HTTPBody("{}"))
        call.isSentOnce = isSentOnce
        let payment = call
        await #expect(throws: TokenError.like(.sessionChanged)) { try await transport.send(payment) }
        #expect(sent.withLock { $0.map { $0.field("Authorization") } } == ["DPoP access-1"])
    }
}
