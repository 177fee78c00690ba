import ArgumentParser
import Assent
import Foundation

/// `assent token`
struct TokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token", abstract: "Print an access token that is good now, refreshed if it has to be.",
        discussion: "For scripts: curl -H \"Authorization: Bearer $(assent token)\" … The token is a secret.")

    @OptionGroup var client: ClientOptions

    @Flag(name: .long, help: "Print token, expiry and scope as JSON.")
    var json = false

    func run() async throws {
        let console = Console(json: json)
        try await Outcome.run(console) {
            let assent = try client.load().assent()
            let tokens = try await assent.tokens.tokens()
            await assent.shutdown()
            if json {
                console.emit([
                    "access_token": .string(tokens.accessToken.reveal()),
                    "expires_at": tokens.expiresAt.map { .integer(Int64($0.timeIntervalSince1970)) } ?? .null,
                    "scope": .string(tokens.scopes.joined(separator: " ")),
                ])
            } else {
                console.say(tokens.accessToken.reveal())
            }
        }
    }
}

/// `assent userinfo`
struct UserInfoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "userinfo", abstract: "Print what the server tells about the user, as JSON.")

    @OptionGroup var client: ClientOptions

    func run() async throws {
        let console = Console(json: true)
        try await Outcome.run(console) {
            let assent = try client.load().assent()
            let claims = try await assent.tokens.userInfo()
            await assent.shutdown()
            console.emit(.object(claims))
        }
    }
}

/// `assent logout`
struct LogoutCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "logout", abstract: "Sign out: revoke the tokens, end the session, empty the vault.",
        discussion: "The vault is emptied whatever the server says. Exit status 1 when the server could not be told.")

    @OptionGroup var client: ClientOptions

    @Flag(name: .long, help: "Print the result as JSON.")
    var json = false

    func run() async throws {
        let console = Console(json: json)
        try await Outcome.run(console) {
            let assent = try client.load().assent()
            let result = await assent.logout()
            await assent.shutdown()
            if json {
                console.emit(["signedOut": true, "undone": .array(result.undone.map { .string("\($0)") })])
            } else {
                console.say("Signed out.")
                for undone in result.undone { console.warn("The server could not be told: \(undone)") }
            }
            if !result.undone.isEmpty { throw ExitCode(1) }
        }
    }
}
