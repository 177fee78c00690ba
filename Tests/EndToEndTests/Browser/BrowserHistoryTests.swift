import Assent
import AssentCore
import AssentPeers
import AssentServer
import Foundation
import HTTPTypes
import StoreTesting
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite(
    "Reload and back in Chromium", .serialized, .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct BrowserHistoryTests {
    /// The page must not make one blank of two: it is what is approved.
    private static let payee = "Bob  &   Sons"

    /// A payment that the gateway refuses until it is approved: where it sends the browser.
    private func refusedPayment(_ person: BrowserWorld) async throws -> String {
        let token = try await person.program.run("token").output
        let body: JSONValue = ["to": .string(Self.payee), "amount": "200.00", "currency": "EUR"]
        let gateway = try #require(person.world.endpoints.gateway)
        let transport = try NIOTransport(
            configuration: NIOTransportConfiguration(
                trustRoots: .pemFile(try #require(person.world.endpoints.authorityFile)),
                pins: ["localhost": .pins(person.world.endpoints.pins)]
            ).withLeastLimit(.seconds(Patience.seconds)))
        let reply = try await transport.send(
            HTTPCall(
                HTTPRequest(
                    .post, url: gateway + "/transfers",
                    headerFields: [.authorization: "Bearer \(token)", .contentType: "application/json"]),
                body: HTTPBody(body.serializedBytes())))
        await transport.shutdown()
        #expect(reply.status == 307)
        return try #require(reply.response.headerFields[.location])
    }

    private func expectApproval(
        _ browser: WebDriver, _ title: String, _ location: SourceLocation = #_sourceLocation
    ) async throws {
        let text = try await browser.text()
        for part in [title, "200.00 EUR", Self.payee, "Asked for by Bank app.", "For the account ana, until "] {
            #expect(text.contains(part), "\(part) in \(text)", sourceLocation: location)
        }
    }

    /// Goes back to the first page, which the browser may have kept, and presses "Continue" again.
    private func goBackAndOn(_ browser: WebDriver) async throws {
        try await browser.back()
        if try await browser.text("h1") == "Approve a request" { try await browser.press("button.primary") }
    }

    @Test("An approval lives through reload, back, and back and \"Continue\", on each of its pages")
    func approval() async throws {
        // Where the page leads afterwards.
        let home = "scopes: [accounts]\n      home: /accounts"
        try await BrowserWorld.run(configuring: { $0.replacing("scopes: [accounts]", with: home, maxReplacements: 1) })
        {
            person in
            let browser = person.browser
            try await person.signIn()
            let location = try await refusedPayment(person)
            try await browser.open(location)
            #expect(try await browser.text("h1") == "Approve a request")
            try await browser.press("button.primary")
            try await expectApproval(browser, "Approve this request?")
            try await browser.reload()
            try await expectApproval(browser, "Approve this request?")
            try await goBackAndOn(browser)
            try await expectApproval(browser, "Approve this request?")
            try await browser.press("button.primary")
            try await expectApproval(browser, "Confirm that it is you")
            try await browser.reload()
            try await expectApproval(browser, "Confirm that it is you")
            try await goBackAndOn(browser)
            try await expectApproval(browser, "Confirm that it is you")
            // A link that is followed twice.
            try await browser.open(location)
            try await expectApproval(browser, "Confirm that it is you")
            // A wrong code, and a reload of what is said to it.
            try await browser.type("000000", into: "input[autocomplete=one-time-code]")
            try await browser.press("button.primary")
            try await expectApproval(browser, "That was not accepted.")
            try await browser.reload()
            try await expectApproval(browser, "That was not accepted.")
            try await person.enterCode()
            #expect(try await browser.text("h1") == "Approved")
            try await browser.reload()
            #expect(try await browser.text().contains("Nothing has been sent yet."))
            try await browser.press("a.button")
            try await browser.arrive(at: try #require(person.world.endpoints.gateway))
        }
    }

    @Test("Back from a wrong answer and a reload of it show a page that can be filled in, never the browser's own")
    func signIn() async throws {
        try await BrowserWorld.run { person in
            let browser = person.browser
            let (running, url) = try await person.beginLogin()
            try await browser.open(url)
            try await person.enter(password: "not the password")
            try await browser.reload()
            #expect(try await browser.text(".alert").contains("was not accepted"))
            try await person.enter(password: "not the password either")
            try await browser.back()
            #expect(try await browser.attribute("type", of: "input[type=password]") == "password")
            try await browser.say("forward")
            #expect(try await browser.attribute("type", of: "input[type=password]") == "password")
            try await person.enter()
            #expect(try await browser.text("label").contains("Code"))
            try await browser.back()
            try await browser.say("forward")
            #expect(try await browser.text("label").contains("Code"))
            try await person.enterCode()
            #expect(await running.result().status == 0)
            #expect(try await browser.cookies.count <= 1)
        }
    }
}
