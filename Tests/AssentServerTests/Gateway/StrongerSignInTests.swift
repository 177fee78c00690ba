import AssentCore
import Foundation
import HTTPTypes
import Testing

@testable import AssentEngine
@testable import AssentServer

/// What a client is told whose user must have signed in more strongly: in AM's words, and in the standard's (RFC 9470).
@Suite("The gateway asks for a stronger sign-in")
struct StrongerSignInTests {
    private static let header = [("x-authenticate-response", "header")]

    /// The challenge as the SDK reads it, and as AM's clients split it.
    private func wanted(_ reply: Answer) throws -> InsufficientAuthentication? {
        let field = try #require(reply["WWW-Authenticate"])
        #expect(reply.all("WWW-Authenticate").count == 1, "some clients read one field only")
        for part in field.split(separator: ",") { #expect(part.contains("=") && part.first != " ") }
        return InsufficientAuthentication(
            HTTPResponse(status: .unauthorized, headerFields: [.wwwAuthenticate: field]))
    }

    @Test("A client with an access token alone gets the standard's challenge behind AM's advice")
    func tokenAlone() async throws {
        try await ServerFixture.run { fixture in
            let tokens = try await fixture.tokens(session: try await fixture.session())
            for (path, values) in [
                ("/level", ["urn:bank:level1", "urn:bank:code"]), ("/journey", ["urn:bank:code", "Login"]),
            ] {
                for fields in [[], Self.header] {
                    let reply = try await fixture.send(
                        "GET", fixture.gateway(path), ServerFixture.bearer(tokens.access) + fields)
                    #expect(reply.status == 401)
                    #expect(try wanted(reply)?.acrValues == values)
                    let advice = try ReceivedAdvice(challenges: reply.all("WWW-Authenticate"))
                    #expect(advice?.serverOrigin == (try Origin(fixture.endpoints.server)))
                    #expect(advice?.advice.entries.count == 1)
                }
            }
        }
    }

    @Test("A client that has a session gets AM's advice as before; with a token beside it, in a redirect, too")
    func session() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let cookie = ServerFixture.session(session)
            let bearer = ServerFixture.bearer(try await fixture.tokens(session: session).access)
            for fields in [cookie, cookie + bearer] {
                let redirect = try await fixture.send("GET", fixture.gateway("/level"), fields)
                #expect(redirect.status == 307 && redirect["WWW-Authenticate"] == nil)
                #expect(redirect["Location"]?.contains("authIndexType=composite_advice") == true)
            }
            let asked = try await fixture.send("GET", fixture.gateway("/level"), cookie + Self.header)
            #expect(asked.status == 401)
            #expect(try wanted(asked) == nil, "a session's token is no bearer token")
            let both = try await fixture.send("GET", fixture.gateway("/level"), cookie + bearer + Self.header)
            #expect(both.status == 401)
            #expect(try wanted(both)?.acrValues == ["urn:bank:level1", "urn:bank:code"])
        }
    }

    @Test("With the acr_values of the challenge a browser gets a code whose token is let in, and says so")
    func wholeWay() async throws {
        try await ServerFixture.run { fixture in
            let session = try await fixture.session()
            let weak = try await fixture.tokens(session: session)
            let refused = try await fixture.send("GET", fixture.gateway("/level"), ServerFixture.bearer(weak.access))
            let values = try #require(try wanted(refused)?.acrValues)
            let browser = Browser(fixture, session: session)
            let parameters = [("acr_values", values.joined(separator: " "))]
            let sent = try await browser.open(fixture.authorizationURL(parameters))
            let page = try await browser.open(try #require(sent.answer["Location"]))
            #expect(page.answer.status == 200)
            let password = try fixture.account("ana").password.reveal()
            let code = try await browser.submit(page, [("IDToken1", "ana"), ("IDToken2", password)])
            let done = try await browser.submit(code, [("IDToken1", try fixture.freshCode("ana"))])
            let stronger = try #require(browser.session)
            #expect(stronger != session)
            let back = try await browser.open(try #require(done.answer["Location"]))
            #expect(back.answer.parameter("code") != nil)

            let strong = try await fixture.tokens(session: stronger)
            let let_in = try await fixture.send("GET", fixture.gateway("/level"), ServerFixture.bearer(strong.access))
            #expect(let_in.status == 200)
            // The grant of the weak token follows its session to the stronger one.
            let followed = try await fixture.send("GET", fixture.gateway("/level"), ServerFixture.bearer(weak.access))
            #expect(followed.status == 200)
            for (token, acr) in [(strong.id, "urn:bank:code"), (weak.id, nil)] {
                let payload = try #require(Base64URL.decode(token.split(separator: ".")[1]))
                #expect(try JSONValue.parse(payload)["acr"]?.string == acr)
            }
        }
    }

    @Test("A value that nobody knows is no dead end: the realm's own journey runs, or the session is enough")
    func unknown() async throws {
        try await ServerFixture.run { fixture in
            let login = try await fixture.authorize(session: nil, [("acr_values", "urn:nobody \"<x>")])
            #expect(login["Location"]?.contains("service=") == false)
            let page = try await Browser(fixture).open(try #require(login["Location"]))
            #expect(page.answer.status == 200 && page.action != nil)
            let enough = try await fixture.authorize(
                session: try await fixture.session(), [("acr_values", "urn:nobody")])
            #expect(enough.parameter("code") != nil)
        }
    }
}
