import AssentCore
import AssentPeers
import AssentServer
import Foundation
import StoreTesting
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("Signing in with Chromium", .serialized, .disabled(if: TestDatabase.isPostgreSQL, "the run with SQLite has it"))
struct BrowserSignInTests {
    @Test("The program prints an address, a person signs in there by password and code, and the program has the tokens")
    func story() async throws {
        try await BrowserWorld.run { person in
            let (running, url) = try await person.beginLogin()
            let browser = person.browser
            try await browser.open(url)
            #expect(try await browser.title == "Sign in")
            #expect(try await browser.text().contains("to continue to Bank app"))
            try await person.enter(password: "not the password")
            #expect(try await browser.text(".alert").contains("was not accepted"))
            #expect(try await browser.title == "Error: Sign in")
            // Nobody is signed in by that, and the page can be filled in again.
            #expect(try await person.session == nil)
            try await person.enter()
            #expect(try await browser.text("label").contains("Code from your authenticator"))
            #expect(try await person.session == nil)
            try await person.enterCode()
            #expect(try await browser.text("h1") == "Almost done")
            #expect(try await browser.url.hasPrefix("http://127.0.0.1:"))
            let result = await running.result()
            #expect(result.status == 0 && result.output.contains("Signed in."), "\(result.errors)")

            let token = try await person.program.run("token")
            #expect(token.status == 0 && token.output.split(separator: ".").count == 3)
            let user = try await person.program.run("userinfo")
            #expect(user.status == 0)
            #expect(try JSONValue.parse(user.output)["email"]?.string == "ana@bank.example")
            let accounts = try await person.program.run(
                "request", "GET", (person.world.endpoints.gateway ?? "") + "/accounts")
            #expect(accounts.status == 0, "\(accounts.errors)")
            #expect(try await browser.complaints == [])
        }
    }

    @Test("The session's cookie is out of reach of scripts, of plain HTTP and of other sites")
    func cookie() async throws {
        try await BrowserWorld.run { person in
            try await person.signIn()
            try await person.browser.open(person.world.endpoints.server + "/UI/Login?realm=/alpha")
            #expect(try await person.browser.text("h1") == "You are signed in")
            let cookie = try #require(try await person.session)
            #expect(try await person.browser.cookies.count == 1)
            #expect(cookie["httpOnly"] == true && cookie["secure"] == true)
            #expect(cookie["sameSite"]?.string == "Lax")
            #expect(cookie["domain"]?.string == "localhost" && cookie["path"]?.string == "/")
            // It goes with the browser's session.
            #expect(cookie["expiry"] == nil)
            #expect(try await person.browser.run("return document.cookie").string == "")
        }
    }

    @Test("After a cancelled sign-in the program says so and has nothing")
    func cancel() async throws {
        try await BrowserWorld.run { person in
            let (running, url) = try await person.beginLogin()
            try await person.browser.open(url)
            try await person.browser.press("button[name=cancel]")
            #expect(try await person.browser.text("h1") == "You are not signed in")
            let result = await running.result()
            #expect(result.status == 2, "\(result.errors)")
            #expect(result.errors.contains("access_denied"))
            #expect(try await person.browser.cookies.isEmpty)
            let token = try await person.program.run("token")
            // The file that was named is kept only once somebody has signed in with it.
            #expect(token.status == 78 && token.output.isEmpty && token.errors.contains("assent login"))
        }
    }

    @Test("When no browser comes back in time, the program says so")
    func timeout() async throws {
        try await BrowserWorld.run { person in
            let (running, url) = try await person.beginLogin("--timeout", "1")
            try await person.browser.open(url)
            let result = await running.result()
            #expect(result.status == 1 && result.errors.contains("Nobody signed in"))
        }
    }

    @Test("Reload and back lead to a page that can be used, and sign nobody in twice")
    func history() async throws {
        try await BrowserWorld.run { person in
            let browser = person.browser
            let (running, url) = try await person.beginLogin()
            try await browser.open(url)
            try await browser.reload()
            try await person.enter()
            let asked = "input[autocomplete=one-time-code]"
            #expect(try await browser.text("label").contains("Code"))
            try await browser.reload()
            #expect(try await browser.attribute("type", of: asked) == "text")
            try await browser.back()
            #expect(try await browser.attribute("type", of: "input[type=password]") == "password")
            try await person.enter()
            try await person.enterCode()
            #expect(await running.result().status == 0)
            // The receiver is gone; going back shows the server's page to a person who is signed in.
            try await browser.open(person.world.endpoints.server + "/UI/Login?realm=/alpha")
            #expect(try await browser.text("h1") == "You are signed in")
            try await browser.reload()
            #expect(try await browser.text("h1") == "You are signed in")
            #expect(try await person.session != nil)
        }
    }

