import ArgumentParser
import Assent
import Foundation

/// `assent login`
struct LoginCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "login",
        abstract: "Sign in: walk a journey in the terminal or in a browser, and keep session and tokens in a vault.",
        discussion: """
            Everything that the journey asks is asked here. A password can come from a file or a descriptor instead, never \
            from the command line: other users can read that.

            The file that --config names is kept for the next commands when the sign-in has worked.

            With --browser you sign in at the server's own page, or at that of any OpenID provider that the file names as its \
            issuer. Its address is printed, so that any browser will do. A browser on another machine ends at an address \
            that it cannot open: paste that address here.

            With --dpop the tokens are bound to a key (RFC 9449), which the vault's key provider holds: someone who steals \
            the tokens cannot use them. The binding lasts until 'assent logout', which removes the key.

            With --pin, a user whom this installation remembers ('assent device enroll --here') types a PIN. Session and tokens \
            of such a login are in memory alone, so it ends with the command, and a stored sign-in stays: it shows that the PIN \
            is right. 'assent request --pin' signs in so and calls a resource.

            With --stateless, session and tokens are in memory alone, and nothing of them is stored. The one request behind --then \
            is sent with them, as 'assent request' sends it, and then they end. The installation must be registered, and the server \
            let its app do so. A stored sign-in stays. For example: assent login --stateless --then GET /accounts

            Where the file says registration, this installation registers first, unless it has: as a client of its own, with a \
            key that the vault's key provider holds.
            """)

    @OptionGroup var client: ClientOptions

    @Option(name: .long, help: "The journey. Default: the one that the client's file names, else Login.")
    var journey: String?

    @Option(name: .shortAndLong, help: "The user name.")
    var username: String?

    @Option(name: .long, help: "A file that holds the password.", completion: .file())
    var passwordFile: String?

    @Option(name: .customLong("password-fd"), help: "A file descriptor to read the password from.")
    var passwordDescriptor: Int32?

    @Flag(name: .long, help: "Sign in at the server's own page in a browser. There is then no session, only tokens.")
    var browser = false

    @Option(name: .long, help: "How many seconds there are to sign in with --browser. Default: 300.")
    var timeout: Int?

    @Flag(name: .long, help: "Bind the tokens to a key, until 'assent logout'. The server must support DPoP.")
    var dpop = false

    @Flag(name: .long, help: "Sign in with the PIN of a user whom this installation remembers, for this command alone.")
    var pin = false

    @Flag(
        name: .long,
        help: "Sign in so that nothing is stored, send the one request behind --then, and end the sign-in.")
    var stateless = false

    @Option(
        name: .long, parsing: .remaining,
        help: "With --stateless, and as the last option: METHOD PATH …, as behind 'assent request'.")
    var then: [String] = []

    @Flag(name: .long, help: "Print the result as JSON; questions then go to standard error.")
    var json = false

    func run() async throws {
        guard !stateless else { return try await signInForOneRequest() }
        let console = Console(json: json)
        try await Outcome.run(console) {
            let profile = try client.load()
            guard !pin else { return try await signInWithPIN(profile, console) }
            guard browser || !profile.file.isProviderOnly else {
                throw CommandFailure(
                    "The configuration names an issuer and no server, so there are no journeys to walk here: "
                        + "sign in with 'assent login --browser'.")
            }
            let assent = try profile.assent(bindsTokens: dpop)
            if browser {
                let user = try await BrowserLogin(console: console)
                    .run(assent, timeout: timeout ?? 300, username: username)
                let tokens = try await user.token()
                await assent.shutdown()
                try profile.keep()
                return report(tokens, profile, console)
            }
            let answers = try answers(console)
            // Before anything is asked: a refusal would come when password and code were typed, and the session made.
            try await assent.registration?.register()
            try await assent.journey(journey ?? profile.file.journey, options: .init(forceAuth: true)) { step in
                try answers.answer(&step)
            }
            let user = try await assent.user()
            let tokens = try await user?.token()
            await assent.shutdown()
            try profile.keep()
            report(tokens, profile, console)
        }
    }

    /// Answers questions at the terminal, but not those whose answers the command line has.
    private func answers(_ console: Console, _ prompt: Prompt = Prompt()) throws -> TerminalAnswers {
        var answers = TerminalAnswers(console: console, prompt: prompt)
        answers.username = username
        answers.password = try SecretSource.read(
            file: passwordFile, descriptor: passwordDescriptor, "the password")
        return answers
    }

    private func signInForOneRequest() async throws {
        // The reply is what goes to standard output.
        let console = Console(json: true)
        let request = try StatelessRequest(then, journey: journey)
        try await Outcome.run(console, reportsErrors: request.command.json) {
            try await request.run(try client.load(asking: request.prompt), try answers(console, request.prompt))
        }
    }

    private func signInWithPIN(_ profile: ClientProfile, _ console: Console) async throws {
        let remembered = RememberedSignIn(profile: profile, console: console, username: username)
        let assent = try await remembered.assent()
        let user: String
        do {
            user = try await remembered.signIn(assent)
        } catch {
            await assent.shutdown()
            throw error
        }
        await assent.endLogin()
        await assent.shutdown()
        try profile.keep()
        guard !json else { return console.emit(["signedIn": false, "pin": true, "user": .string(user)]) }
        let name = DisplayText.escapedForTerminal(user)
        console.say(console.styled("The PIN of \(name) is right.", .green))
        console.say("A login with a PIN is kept nowhere, so this one has ended.")
        console.say("Next:  \(profile.typed("request", "--pin GET …"))   (signs in, and calls)")
    }

    private func report(_ tokens: TokenSet?, _ profile: ClientProfile, _ console: Console) {
        if json {
            var result = JSONObject([
                .init(name: "signedIn", value: true),
                .init(name: "scopes", value: .array((tokens?.scopes ?? []).map { .string($0) })),
            ])
            if tokens?.isBound == true { result["bound"] = true }
            console.emit(.object(result))
        } else {
            console.say(console.styled("Signed in.", .green))
            if tokens?.isBound == true { console.say("The tokens are bound to a key, and of no use without it.") }
            if let origin = profile.file.resources.first?.origin {
                let next = profile.typed("request", "GET \(origin)/…")
                console.say("Next:  \(next)   (an address of that service)")
            } else if profile.file.isProviderOnly {
                console.say("Next:  \(profile.typed("userinfo"))")
            }
        }
    }

    func validate() throws {
        guard (1...3600).contains(timeout ?? 300) else { throw ValidationError("--timeout is 1 to 3600 seconds.") }
        guard timeout == nil || browser else { throw ValidationError("--timeout belongs to --browser.") }
        guard passwordFile == nil || passwordDescriptor == nil else {
            throw ValidationError("Name a file or a descriptor for the password, not both.")
        }
        if pin, browser || dpop || journey != nil || passwordFile != nil || passwordDescriptor != nil {
            throw ValidationError(
                "--pin asks for the PIN alone: leave out --browser, --dpop, --journey and the password.")
        }
        guard stateless == !then.isEmpty else {
            throw ValidationError(
                "--stateless and --then belong together: assent login --stateless --then GET /accounts")
        }
        if stateless {
            guard !browser, !dpop, !pin, !json else {
                throw ValidationError("--stateless stands alone: leave out --browser, --dpop, --pin and --json.")
            }
            _ = try StatelessRequest(then)
        }
        if browser, journey != nil || passwordFile != nil || passwordDescriptor != nil {
            throw ValidationError("--browser asks everything in the browser: leave out --journey and the password.")
        }
    }
}
