import AssentCore
import AssentTesting
import AssentTokens
import HTTPTypes
import Testing

@Suite struct DiscoveryTests {
    @Test(
        "A description that cannot be used stops everything before a secret is sent, and is asked for again",
        arguments: zip(
            [
                { .json(200, ["issuer": "https://evil.example"]) }, { .json(200, []) }, { .json(404, [:]) },
                { .json(500, [:]) }, { .json(302, [:], headers: [.location: "https://evil.example/c"]) },
                { HTTPReply(HTTPResponse(status: .ok), body: HTTPBody("<html>")) },
                { HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(#"{"issuer":"#)) },
                { HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(#"{"issuer":"a","issuer":"a"}"#)) },
                { throw HTTPTransportError(.connectFailed, "down") },
            ] as [@Sendable () throws -> HTTPReply],
            [
                .issuerMismatch, .malformedReply, .malformedReply, .malformedReply, .malformedReply, .malformedReply,
                .malformedReply, .malformedReply, .transport,
            ] as [TokenError.Code]))
    func unusable(reply: @escaping @Sendable () throws -> HTTPReply, code: TokenError.Code) async throws {
        let provider = try FakeProvider()
        provider.change { $0.discoveryReply = reply }
        let manager = try await provider.signedIn()
        await #expect(throws: TokenError.like(code)) { try await manager.tokens() }
        #expect(provider.exchanges.withLock { $0 }.allSatisfy { $0.field("iPlanetDirectoryPro") == nil })
        #expect(try await manager.session() != nil)
        provider.change { $0.discoveryReply = nil }
        _ = try await manager.tokens()
    }

    @Test("Nothing is asked twice while a description is known")
    func cached() async throws {
        let provider = try FakeProvider()
        provider.change {
            $0.expiresIn = 0; $0.rotates = false
        }
        let manager = try await provider.signedIn()
        for _ in 0..<5 { _ = try await manager.tokens() }
        #expect(provider.sent("/openid-configuration").count == 1)
    }

    @Test(
        "A server without revocation or end-session endpoint is told so, and nothing stays here",
        arguments: [
            (["revocation_endpoint"], [.revokeTokens]),
            (["end_session_endpoint"], []), (["revocation_endpoint", "end_session_endpoint"], [.revokeTokens]),
        ] as [([String], [SignOutResult.Step])])
    func missingEndpoints(names: [String], undone: [SignOutResult.Step]) async throws {
        let provider = try FakeProvider()
        provider.change { for name in names { $0.discovery[name] = nil } }
        let manager = try await provider.signedIn()
        _ = try await manager.tokens()
        let result = await manager.signOut()
        #expect(result.undone.map(\.step) == undone)
        #expect(result.undone.allSatisfy { $0.reason.contains("has no") })
        #expect(try await manager.storedTokens() == nil)
    }
}