    @Test(
        "Where there is a display a browser is opened, and no command line tells other users the address of the sign-in"
    )
    func display() async throws {
        try await BrowserWorld.run { person in
            let home = person.program.home
            let (environment, reader) = try display(person, #"echo "$#:$*""#)
            let (running, url) = try await person.beginLogin(environment: environment)
            let opened = await reader.result().output
            #expect(opened.hasPrefix("1:\(home)/runtime/assent-") && !opened.contains("state"))
            let file = String(opened.dropFirst(2))
            for (path, mode) in [(file, 0o600), (URL(fileURLWithPath: file).deletingLastPathComponent().path, 0o700)] {
                let attributes = try FileManager.default.attributesOfItem(atPath: path)
                #expect(attributes[.posixPermissions] as? Int == mode)
            }
            #expect(!url.isEmpty)
            try await person.browser.open("file://" + file)
            try await person.browser.arrive(at: person.world.endpoints.server)
            try await person.enter()
            try await person.enterCode()
            #expect(await running.result().status == 0)
            #expect(try FileManager.default.contentsOfDirectory(atPath: home + "/runtime") == [])
        }
    }

    /// A display, with a program in the place of `xdg-open` that runs a line of shell: what that writes comes to the
    /// reader.
    private func display(
        _ person: BrowserWorld, _ line: String
    ) throws -> (environment: [String: String], reader: Program.Running) {
        let home = person.program.home
        for name in ["bin", "runtime"] {
            try FileManager.default.createDirectory(
                atPath: "\(home)/\(name)", withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        }
        let opener = "#!/bin/sh\n\(line) >\"$HOME/opened\"\n"
        let isMade = FileManager.default.createFile(
            atPath: home + "/bin/xdg-open", contents: Data(opener.utf8), attributes: [.posixPermissions: 0o700])
        try #require(isMade && mkfifo(home + "/opened", 0o600) == 0)
        let reader = try Program.Running(
            ["\(Patience.seconds)", "cat", home + "/opened"], environment: ["PATH": "/usr/bin:/bin"])
        return (
            ["DISPLAY": ":0", "PATH": "\(home)/bin:/usr/bin:/bin", "XDG_RUNTIME_DIR": home + "/runtime"], reader
        )
    }

    @Test("'assent logout --browser' opens a page that leads to the end of the browser's session, and removes it")
    func logout() async throws {
        try await BrowserWorld.run { person in
            try await person.signIn()
            let (browser, server) = (person.browser, person.world.endpoints.server)
            let (environment, reader) = try display(person, #"cat "$1""#)
            let running = try person.program.start(["logout", "--browser", "--json"], environment: environment)
            let opened = await reader.result().output
            let result = await running.result()
            #expect(result.status == 0, "\(result.errors)")
            let url = try #require(try JSONValue.parse(result.output)["browserPage"]?.string)
            #expect(url.hasPrefix("\(server)/oauth2/realms/root/realms/alpha/connect/endSession?"))
            #expect(url.contains("id_token_hint="))
            #expect(opened.contains(url.replacing("&", with: "&amp;")), "\(opened)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: person.program.home + "/runtime") == [])
            try await browser.open(server + "/UI/Login?realm=/alpha")
            #expect(try await browser.text("h1") == "You are signed in")
            try await browser.open(url)
            try await browser.open(server + "/UI/Login?realm=/alpha")
            #expect(try await browser.title == "Sign in")
        }
    }

    @Test("An answer that another page invents is not taken for the person's, and does not end the sign-in")
    func inventedAnswer() async throws {
        try await BrowserWorld.run { person in
            let browser = person.browser
            let (running, url) = try await person.beginLogin()
            let parameters = URLComponents(string: url)?.queryItems
            let receiver = try #require(parameters?.first { $0.name == "redirect_uri" }?.value)
            #expect(receiver.hasPrefix("http://127.0.0.1:"))
            let issuer = person.world.endpoints.server + "/oauth2/realms/root/realms/alpha"
            let answers = [
                "code=abc&state=guessed&iss=\(issuer)", "error=access_denied&iss=\(issuer)", "code=abc", "",
            ]
            for answer in answers {
                try await browser.open("\(receiver)?\(answer)")
                #expect(try await browser.text("h1").contains("not the sign-in"), "\(answer)")
            }
            try await browser.open(url)
            try await person.enter()
            try await person.enterCode()
            #expect(try await browser.text("h1") == "Almost done")
            #expect(await running.result().status == 0)
        }
    }
}
