import AssentCore
import AssentPeers
import AssentTokens
import AssentTransportNIO
import AssentVault
import Foundation
import HTTPTypes
import Testing
import TokenTableSupport

extension ProviderWorld {
    /// glewlwyd, behind a relay that is the issuer.
    static func glewlwyd() async throws -> ProviderWorld {
        let provider = try await Glewlwyd.shared
        let transport = try PeerClient.transport()
        let own = Locked("")
        let relay = try await FaultRelay { request, body in
            let here = own.withLock { $0 }
            let there = try HTTPRequest(
                request.method, url: provider.base + (request.path ?? "/"), headerFields: request.headerFields)
            var reply = try await transport.send(HTTPCall(there, body: body.isEmpty ? nil : HTTPBody(body)))
            reply.response.headerFields[.location] = reply.response.headerFields[.location]?.replacing(
                provider.base, with: here)
            guard request.path?.hasSuffix("/openid-configuration") == true else { return reply }
            let text = String(decoding: try await reply.body.collect(upTo: 1 << 20), as: UTF8.self)
            reply.body = HTTPBody(text.replacing(provider.base, with: here))
            return reply
        }
        own.withLock { $0 = relay.url("") }
        let issuer = relay.url("/api/relayed")
        try await provider.addIssuer("relayed", at: issuer)
        return ProviderWorld(
            relay: relay, configuration: try provider.configuration(issuer: issuer), repeatsAnswers: false,
            saysInvalidGrant: false, sessions: (try await provider.session(), try await provider.session()))
    }
}

/// One relay for all rows, which run one after the other: each row changes what the relay does.
private struct Relayed: SuiteTrait, TestScoping {
    @TaskLocal static var shared: ProviderWorld?

    @concurrent func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        let world = try await ProviderWorld.glewlwyd()
        try await Self.$shared.withValue(world) { try await function() }
        await world.relay.stop()
    }
}

@Suite("The table of the token life cycle, with glewlwyd", .serialized, Relayed())
struct TokenTableTests {
    @Test("glewlwyd does what the row says", arguments: TokenTable.rows)
    func row(row: TokenTableRow) async throws {
        let world = try #require(Relayed.shared)
        #expect(try await TokenTableRunner(world).differences(row) == [])
    }

    @Test("A refresh token that somebody else has used: the session, or sign in, and nothing is removed")
    func spent() async throws {
        let world = try #require(Relayed.shared)
        try await world.relay.reset()
        let store = MemorySecretStore()
        let manager = try world.manager(store)
        try await manager.install(world.sessions.mine)
        let records = StoredRecords(store)
        for hasSession in [true, false] {
            let old = try await manager.tokens()
            let refreshToken = try #require(old.refreshToken)
            try await world.spend(refreshToken, at: manager.metadata().tokenEndpoint)
            if !hasSession { try await records.remove("session.") }
            try await records.expire()
            let next = try world.manager(store)
            if hasSession {
                #expect(try await next.tokens().accessToken != old.accessToken)
            } else {
                for _ in 0..<2 {
                    let error = await #expect(throws: TokenError.self) { try await next.tokens() }
                    #expect(error?.signInReason == .refreshRefused)
                }
                #expect(try await next.storedTokens()?.refreshToken == refreshToken)
            }
        }
    }
}
