import AssentCore
import AssentTesting
import AssentTokens
import AssentVault
import HTTPTypes
import Testing

@Suite("Tokens that belong to no sign-in any more") struct OrphanTests {
    /// What a program leaves behind that ends between the two steps of a sign-in: the new session beside the old
    /// tokens.
    private func brokenOff() async throws -> FakeProvider {
        let provider = try FakeProvider()
        _ = try await provider.signedIn().tokens()
        let other = try FakeProvider()
        try await other.manager().install(Session(token: Secret("BOB")))
        let name = try #require(await other.store.names().first { $0.hasPrefix("session.") })
        let session = try #require(try await other.store.value(name))
        _ = try await provider.store.update(name, to: session.value, expected: .any)
        return provider
    }

    @Test(
        "Tokens that a sign-in left behind when it broke off are removed and revoked by whoever asks for tokens next",
        arguments: [true, false])
    func leftBehind(isAccepted: Bool) async throws {
        let provider = try await brokenOff()
        if !isAccepted { provider.change { $0.authorizeReply = { HTTPReply(HTTPResponse(status: .badGateway)) } } }

        let tokens = try? await provider.manager().tokens()
        #expect((tokens != nil) == isAccepted)
        #expect(tokens?.accessToken != Secret("access-1"))
        #expect(provider.sent("/token/revoke").map { $0.form["token"] }.contains("refresh+1&=%"))
        #expect(try await provider.manager().storedTokens() == tokens)
    }

    @Test(
        "Tokens of a new grant whose ID token is missing, not right, or cannot be verified are revoked and not kept",
        arguments: ["missing", "wrong", "unverified"])
    func refused(idToken: String) async throws {
        let provider = try FakeProvider()
        provider.change { now in
            switch idToken {
            case "missing":
                now.tokenReply = { form in
                    guard case .object(var reply) = try await provider.grant(form) else { return nil }
                    reply["id_token"] = nil
                    return .json(200, .object(reply))
                }
            case "wrong": now.claims = { $0["nonce"] = "another" }
            default: now.keysReply = { throw HTTPTransportError(.connectFailed, "down") }
            }
        }
        let manager = try await provider.signedIn()
        let code: TokenError.Code = idToken == "unverified" ? .transport : .invalidIDToken
        await #expect(throws: TokenError.like(code)) { try await manager.tokens() }
        #expect(provider.sent("/token/revoke").map { $0.form["token"] } == ["refresh+1&=%", "access-1"])
        #expect(try await manager.storedTokens() == nil)
        #expect(try await manager.session() != nil)
    }

    @Test("One of those who wait for a renewal has them revoked, and the others do not wait for that")
    func others() async throws {
        let provider = try await brokenOff()
        let (asked, ask) = AsyncStream.makeStream(of: Void.self)
        let (released, release) = AsyncStream.makeStream(of: Void.self)
        provider.change {
            $0.other = { _ in
                ask.yield()
                for await _ in released {}
                return .json(200, [:])
            }
        }
        let manager = try provider.manager()
        try await withThrowingTaskGroup(of: TokenSet.self) { group in
            for _ in 0..<3 { group.addTask { try await manager.tokens() } }
            for await _ in asked { break }
            for _ in 0..<2 {
                let tokens = try await group.next()
                #expect(tokens?.accessToken == Secret("access-2"))
            }
            // Nobody who comes later waits either.
            #expect(try await manager.refresh().accessToken == Secret("access-3"))
            release.finish()
            let last = try await group.next()
            #expect(last?.accessToken == Secret("access-2"))
        }
        #expect(provider.sent("/token/revoke").map { $0.form["token"] } == ["refresh+1&=%", "access-1"])
    }
}
