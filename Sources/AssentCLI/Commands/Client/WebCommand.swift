import ArgumentParser
import Assent
import Foundation

/// `assent web`
struct WebCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "web", abstract: "Sign your browser in, and open a page there.",
        discussion: """
            The page must be one that the server lists for this app (webLinks), written in the same way. The link is \
            printed, and opened where there is a display. It is good once and for a minute, and its page asks you first. \
            Anyone who opens it is signed in as you: show it to nobody. The browser is signed out when you sign out here.

            Example:  assent web https://shop.bank.example/orders
            """)

    @Argument(help: "The page to open.")
    var url: String

    @OptionGroup var client: ClientOptions

    @Flag(name: .long, help: "Print the link only, and open no browser.")
    var print = false

    @Flag(name: .long, help: "Print the link and its expiry as JSON, and open no browser.")
    var json = false

    func run() async throws {
        let console = Console(json: json)
        try await Outcome.run(console) {
            let assent = try client.load().assent()
            let link = try await assent.userClient.webLink(to: url)
            await assent.shutdown()
            if json {
                console.emit([
                    "url": .string(link.url), "expires_at": .integer(Int64(link.expiresAt.timeIntervalSince1970)),
                ])
                return
            }
            console.say("This link signs your browser in, once, within a minute. Show it to nobody else:")
            console.say("")
            console.say("  " + DisplayText.escapedForTerminal(link.url))
            let login = BrowserLogin(console: console)
            guard !print, let command = login.opener, let page = login.open(link.url, with: command) else { return }
            // The program that opens it does not say when the browser has read the page.
            try? await Task.sleep(for: LogoutCommand.openingTime)
            page.remove()
        }
    }
}
