import Assent
import AssentTesting
import Foundation
import HTTPTypes
import Testing

@testable import AssentResources

@Suite("Links into a browser, in an app")
struct WebLinkTests {
    private static let target = "https://shop.bank.example/orders"

    private func world(_ status: Int, _ json: JSONValue, hasLinks: Bool = true) -> ResourceWorld {
        let world = ResourceWorld()
        world.behaviour.withLock {
            $0.hasLinks = hasLinks
            $0.resource = { _ in .json(status, json) }
        }
        return world
    }

    @Test("41: The user's token is posted with the page, and the link and its end come back")
    func link() async throws {
        let url = "\(am)/UI/Link?id=abc"
        let world = world(200, ["url": .string(url), "expires_in": 60])
        let assent = try await world.assent(signedIn: true)
        let link = try await assent.userClient.webLink(to: Self.target)
        #expect(link.url == url && link.expiresAt == ManualClock().now.addingTimeInterval(60))
        #expect(!"\(link)".contains("abc") && !"\([link])".contains("abc"))
        let sent = try #require(world.sent.last)
        #expect(sent.request.method == .post && sent.request.url?.hasSuffix("/web_link") == true)
        #expect(sent.request.headerFields[.authorization] == "Bearer access")
    }

    @Test("41: Each refusal is in the app what its row says")
    func refused() async throws {
        let rows = try table("links")
        #expect(rows.count == 6)
        for row in rows {
            let status = try #require(Int(row[1]))
            let assent = try await world(status, ["error": .string(row[2])]).assent(signedIn: true)
            let error = try #require(
                await #expect(throws: ResourceError.self) { try await assent.userClient.webLink(to: Self.target) })
            #expect("\(error.domain) \(error.number)" == row[3], "\(row)")
        }
    }

    @Test("41: A server without links is 10023, and nobody signed in is 9010; neither asks for one")
    func none() async throws {
        let world = world(200, [:], hasLinks: false)
        let assent = try await world.assent(signedIn: true)
        let off = await #expect(throws: ResourceError.self) { try await assent.userClient.webLink(to: Self.target) }
        #expect(off?.number == 10023 && off?.domain == .generic)
        let nobody = try await world.assent()
        let error = await #expect(throws: ResourceError.self) { try await nobody.userClient.webLink(to: Self.target) }
        #expect(error?.number == 9010)
        #expect(!world.sent.contains { $0.request.url?.hasSuffix("/web_link") == true })
    }

    @Test("41: A link is not made for somebody who has signed in since it was asked for")
    func anotherUser() async throws {
        let world = world(200, [:])
        let assent = try await world.assent(signedIn: true)
        let grants = Locked(0)
        world.behaviour.withLock {
            $0.resource = { exchange in
                guard exchange.request.headerFields[.authorization] == "Bearer access" else {
                    return .json(200, ["url": .string("\(am)/UI/Link?id=abc"), "expires_in": 60])
                }
                try await assent.tokens.install(Session(token: Secret("BOB")))
                return .json(401, [:], headers: [.wwwAuthenticate: #"Bearer error="invalid_token""#])
            }
            $0.token = { _ in
                let count = grants.withLock { count in
                    count += 1
                    return count
                }
                return .json(200, ["access_token": .string(count == 1 ? "access" : "bob"), "expires_in": 600])
            }
        }
        let error = await #expect(throws: ResourceError.self) { try await assent.userClient.webLink(to: Self.target) }
        #expect(error?.number == 9006)
        #expect(world.sent.filter { $0.request.url?.hasSuffix("/web_link") == true }.count == 1)
    }

    @Test(
        "An answer that is no link of the server's own is refused",
        arguments: [
            [:], ["url": "https://evil.example/UI/Link?id=a", "expires_in": 60],
            ["url": "https://am.example.com/am/UI/Link?id=a"],
            ["url": "https://am.example.com/am/UI/Link?id=a", "expires_in": 0],
            ["url": "https://am.example.com/am/UI/Link?id=a", "expires_in": 999_999],
            ["url": "http://am.example.com/am", "expires_in": 60], ["url": "x", "expires_in": 60],
        ] as [JSONValue])
    func foreign(answer: JSONValue) async throws {
        let assent = try await world(200, answer).assent(signedIn: true)
        let error = await #expect(throws: ResourceError.self) { try await assent.userClient.webLink(to: Self.target) }
        #expect(error?.number == -1011)
    }
}
