import ArgumentParser
import Assent
import Foundation
import HTTPTypes

/// `assent token`
struct TokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token", abstract: "Print a valid access token, refreshed if necessary.",
        discussion: """
            The token is a secret: hand it on by standard input, never in a command line, which other users of the machine see.

            Example:  assent token | sed 's/^/Authorization: Bearer /' | curl -H @- https://localhost:8444/accounts

            For a certificate that the server made for itself, add --cacert and the authority.pem in its data directory.

            After 'assent login --dpop' the token is good only with a proof, which --proof makes: for one request with this \
            method and URL, within a minute. When the answer is 401 with use_dpop_nonce, make another with --nonce and the \
            value of its field DPoP-Nonce.

            Example:  assent token --proof GET https://localhost:8444/accounts | curl -H @- https://localhost:8444/accounts
            """)

    @OptionGroup var client: ClientOptions

    @Option(
        name: .long, parsing: .upToNextOption,
        help: ArgumentHelp(
            "Print the header fields Authorization and DPoP for one request: its method and its URL.",
            valueName: "method url"))
    var proof: [String] = []

    @Option(name: .long, help: "The nonce that the answer before had in its field DPoP-Nonce (of --proof).")
    var nonce: String?

    @Flag(name: .long, help: "Print token, expiry and scope, or the header fields of --proof, as JSON.")
    var json = false

    func validate() throws {
        guard proof.isEmpty || proof.count == 2 else {
            throw ValidationError("--proof takes a method and a URL: --proof GET https://localhost:8444/accounts")
        }
        if let method = proof.first, HTTPRequest.Method(method.uppercased()) == nil {
            throw ValidationError("\(method) is not an HTTP method.")
        }
        guard nonce == nil || !proof.isEmpty else { throw ValidationError("--nonce belongs to --proof.") }
    }

    func run() async throws {
        let console = Console(json: json)
        try await Outcome.run(console) {
            let assent = try client.load().assent()
            if proof.count == 2, let method = HTTPRequest.Method(proof[0].uppercased()) {
                let credential = try await assent.tokens.credential(for: method, url: proof[1], nonce: nonce)
                await assent.shutdown()
                return try show(credential, console)
            }
            let tokens = try await assent.tokens.tokens()
            await assent.shutdown()
            console.report(
                [
                    "access_token": .string(tokens.accessToken.reveal()),
                    "expires_at": tokens.expiresAt.map { .integer(Int64($0.timeIntervalSince1970)) } ?? .null,
                    "scope": .string(tokens.scopes.joined(separator: " ")),
                ], tokens.accessToken.reveal())
        }
    }

    private func show(_ credential: TokenCredential, _ console: Console) throws {
        guard let proof = credential.proof else {
            throw CommandFailure(
                "The token is not bound to a key, so there is no proof to make. Bind the tokens: assent login --dpop")
        }
        if json {
            console.emit([
                "Authorization": .string(credential.authorization.reveal()), "DPoP": .string(proof.reveal()),
            ])
        } else {
            console.say("Authorization: \(credential.authorization.reveal())")
            console.say("DPoP: \(proof.reveal())")
        }
    }
}

/// `assent userinfo`
struct UserInfoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "userinfo", abstract: "Print what the server knows about the user, as JSON.")

    @OptionGroup var client: ClientOptions

    func run() async throws {
        let console = Console(json: true)
        try await Outcome.run(console, reportsErrors: false) {
            let assent = try client.load().assent()
            let claims = try await assent.tokens.userInfo()
            await assent.shutdown()
            console.emit(.object(claims.object))
        }
    }
}

