package import AssentCore
import Foundation

/// A Chromium without a window, with a profile of its own that is removed when it ends.
package final class Chromium: Sendable {
    /// What drives it.
    package let driver: WebDriver

    private let process: Locked<ChildProcess>

    /// What its user has chosen for cookies of other sites than the page's.
    package enum ThirdPartyCookies: String, Sendable, CaseIterable {
        /// Nothing: as it was installed. Debian's blocks them.
        case asInstalled
        /// They are kept.
        case allowed
        /// They are blocked.
        case blocked
    }

    /// Starts one.
    ///
    /// It finds no host but this machine.
    /// - Parameters:
    ///   - pins: keys that it trusts as authorities for any name; everything else about TLS stays as strict as it is.
    ///   - cookies: what its user has chosen for cookies of other sites.
    /// - Throws: ``PeerFailure`` when Chromium or its driver is not installed or does not start.
    package init(trusting pins: [Pin], thirdPartyCookies cookies: ThirdPartyCookies = .asInstalled) async throws {
        let directory = try Peer.temporaryDirectory()
        let process = Locked(
            try ChildProcess("/bin/bash", [Peer.scripts + "/chromium.sh", directory], removing: directory))
        self.process = process
        do {
            let port = try await Self.port(of: process)
            driver = try await WebDriver(
                at: "http://127.0.0.1:\(port)", capabilities: Self.capabilities(directory, trusting: pins, cookies))
        } catch {
            process.withLock { $0.stop() }
            throw error
        }
    }

    /// Ends it.
    package func stop() async {
        try? await driver.quit()
        process.withLock { $0.stop() }
    }

    /// Runs `body` with a browser of its own, and ends it whatever happens.
    package static func run(
        trusting pins: [Pin], thirdPartyCookies cookies: ThirdPartyCookies = .asInstalled,
        _ body: (WebDriver) async throws -> Void
    ) async throws {
        let browser = try await Chromium(trusting: pins, thirdPartyCookies: cookies)
        do {
            try await body(browser.driver)
        } catch {
            await browser.stop()
            throw error
        }
        await browser.stop()
    }

    private static func capabilities(
        _ directory: String, trusting pins: [Pin], _ cookies: ThirdPartyCookies
    ) -> JSONValue {
        let keys = pins.map { Data($0.sha256).base64EncodedString() }.joined(separator: ",")
        var arguments = [
            "--headless=new", "--user-data-dir=\(directory)/profile", "--ignore-certificate-errors-spki-list=\(keys)",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-gpu",
            "--disable-dev-shm-usage", "--window-size=1100,900",
        ]
        // Chromium's sandbox does not start for root.
        if geteuid() == 0 { arguments.append("--no-sandbox") }
        var options: JSONObject = [
            "binary": .string(directory + "/chromium"), "args": .array(arguments.map(JSONValue.string)),
        ]
        if cookies != .asInstalled {
            let isBlocked = cookies == .blocked
            options["prefs"] = [
                "profile": [
                    "cookie_controls_mode": .integer(isBlocked ? 1 : 0), "block_third_party_cookies": .bool(isBlocked),
                ]
            ]
        }
        return [
            "browserName": "chrome", "goog:loggingPrefs": ["browser": "ALL"], "goog:chromeOptions": .object(options),
        ]
    }

    /// Waits for the driver on a thread on which waiting holds nobody up.
    private static func port(of process: Locked<ChildProcess>) async throws -> Int {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                var said = ""
                while let line = process.withLock({ $0.line() }) {
                    if let match = line.firstMatch(of: /successfully on port ([0-9]+)/), let port = Int(match.1) {
                        continuation.resume(returning: port)
                        return
                    }
                    said += line + "\n"
                }
                continuation.resume(throwing: PeerFailure("chromium.sh: \(said)"))
            }
        }
    }
}
