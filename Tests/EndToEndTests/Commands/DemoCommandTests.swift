import AssentCore
import AssentPeers
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("assent demo", .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct DemoCommandTests {
    @Test("Found in the PATH, from another directory, it tells the whole story and draws it")
    func path() async throws {
        let place = NSTemporaryDirectory() + "assent-demo-test-" + SystemRandom().token(byteCount: 9)
        try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: place) }
        let programs = BuiltProgram.beside("assent").deletingLastPathComponent().path
        let page = place + "/page.html"
        let running = try Program.Running(
            Program.Running.limits + [
                "/usr/bin/env", "-C", place, "assent", "demo", "--json",
                "--config", World.configurationFile, "--page", page,
            ], environment: ["HOME": place, "PATH": programs + ":/usr/bin:/bin"])
        let result = await running.result()
        #expect(result.status == 0, "\(result.errors)")
        let told = try JSONValue.parse(result.output)
        #expect(told["checks"] == 92 && told["failures"] == [])
        let events = told["events"]?.array ?? []
        for (from, to) in [("Gateway", "Bank"), ("Bank", "Gateway")] {
            #expect(events.contains { $0["from"]?.string == from && $0["to"]?.string == to }, "\(from) to \(to)")
        }
        for door in ["Gateway", "assent serve"] {
            #expect(
                events.contains {
                    $0["from"]?.string == door && $0["to"]?.string == "Thief" && $0["refused"]?.bool == true
                }, "\(door) to the thief")
        }
        #expect(
            events.contains {
                $0["check"]?.string == "the session without a proof, at the gateway: 401 invalid_dpop_proof"
            })
        let drawn = try String(contentsOfFile: page, encoding: .utf8)
        // Each lane's name at both ends: the drawing is longer than a screen.
        for party in Narration.Party.allCases {
            #expect(drawn.ranges(of: ">\(party.rawValue)<").count == 2, "\(party.rawValue)")
        }
        try await look(at: page)
    }

    /// On a screen of 1280 pixels all of it can be seen, and on a smaller one reached by keyboard.
    private func look(at page: String) async throws {
        try await Chromium.run(trusting: []) { browser in
            _ = try await browser.say("window/rect", ["width": 1280, "height": 900])
            try await browser.open("file://\(page)")
            let seen = try await browser.run(
                """
                const box = document.querySelector('.scroll');
                box.focus();
                return [box.scrollWidth <= box.clientWidth, document.activeElement === box,
                    document.querySelectorAll('main').length, document.querySelectorAll('main .scroll svg').length];
                """)
            #expect(seen == [true, true, 1, 1])
        }
    }
}
