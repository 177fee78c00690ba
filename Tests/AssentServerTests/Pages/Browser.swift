import AssentCore
import Foundation
import Testing

@testable import AssentServer

/// What a browser does with our pages: keeps cookies, reads a form, fills it in and sends it, saying where it comes
/// from.
final class Browser: Sendable {
    struct Page: Sendable {
        let url: String
        let answer: Answer

        /// The answer to the form that led here, when that was a redirect to a page of the server's own.
        var posted: Answer?

        /// The `Set-Cookie` of the session's cookie, on the way here or here.
        var sessionCookie: String? {
            ((posted?.all("Set-Cookie") ?? []) + answer.all("Set-Cookie"))
                .first { $0.hasPrefix(ServerFixture.cookieName + "=") }
        }

        var text: String { answer.text }

        /// The form's `action`, as a URL.
        var action: String? {
            text.firstMatch(of: /<form method="post" action="([^"]*)"/).map {
                (url.firstMatch(of: /^https:\/\/[^\/]*/).map { String($0.0) } ?? "") + Browser.unescaped($0.1)
            }
        }

        /// Names and values that the form already has, except those of buttons and radio buttons.
        var values: [(String, String)] {
            text.matches(of: /<input ([^>]*)>/).compactMap { match in
                let attributes = String(match.1)
                guard !attributes.contains("type=\"radio\""),
                    let name = attributes.firstMatch(of: /name="([^"]*)"/)
                else { return nil }
                let value = attributes.firstMatch(of: /value="([^"]*)"/).map { Browser.unescaped($0.1) } ?? ""
                return (String(name.1), value)
            }
        }
    }

    private let fixture: ServerFixture
    private let cookies = Locked<[String: String]>([:])

    init(_ fixture: ServerFixture, session: String? = nil) {
        self.fixture = fixture
        if let session { cookies.withLock { $0[ServerFixture.cookieName] = session } }
    }

    /// The names of its cookies.
    var cookieNames: [String] { cookies.withLock { $0.keys.sorted() } }

    var session: String? { cookies.withLock { $0[ServerFixture.cookieName] } }

    /// The origin of the server's own pages.
    var origin: String { "https://localhost:\(fixture.serverPort)" }

    func open(_ url: String, _ fields: [(String, String)] = []) async throws -> Page {
        keep(try await fixture.send("GET", url, fields + cookieFields), url)
    }

    /// Fills the form in and sends it, and goes where that leads, as long as it is a page of the server's own; a value
    /// that is `nil` is left out.
    func submit(
        _ page: Page, _ answers: [(String, String?)], fields: [(String, String)]? = nil
    ) async throws -> Page {
        let sent = try await post(page, answers, fields: fields)
        guard sent.answer.status == 303, let location = sent.answer["Location"], location.hasPrefix("/am/UI/Login")
        else { return sent }
        var next = try await open(origin + location)
        next.posted = sent.answer
        return next
    }

    /// Fills the form in and sends it, and stays there.
    func post(
        _ page: Page, _ answers: [(String, String?)], fields: [(String, String)]? = nil
    ) async throws -> Page {
        let action = try #require(page.action)
        var items = page.values.filter { own in !answers.contains { $0.0 == own.0 } }
        items += answers.compactMap { name, value in value.map { (name, $0) } }
        let sent = fields ?? [("Origin", origin), ("Sec-Fetch-Site", "same-origin")]
        return keep(
            try await fixture.send(
                "POST", action, sent + cookieFields + [("Content-Type", "application/x-www-form-urlencoded")],
                text: ServerFixture.query(items)), action)
    }

    private var cookieFields: [(String, String)] {
        let all = cookies.withLock { $0 }
        return all.isEmpty ? [] : [("Cookie", all.map { "\($0.key)=\($0.value)" }.joined(separator: "; "))]
    }

    private func keep(_ answer: Answer, _ url: String) -> Page {
        for field in answer.all("Set-Cookie") {
            #expect(field.contains("; Secure; HttpOnly; SameSite="))
            let pair = field.prefix { $0 != ";" }.split(separator: "=", maxSplits: 1).map(String.init)
            cookies.withLock { $0[pair[0]] = pair.count > 1 ? pair[1] : nil }
        }
        return Page(url: url, answer: answer)
    }

    static func unescaped(_ text: some StringProtocol) -> String {
        String(text).replacing("&lt;", with: "<").replacing("&gt;", with: ">").replacing("&quot;", with: "\"")
            .replacing("&#39;", with: "'").replacing("&amp;", with: "&")
    }
}

extension ServerFixture {
    /// The address of the sign-in page.
    func signInPage(_ items: [(String, String)]) -> String { server("/UI/Login?") + Self.query(items) }

    /// An authorization request as a native app's browser opens it, at a loopback port of its own.
    func authorizationURL(port: Int = 50_123, _ parameters: [(String, String)] = []) -> String {
        let items =
            [
                ("response_type", "code"), ("client_id", "bank-app"),
                ("redirect_uri", "http://127.0.0.1:\(port)/callback"), ("state", "st/1"), ("scope", "openid"),
                ("code_challenge_method", "S256"),
                ("code_challenge", Base64URL.encode([UInt8](repeating: 7, count: 32))),
            ] + parameters
        return oauth("authorize") + "?" + Self.query(items)
    }
}
