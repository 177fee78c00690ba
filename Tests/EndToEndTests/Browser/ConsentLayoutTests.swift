import AssentCore
import AssentPeers
import AssentServer
import Foundation
import StoreTesting
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite(
    "The page that asks for consent, as Chromium draws it", .serialized,
    .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct ConsentLayoutTests {
    @Test(
        "However many scopes an app asks for, what they mean stands in one column, below one another, and nothing overlaps"
    )
    func columns() async throws {
        let change = { (yaml: String) in
            yaml.replacing(
                "        accessTokenSeconds: 600\n",
                with: "        accessTokenSeconds: 600\n        consentImplied: false\n")
        }
        try await BrowserWorld.run(configuring: change) { person in
            let (browser, server) = (person.browser, person.world.endpoints.server)
            try await browser.open(server + "/UI/Login?realm=/alpha")
            try await person.enter()
            try await person.enterCode()
            let scopes = ["openid", "profile", "email", "accounts"]
            for count in 1...scopes.count {
                var url = "\(server)/oauth2/realms/root/realms/alpha/authorize"
                for (name, value) in [
                    ("response_type", "code"), ("client_id", "bank-app"), ("state", "s"),
                    ("redirect_uri", "http://127.0.0.1:50123/callback"), ("code_challenge_method", "S256"),
                    ("scope", scopes.prefix(count).joined(separator: " ")),
                    ("code_challenge", Base64URL.encode([UInt8](repeating: 7, count: 32))),
                ] { url = URLText.appending(name, value, to: url) }
                for width in [1280, 400] {
                    _ = try await browser.say("window/rect", ["width": .integer(Int64(width)), "height": 900])
                    try await browser.open(url)
                    let measured = try await browser.run(
                        """
                        const places = (name) => [...document.querySelectorAll(name)].map((element) => {
                            const box = element.getBoundingClientRect();
                            return [box.left, box.right, box.top, box.bottom].map(Math.round);
                        });
                        return [places('dt'), places('dd')];
                        """)
                    let boxes = (measured.array ?? []).map { list in
                        (list.array ?? []).map { ($0.array ?? []).compactMap { $0.integer.map(Int.init) } }
                    }
                    try #require(boxes.count == 2 && boxes[0].count == 3 && boxes[1].count == count + 2, "\(measured)")
                    #expect(Set(boxes[0].map { $0[0] }).count == 1, "labels of \(count) scopes at \(width): \(boxes)")
                    #expect(Set(boxes[1].map { $0[0] }).count == 1, "values of \(count) scopes at \(width): \(boxes)")
                    #expect(boxes[0][0][1] <= boxes[1][0][0])
                    for (above, below) in zip(boxes[1], boxes[1].dropFirst()) { #expect(above[3] <= below[2]) }
                    #expect(try await !browser.screenshot.isEmpty)
                }
            }
            #expect(try await browser.complaints == [])
        }
    }
}
