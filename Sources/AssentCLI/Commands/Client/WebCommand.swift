import ArgumentParser
import Assent
import Foundation

/// `assent web`
struct WebCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "web", abstract: "Sign your browser in, and open a page there.",
        discussion: """
            The page must be one that the server lists for this app (webLinks), written in the same way. The link is \
            printed, and opened where there is a display. It works once, within a minute, and its page asks you first. \
            Anyone who opens it is signed in as you: show it to nobody. The browser is signed out when you sign out here.

            Where nobody is signed in, a user whom this installation remembers ('assent device enroll --here') is asked for \
            the PIN; with --pin, always. Such a login is in memory alone, and the browser's ends with it: so the command \
            stays until you press Enter or Ctrl-C, and then both are signed out.

            Examples:  assent web https://shop.bank.example/orders
                       assent web --pin https://shop.bank.example/orders
            """)

    @Argument(help: "The page to open.")
    var url: String

    @OptionGroup var client: ClientOptions

    @Flag(
        name: .long,
        help: "Sign in with the PIN of a user whom this installation remembers, also where somebody is signed in.")
    var pin = false

    @Option(name: .shortAndLong, help: "With --pin: the user, where the installation remembers several.")
    var username: String?

    @Flag(name: .long, help: "Print the link only, and open no browser.")
    var print = false

    @Flag(name: .long, help: "Print the link and its expiry as JSON, and open no browser.")
    var json = false

    func validate() throws {
        guard username == nil || pin else { throw ValidationError("--username belongs to --pin.") }
        guard !pin || !json else {
            throw ValidationError(
                "--json ends with the link, and a login with a PIN ends with the command: leave one of them out.")
        }
    }

    func run() async throws {
        let console = Console(json: json)
        try await Outcome.run(console) {
            let profile = try client.load()
            guard !pin else { return try await openWithPIN(profile, console) }
            guard let link = try await link(profile) else {
                console.say("Nobody is signed in here.")
                return try await openWithPIN(profile, console)
            }
            if json {
                console.emit([
                    "url": .string(link.url), "expires_at": .integer(Int64(link.expiresAt.timeIntervalSince1970)),
                ])
                return
            }
            guard let page = show(link, console) else { return }
            if await !page.removeOnceRead() {
                console.warn("No browser could be opened: open the link yourself, within the minute.")
            }
        }
    }

    /// The link for the user who is signed in.
    ///
    /// - Returns: `nil` when nobody is signed in, and a user whom the installation remembers can be asked for the PIN.
    private func link(_ profile: ClientProfile) async throws -> WebLink? {
        let assent = try profile.assent()
        let link: WebLink?
        do throws(ResourceError) {
            link = try await assent.userClient.webLink(to: url)
        } catch {
            guard error.code == .userNotAuthenticated, profile.file.registration?.remembersUsers == true else {
                throw error
            }
            guard !json else {
                throw CommandFailure(
                    "\(Outcome.signInFirst(error)) "
                        + "Or, as a user whom this installation remembers, without --json: assent web \(url)")
            }
            link = nil
        }
        await assent.shutdown()
        return link
    }

    private func openWithPIN(_ profile: ClientProfile, _ console: Console) async throws {
        let remembered = RememberedSignIn(profile: profile, console: console, username: username)
        let assent = try await remembered.assent()
        do {
            _ = try await remembered.signIn(assent)
            let page = show(try await assent.userClient.webLink(to: url), console)
            remembered.prompt.input.lineOrSignal {
                console.say("")
                console.say("Press Enter to sign out, here and in the browser.")
            }
            page?.remove()
        } catch {
            await assent.endLogin()
            await assent.shutdown()
            throw error
        }
        let isTold = await assent.endLogin()
        await assent.shutdown()
        guard isTold else {
            throw CommandFailure(
                "The server could not be told that you sign out. Your browser stays signed in until the session "
                    + "expires: sign out there.")
        }
        console.say("Signed out.")
    }

    /// Prints a link, and opens it where there is a display.
    private func show(_ link: WebLink, _ console: Console) -> OpeningPage? {
        console.say("This link signs your browser in, once, within a minute. Show it to nobody else:")
        console.say("")
        console.say("  " + DisplayText.escapedForTerminal(link.url))
        let login = BrowserLogin(console: console)
        guard !print, let command = login.opener else { return nil }
        return login.open(link.url, with: command)
    }
}