/// `assent logout`
struct LogoutCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "logout", abstract: "Sign out: revoke the tokens, end the session, empty the vault.",
        discussion: """
            The vault is emptied whatever the server says. When the server does not answer, the sign-out is kept sealed, and \
            --retry repeats it. Exit status 1 when the server does not know everything. Where nobody was signed in, it says so.

            After a sign-in in a browser at another provider, that browser stays signed in there: you are told the page \
            that ends it. --browser opens it.
            """)

    @OptionGroup var client: ClientOptions

    @Flag(name: .long, help: "Do not sign out: repeat earlier sign-outs that the server did not get.")
    var retry = false

    @Flag(name: .long, help: "Open the provider's page that ends the session of the browser.")
    var browser = false

    @Flag(name: .long, help: "Print the result as JSON.")
    var json = false

    func validate() throws {
        if retry, browser { throw ValidationError("--retry repeats what needs no browser: leave --browser out.") }
    }

    func run() async throws {
        let console = Console(json: json)
        try await Outcome.run(console) {
            let profile = try client.load()
            let assent = try profile.assent()
            let page = Locked<String?>(nil)
            let before = retry ? nil : await Before(assent)
            let result = retry ? nil : await signOut(assent, of: profile.file, page)
            var undone = result?.undone ?? []
            // An earlier sign-out may wait to be passed on: only when that is done, too, does the server know
            // everything.
            if undone.isEmpty, result?.localFailure == nil { undone = try await assent.retrySignOuts() }
            await assent.shutdown()
            if json {
                console.emit([
                    "signedOut": .bool(before?.isSignedIn == true && result?.localFailure == nil),
                    "undone": .array(undone.map { .string("\($0)") }),
                    "kept": .integer(undone.count { $0.isKept }),
                    "browserPage": page.withLock { $0 }.map(JSONValue.string) ?? .null,
                ])
            } else {
                report(result, undone, after: before, console)
            }
            if let url = page.withLock({ $0 }) { await lead(to: url, at: profile.file, console) }
            if !undone.isEmpty || result?.localFailure != nil { throw ExitCode(1) }
        }
    }

    /// Signs out; at another provider, and with `--browser`, what only a browser can end is left to it.
    private func signOut(_ assent: Assent, of file: ClientFile, _ page: Locked<String?>) async -> SignOutResult {
        guard browser || file.issuer != nil else { return await assent.signOut() }
        return await assent.signOut { url in page.withLock { $0 = url } }
    }

    /// Opens the provider's page, or says where it is.
    private func lead(to url: String, at file: ClientFile, _ console: Console) async {
        let login = BrowserLogin(console: console)
        if browser, let command = login.opener, let page = login.open(url, with: command) {
            if !json { console.say("Your browser ends its session at \(DisplayText.escapedForTerminal(file.place)).") }
            if await page.removeOnceRead() { return }
            console.warn("No browser could be opened.")
        }
        if !json {
            console.say("Your browser is still signed in. This page ends that; show its address to nobody else:")
            console.say("")
            console.say("  " + DisplayText.escapedForTerminal(url))
        }
    }

    /// What there was to end when the command began; `nil` in its place where it signs nobody out.
    private struct Before {
        let isSignedIn: Bool
        let isServerBehind: Bool

        init(_ assent: Assent) async {
            // A vault that cannot be read does not say that it is empty.
            do { isSignedIn = try await assent.user() != nil } catch { isSignedIn = true }
            isServerBehind = (try? await assent.tokens.pendingSignOuts())?.isEmpty == false
        }
    }

    private func report(
        _ result: SignOutResult?, _ undone: [SignOutResult.Undone], after before: Before?, _ console: Console
    ) {
        if let failure = result?.localFailure {
            console.warn(DisplayText.escapedForTerminal("The vault could not be emptied. \(failure.words)"))
            console.warn("Put that right and run the command again.")
        } else if !retry {
            console.say(before?.isSignedIn == false ? "Nobody was signed in." : "Signed out here.")
        }
        for undone in undone {
            console.warn(DisplayText.escapedForTerminal("\(undone.step.goesOn) \(undone.reason)"))
        }
        if undone.contains(where: \.isKept) {
            console.warn("The parts that are missing are kept sealed. Try again later: assent logout --retry")
        } else if !undone.isEmpty {
            console.warn("It is not tried again: it ends when it expires, or when an administrator ends it.")
        } else if result?.localFailure == nil, before.map({ $0.isSignedIn || $0.isServerBehind }) ?? true {
            console.say("The server was told.")
        }
    }
}

extension SignOutResult.Step {
    /// What a user should know when the server was not told.
    var goesOn: String {
        switch self {
        case .revokeTokens: "The server does not know yet: the tokens are still valid."
        case .endProviderSession: "The server does not know yet: the provider's session goes on."
        case .endSession: "The server does not know yet: the session goes on."
        }
    }
}
