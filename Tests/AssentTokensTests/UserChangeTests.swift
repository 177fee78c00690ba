import AssentCore
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

private let bank = "https://api.bank.example"

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
}
