import AssentCore
import AssentTesting
import Testing

@testable import AssentServer

@Suite("What uses a session, over HTTP")
struct SessionUseRouteTests {
    @Test(
        "A question to the userinfo endpoint keeps the session alive, unless the file says otherwise",
        arguments: [true, false])
    func userInfo(keepsAlive: Bool) async throws {
        let fixture = try await ServerFixture(editing: { text in
            let text = text.replacing("accessTokenSeconds: 600", with: "accessTokenSeconds: 7200")
            return keepsAlive
                ? text : text.replacing("idleMinutes: 30}", with: "idleMinutes: 30, tokensKeepAlive: false}")
        })
        do {
            let session = try await fixture.session()
            let tokens = try await fixture.tokens(session: session)
            func ask() async throws -> Int {
                try await fixture.send("GET", fixture.oauth("userinfo"), ServerFixture.bearer(tokens.access)).status
            }
            fixture.clock.advance(by: 1500)
            #expect(try await ask() == 200)
            fixture.clock.advance(by: 1500)
            #expect(try await ask() == (keepsAlive ? 200 : 401))
        } catch {
            await fixture.stop()
            throw error
        }
        await fixture.stop()
    }
}
