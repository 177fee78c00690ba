import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("The end session endpoint")
struct EndSessionTests {
    private static func parameters(_ text: String) throws -> OAuthParameters {
        try OAuthParameters(urlEncoded: Array(text.utf8), repeatable: EndSessionEndpoint.repeatableHint)
    }

    @Test("Without an ID token the user of the browser is asked, and nothing ends before they have said so")
    func question() async throws {
        let fixture = try await ProviderFixture()
        let asked = try Self.parameters(
            "client_id=bank-app&post_logout_redirect_uri=https%3A%2F%2Fbank.example%2Fbye&state=s")
        guard
            case .question(let question) = try await EndSessionEndpoint(fixture.grants).answer(
                asked, session: fixture.session)
        else {
            throw UnexpectedOutcome()
        }
        #expect(question.user.username == "ana" && question.client?.id == "bank-app")
        #expect(question.target == "https://bank.example/bye")
        guard
            case .kept = try await EndSessionEndpoint(fixture.grants).answer(
                question.parameters, session: fixture.session, decision: .deny)
        else { throw UnexpectedOutcome() }
        #expect(try await fixture.count("sessions") == 1)
        guard
            case .redirect("https://bank.example/bye?state=s") = try await EndSessionEndpoint(fixture.grants).answer(
                question.parameters, session: fixture.session, decision: .allow)
        else { throw UnexpectedOutcome() }
        #expect(try await fixture.count("sessions") == 0)
        #expect(try await fixture.audit(.sessionEnd).map(\.reason) == ["end_session"])
    }

    @Test(
        "Without an ID token the browser goes only to a page of the client that asks",
        arguments: [
            ("client_id=bank-app&post_logout_redirect_uri=https%3A%2F%2Fevil.example%2F", "redirect_uri_mismatch"),
            ("client_id=nobody", "invalid_client"),
        ])
    func targets(query: String, code: String) async throws {
        let fixture = try await ProviderFixture()
        for decision in [nil, AuthorizationDecision.allow] {
            await #expect(throws: OAuthError.expected(code)) {
                try await EndSessionEndpoint(fixture.grants).answer(
                    try Self.parameters(query), session: fixture.session, decision: decision)
            }
        }
        #expect(try await fixture.count("sessions") == 1)
        // Nobody knows whose page it is.
        let nameless = try Self.parameters("post_logout_redirect_uri=https%3A%2F%2Fevil.example%2F")
        guard
            case .done = try await EndSessionEndpoint(fixture.grants).answer(
                nameless, session: fixture.session, decision: .allow)
        else { throw UnexpectedOutcome() }
    }

    @Test("A page that a program on the user's machine serves may have any port")
    func loopback() async throws {
        var client = ProviderFixture.bank
        client.postLogoutRedirectURIs = ["http://127.0.0.1/bye"]
        let fixture = try await ProviderFixture(clients: [client])
        let hint = try #require(await fixture.tokens().idToken).reveal()
        let target = "post_logout_redirect_uri=http%3A%2F%2F127.0.0.1%3A4711%2F"
        await #expect(throws: OAuthError.expected("redirect_uri_mismatch")) {
            try await EndSessionEndpoint(fixture.grants).answer(try Self.parameters("id_token_hint=\(hint)&\(target)"))
        }
        guard
            case .redirect("http://127.0.0.1:4711/bye") = try await EndSessionEndpoint(fixture.grants).answer(
                try Self.parameters("id_token_hint=\(hint)&\(target)bye"))
        else { throw UnexpectedOutcome() }
    }

    @Test(
        "The hint may come twice, as the vendor's token vault sends it: empty, garbled or the same beside the right one"
    )
    func twice() async throws {
        for other in ["", "undefined", nil] {
            let fixture = try await ProviderFixture()
            let hint = try #require(await fixture.tokens().idToken).reveal()
            let request = try Self.parameters("id_token_hint=\(other ?? hint)&id_token_hint=\(hint)")
            guard case .done = try await EndSessionEndpoint(fixture.grants).answer(request) else {
                throw UnexpectedOutcome()
            }
            #expect(try await fixture.count("sessions") == 0)
        }
    }

    @Test("Two hints of different sessions end neither")
    func different() async throws {
        let fixture = try await ProviderFixture()
        let one = try #require(await fixture.tokens().idToken).reveal()
        let token = try await Sessions(fixture.context).begin(
            userID: fixture.user.id, realm: "/alpha", limits: SessionLimits()
        ).token
        let session = try #require(await Sessions(fixture.context).live(token: token))
        guard
            case .redirect(let redirect) = try await AuthorizationEndpoint(fixture.grants).answer(
                try ProviderFixture.authorization(), session: session)
        else { throw UnexpectedOutcome() }
        let code = try #require(redirect["code"])
        let other = try #require(await fixture.exchange(code).idToken).reveal()
        await #expect(throws: OAuthError.expected("invalid_request")) {
            try await EndSessionEndpoint(fixture.grants).answer(
                try Self.parameters("id_token_hint=\(one)&id_token_hint=\(other)"))
        }
        #expect(try await fixture.count("sessions") == 2)
    }

    @Test("After a step-up both sessions end: the one that the token names, and the one that goes on after it")
    func steppedUp() async throws {
        let fixture = try await ProviderFixture()
        let hint = try #require(await fixture.tokens().idToken).reveal()
        let other = try await Sessions(fixture.context).begin(
            userID: fixture.user.id, realm: "/alpha", limits: SessionLimits()
        ).token
        let session = try #require(await Sessions(fixture.context).live(token: other))
        let named = fixture.session.auditID
        _ = try await fixture.database.run([
            SQLStatement("UPDATE sessions SET earlier = \(named) WHERE id = \(session.id)", expecting: .exactly(1))
        ])
        guard
            case .done = try await EndSessionEndpoint(fixture.grants).answer(
                try Self.parameters("id_token_hint=\(hint)"))
        else {
            throw UnexpectedOutcome()
        }
        #expect(try await fixture.count("sessions") == 0)
    }
}
