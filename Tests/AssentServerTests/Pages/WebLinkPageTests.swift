import AssentCore
import AssentStore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("The page of a link by which an app signs a browser in")
struct WebLinkPageTests {
    @Test("41: A browser opens a link, sees who it is for, sends the form, is signed in and is led to the target")
    func story() async throws {
        try await WebLinkDoor.run { door in
            let browser = Browser(door.fixture)
            let page = try await browser.open(try await door.link())
            #expect(page.answer.status == 200 && page.text.contains("<strong>ana</strong>"))
            #expect(page.text.contains("https://shop.example") && page.text.contains("Example Pay"))
            #expect(!page.text.contains("<script") && !page.text.contains("role=\"alert\""))
            #expect(page.answer["Referrer-Policy"] == "no-referrer" && page.answer["Cache-Control"] == "no-store")
            #expect(
                page.answer["Content-Security-Policy"]?.hasSuffix("form-action 'self' https://shop.example") == true)
            #expect(page.action?.hasSuffix("/am/UI/Link") == true, "the link's id is not in the form's address")
            #expect(browser.session == nil)
            let sent = try await browser.post(page, [])
            #expect(sent.answer.status == 303 && sent.answer["Location"] == WebLinkDoor.target)
            #expect(sent.answer["Referrer-Policy"] == "no-referrer" && sent.answer["Cache-Control"] == "no-store")
            let session = try #require(try await door.live(browser.session))
            let app = try #require(try await door.live(door.session))
            #expect(session.user.username == "ana" && session.id != app.id && !session.isOfJourney)
            #expect(session.authLevel == app.authLevel && session.createdAt == app.createdAt)
        }
    }

    @Test("41: Opening a link, by GET, HEAD or a prefetch, uses nothing; a replay of its form does nothing")
    func once() async throws {
        try await WebLinkDoor.run { door in
            let link = try await door.link()
            for (method, fields) in [
                ("HEAD", []), ("GET", []), ("GET", [("Sec-Purpose", "prefetch;prerender"), ("Purpose", "prefetch")]),
                ("GET", [("Sec-Fetch-Site", "cross-site")]), ("HEAD", []),
            ] {
                let answer = try await door.fixture.send(method, link, fields)
                #expect(answer.status == 200 && answer["Set-Cookie"] == nil)
            }
            for method in ["PUT", "DELETE", "PATCH", "OPTIONS"] {
                #expect(try await door.fixture.send(method, link, [door.origin]).status == 405)
            }
            #expect(try await door.made() == 0)
            let form = "id=" + WebLinkDoor.id(link)
            #expect(try await door.post(form).status == 303)
            for answer in [try await door.post(form), try await door.fixture.send("GET", link)] {
                #expect(answer.status == 410 && answer["Set-Cookie"] == nil && answer["Location"] == nil)
                #expect(answer["Referrer-Policy"] == "no-referrer")
            }
            #expect(try await door.made() == 1)
            let records = try await door.fixture.rows(
                "SELECT outcome FROM audit WHERE event = 'weblink.use' ORDER BY position")
            #expect(try records.map { try $0.text("outcome") } == ["success", "refused"])
        }
    }

    @Test("41: A form that is sent 100 times at once signs one browser in")
    func race() async throws {
        try await WebLinkDoor.run { door in
            let form = "id=" + WebLinkDoor.id(try await door.link())
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<100 { group.addTask { try await door.post(form).status } }
                return try await group.reduce(into: [Int: Int]()) { $0[$1, default: 0] += 1 }
            }
            #expect(statuses == [303: 1, 410: 99])
            #expect(try await door.made() == 1)
        }
    }

    @Test("The form must come from the server's own page; browsers that name no origin say whether it is the same one")
    func origins() async throws {
        try await WebLinkDoor.run { door in
            let form = "id=" + WebLinkDoor.id(try await door.link())
            let same = ("Sec-Fetch-Site", "same-origin")
            for fields in [
                [], [same], [("Origin", "https://evil.example")], [("Origin", "https://evil.example"), same],
                [("Origin", "null")], [("Origin", "null"), ("Sec-Fetch-Site", "cross-site")],
                [("Origin", "null"), ("Sec-Fetch-Site", "same-site")], [("Origin", "null"), same, same],
                [door.origin, ("Origin", "https://evil.example")], [("Origin", door.origin.1 + "/x")], [("Origin", "")],
            ] {
                let answer = try await door.post(form, fields)
                #expect(answer.status == 403 && answer["Set-Cookie"] == nil, "\(fields): \(answer.status)")
            }
            #expect(try await door.made() == 0)
            #expect(try await door.post(form, [("Origin", "null"), same]).status == 303)
        }
    }

    @Test("Fields that are missing, repeated, huge or odd use nothing, in the URL and in the form")
    func fields() async throws {
        try await WebLinkDoor.run { door in
            let link = try await door.link()
            let id = WebLinkDoor.id(link)
            let long = String(repeating: "a", count: 129)
            for text in [
                "", "id", "id=", "ID=\(id)", "id=\(id)&id=\(id)", "id=\(id)x", "id=\(id.dropLast())", "id=\(long)",
                "id=%00\(id)", "id=\(id)%00", "id=%ff\(id)", "x=1&y=2",
                "id=\(id)&" + (1...16).map { "p\($0)=1" }.joined(separator: "&"),
            ] {
                #expect(try await door.post(text).status == 410, "\(text)")
                #expect(try await door.fixture.send("GET", door.fixture.server("/UI/Link?" + text)).status == 410)
            }
            #expect(try await door.post("id=\(id)&x=" + String(repeating: "a", count: 5000)).status == 413)
            let json = try await door.fixture.send(
                "POST", door.fixture.server("/UI/Link"), [door.origin, ("Content-Type", "application/json")],
                text: "{\"id\":\"\(id)\"}")
            #expect(json.status == 415)
            #expect(try await door.fixture.send("GET", door.fixture.server("/UI/Link")).status == 410)
            #expect(try await door.made() == 0)
            #expect(try await door.post("id=\(id)").status == 303)
        }
    }

    @Test("41: The page warns of another session in the browser, which ends when the form is sent")
    func otherSession() async throws {
        try await WebLinkDoor.run { door in
            let ben = try await door.fixture.session("ben")
            let browser = Browser(door.fixture, session: ben)
            let page = try await browser.open(try await door.link())
            #expect(page.text.contains("role=\"alert\"") && page.text.contains("<strong>ben</strong>"))
            #expect(try await door.live(ben) != nil)
            #expect(try await browser.post(page, []).answer.status == 303)
            #expect(try await door.live(browser.session)?.user.username == "ana")
            #expect(try await door.live(ben) == nil)

            let bob = Browser(door.fixture, session: try await door.fixture.session("bob", realm: "beta"))
            let foreign = try await bob.open(try await door.link())
            #expect(foreign.text.contains("role=\"alert\"") && !foreign.text.contains("bob"))

            // The app's own session, on which its grant hangs, is not ended.
            let own = Browser(door.fixture, session: door.session)
            #expect(try await own.post(try await own.open(try await door.link()), []).answer.status == 303)
            #expect(own.session != door.session)
            for token in [own.session, door.session] { #expect(try await door.live(token) != nil) }
        }
    }

    @Test("The page is in the reader's language")
    func german() async throws {
        try await WebLinkDoor.run { door in
            let answer = try await door.fixture.send("GET", try await door.link(), [("Accept-Language", "de")])
            #expect(answer.text.contains("Diesen Browser anmelden?"))
        }
    }
}
