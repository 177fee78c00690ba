import AssentCore
import AssentOTP
import AssentPeers
import AssentServer
import AssentTesting
import Foundation
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

/// The demo's world, the program and a browser: what a person has who signs in through the hosted pages.
struct BrowserWorld: Sendable {
    let world: DemoWorld
    let clock: ManualClock
    let program: Program
    let browser: WebDriver

    /// Runs `body` in a world of its own, whose configuration is the example's as `change` leaves it, and ends it
    /// whatever happens.
    static func run(
        configuring change: (String) -> String = { $0 },
        thirdPartyCookies cookies: Chromium.ThirdPartyCookies = .asInstalled,
        _ body: (BrowserWorld) async throws -> Void
    ) async throws {
        let directory = NSTemporaryDirectory() + "/assent-browser-" + SystemRandom().token(byteCount: 9)
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var sources = try await World.sources()
        let original = try World.example()
        sources.configurationFile = directory + "/assent.yaml"
        try change(original).write(toFile: sources.configurationFile, atomically: false, encoding: .utf8)
        let clock = ManualClock(Date())
        let world = try await DemoWorld.start(sources: sources, clock: clock, logger: CollectingLog().logger)
        do {
            let file = try #require(ClientFile(endpoints: world.endpoints, configuration: world.configuration))
            let program = try Program(below: directory, client: file.yaml)
            try await Chromium.run(trusting: world.endpoints.pins, thirdPartyCookies: cookies) { browser in
                try await body(BrowserWorld(world: world, clock: clock, program: program, browser: browser))
            }
        } catch {
            await world.stop()
            throw error
        }
        await world.stop()
    }

    /// Begins `assent login --browser`, and returns the address that it prints.
    func beginLogin(
        _ options: String..., environment: [String: String] = [:]
    ) async throws -> (program: Program.Running, url: String) {
        // By itself it gives a person five minutes, in which a busy machine may not have shown the page.
        let limit = options.contains("--timeout") ? [] : ["--timeout", "\(Patience.seconds)"]
        let running = try program.start(
            ["login", "--config", program.clientFile, "--browser"] + limit + options, environment: environment)
        let line = try await running.line(with: "https://")
        return (running, line.trimmingCharacters(in: .whitespaces))
    }

    /// The session's cookie.
    var session: JSONValue? {
        get async throws { try await browser.cookies.first { $0["name"]?.string == world.endpoints.cookieName } }
    }

    /// Fills in the page that asks for name and password.
    func enter(password: String? = nil) async throws {
        try await browser.type(world.account.username, into: "input[autocomplete=username]")
        try await browser.type(password ?? world.account.password.reveal(), into: "input[type=password]")
        try await browser.press("button.primary")
    }

    /// Fills in the page that asks for a code that was not used before.
    func enterCode() async throws {
        clock.advance(by: 30)
        let code = try TOTP(secret: world.account.totpSeed).code(at: clock.now)
        try await browser.type(code, into: "input[autocomplete=one-time-code]")
        try await browser.press("button.primary")
    }

    /// Signs in with the program and the browser.
    func signIn() async throws {
        let (running, url) = try await beginLogin()
        try await browser.open(url)
        try await enter()
        try await enterCode()
        let result = await running.result()
        try #require(result.status == 0, "\(result.errors)")
    }
}
