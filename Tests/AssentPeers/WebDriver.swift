package import AssentCore
import HTTPTypes
import TestSupport

/// A session of a browser that is driven from outside (W3C WebDriver).
package struct WebDriver: Sendable {
    private let client: PeerClient
    private let base: String

    /// Begins a session with `capabilities` at the driver at `url`.
    ///
    /// - Throws: ``PeerFailure`` with what the driver says.
    init(at url: String, capabilities: JSONValue) async throws {
        client = try PeerClient(PeerClient.transport(oneAtATime: false))
        let started = try await Self.send(
            client, .post, url + "/session", ["capabilities": ["alwaysMatch": capabilities]])
        guard let id = started["sessionId"]?.string else { throw PeerFailure("the browser has no session") }
        base = "\(url)/session/\(id)"
        // What a page is asked for may still be on its way.
        let patience = JSONValue.integer(Int64(Patience.seconds) * 1000)
        try await say("timeouts", ["implicit": patience, "pageLoad": patience, "script": patience])
    }

    /// Ends the session and the browser.
    func quit() async throws { _ = try await Self.send(client, .delete, base, nil) }

    /// Sends a command that has a result.
    ///
    /// - Throws: ``PeerFailure`` with what the driver says.
    @discardableResult
    package func say(_ command: String, _ parameters: JSONValue = [:]) async throws -> JSONValue {
        try await Self.send(client, .post, "\(base)/\(command)", parameters)
    }

    /// Asks for something.
    package func ask(_ question: String) async throws -> JSONValue {
        try await Self.send(client, .get, "\(base)/\(question)", nil)
    }

    private static func send(
        _ client: PeerClient, _ method: HTTPRequest.Method, _ url: String, _ parameters: JSONValue?
    ) async throws -> JSONValue {
        let answer = try await client.send(
            method, url, [.contentType: "application/json"], body: parameters?.serializedBytes())
        let value = answer.json["value"] ?? .null
        guard answer.status == 200 else {
            let message = value["message"]?.string ?? answer.text
            throw PeerFailure("the browser's driver: \(value["error"]?.string ?? "") \(message.prefix(1000))")
        }
        return value
    }
}

extension WebDriver {
    /// Goes to a page and waits until it is there.
    package func open(_ url: String) async throws { try await say("url", ["url": .string(url)]) }

    /// The address of the page.
    package var url: String { get async throws { try await ask("url").string ?? "" } }

    /// Waits until the page has led the browser to an address that begins with `prefix`.
    package func arrive(at prefix: String) async throws {
        do {
            try await Patience.wait(until: "the browser is at \(prefix)") { try await url.hasPrefix(prefix) }
        } catch is Patience.Exhausted {
            throw PeerFailure(
                "the browser stays at \(try await url), which says: \(try await text("body").prefix(1000))")
        }
    }

    /// What the window is called.
    package var title: String { get async throws { try await ask("title").string ?? "" } }

    /// Writes into the element that a CSS selector finds, in place of what is in it; waits for it.
    package func type(_ text: String, into selector: String) async throws {
        let element = try await element(selector)
        try await say("element/\(element)/clear")
        try await say("element/\(element)/value", ["text": .string(text)])
    }

    /// Clicks on the element that a CSS selector finds and that leads to another page; waits for both.
    package func press(_ selector: String) async throws {
        let before = try await element("html")
        try await say("element/\(element(selector))/click")
        do {
            // A name is all that an element of a page that is gone does not have any more.
            try await Patience.wait(until: "the page is gone") { (try? await ask("element/\(before)/name")) == nil }
        } catch is Patience.Exhausted {
            throw PeerFailure(
                "'\(selector)' leads nowhere from \(try await url): \(try await text("body").prefix(1000))")
        }
    }

    /// What the user reads in the element that a CSS selector finds; waits for it.
    package func text(_ selector: String = "main") async throws -> String {
        try await ask("element/\(element(selector))/text").string ?? ""
    }

    /// An attribute of the element that a CSS selector finds.
    package func attribute(_ name: String, of selector: String) async throws -> String? {
        try await ask("element/\(element(selector))/attribute/\(name)").string
    }

    /// Goes back in the window's history.
    package func back() async throws { try await say("back") }

    /// Loads the page again, and sends its form again where it came from one.
    package func reload() async throws { try await say("refresh") }

    /// What a script in the page returns. The driver runs it whatever the page's policy says.
    package func run(_ script: String) async throws -> JSONValue {
        try await say("execute/sync", ["script": .string(script), "args": []])
    }

    /// The cookies of the page's site, each with `name`, `httpOnly`, `secure`, `sameSite`, `path`, `domain`.
    package var cookies: [JSONValue] { get async throws { try await ask("cookie").array ?? [] } }

    /// What the browser has complained about since this was asked last: policies, scripts, what could not be loaded.
    package var complaints: [String] {
        get async throws {
            (try await say("se/log", ["type": "browser"]).array ?? []).compactMap { $0["message"]?.string }
        }
    }

    /// The window's picture, as base 64 of a PNG.
    package var screenshot: String { get async throws { try await ask("screenshot").string ?? "" } }

    private func element(_ selector: String) async throws -> String {
        let found = try await say("element", ["using": "css selector", "value": .string(selector)])
        // What WebDriver §12.2 calls the web element identifier.
        guard let id = found["element-6066-11e4-a52e-4f735466cecf"]?.string else {
            throw PeerFailure("there is no \(selector)")
        }
        return id
    }
}
