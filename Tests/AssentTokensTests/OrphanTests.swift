import AssentCore
import AssentTokens
import AssentVault
import HTTPTypes
import Testing

@Suite("Tokens that belong to no sign-in any more") struct OrphanTests {
    @Test(
        "Tokens that a sign-in left behind when it broke off are removed and revoked by whoever asks for tokens next",
        arguments: [true, false])
    func leftBehind(isAccepted: Bool) async throws {
        let provider = try FakeProvider()
        _ = try await provider.signedIn().tokens()
        // A program that ends between the two steps of a sign-in leaves the new session beside the old tokens.
        let other = try FakeProvider()
        try await other.manager().install(Session(token: Secret("BOB")))
        let name = try #require(await other.store.names().first { $0.hasPrefix("session.") })
        let session = try #require(try await other.store.value(name))
        _ = try await provider.store.update(name, to: session.value, expected: .any)
        if !isAccepted { provider.change { $0.authorizeReply = { HTTPReply(HTTPResponse(status: .badGateway)) } } }

        let tokens = try? await provider.manager().tokens()
        #expect((tokens != nil) == isAccepted)
        #expect(tokens?.accessToken != Secret("access-1"))
        #expect(provider.sent("/token/revoke").map { $0.form["token"] }.contains("refresh+1&=%"))
        #expect(try await provider.manager().storedTokens() == tokens)
    }
}
