import ArgumentParser
import Assent
import Foundation

/// `assent users`
struct UsersCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "users", abstract: "Make and look after the users of your realm, as an administrator.",
        discussion: """
            The server asks for the role admin: 'assent admin bootstrap' makes the first one. Roles are given by \
            'assent admin roles'. Each act is in the audit log.

            Example:  assent users add ben --totp
            """,
        subcommands: [Add.self, List.self, Lock.self, Unlock.self, Password.self, TOTP.self, UserSessions.self])

    /// `assent users add`
    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "add",
            abstract: "Make a user. You are asked for the first password, twice.")

        @OptionGroup var client: ClientOptions

        @Argument(help: "The name to sign in with.")
        var username: String

        @OptionGroup var password: NewPasswordOptions

        @Flag(name: .long, help: "The user has no password.")
        var noPassword = false

        @Flag(name: .long, help: "Make one-time passwords, too, and show once what an authenticator app needs.")
        var totp = false

        @Option(name: .long, help: "A role: admin, auditor or pep. May be repeated.")
        var role: [String] = []

        @Option(name: .long, help: "An attribute as name=value, for example mail=ben@example.org. May be repeated.")
        var attribute: [String] = []

        @Flag(name: .long, help: "Print the result as JSON.")
        var json = false

        func validate() throws {
            guard !noPassword || !password.isGiven else {
                throw ValidationError("--no-password and a password exclude each other.")
            }
            _ = try attributes()
        }

        func run() async throws {
            var body: JSONObject = [
                "username": .string(username), "secondFactor": .bool(totp),
                "roles": .array(role.map(JSONValue.string)), "attributes": .object(try attributes()),
            ]
            let noPassword = noPassword
            let password = password
            try await UserCalls(client, json: json).change("createUser", "\(username) was made.") {
                body["password"] = noPassword ? .null : .string(try password.read().reveal())
                return body
            }
        }

        private func attributes() throws -> JSONObject {
            var attributes = JSONObject()
            for text in attribute {
                let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                guard parts.count == 2, let name = parts.first, !name.isEmpty, attributes[String(name)] == nil else {
                    throw ValidationError("--attribute is name=value, each name once.")
                }
                attributes[String(name)] = .string(String(parts[1]))
            }
            return attributes
        }
    }

    /// `assent users list`
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(commandName: "list", abstract: "List the users of your realm.")

        @OptionGroup var client: ClientOptions

        @Flag(name: .long, help: "Print the result as JSON, one user a line; times are seconds since 1970.")
        var json = false

        func run() async throws { try await UserCalls(client, json: json).list() }
    }

    /// `assent users lock`
    struct Lock: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "lock",
            abstract: "Lock a user out: sessions and grants end at once, and stay ended.")

        @OptionGroup var result: ResultOptions

        @OptionGroup var client: ClientOptions

        @Argument(help: "The user's name.")
        var username: String

        func run() async throws {
            try await UserCalls(client, json: result.json).change("setActive", "\(username) is locked out.") {
                ["username": .string(username), "active": false]
            }
        }
    }

    /// `assent users unlock`
    struct Unlock: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "unlock",
            abstract: "Let a user in again, also one who was locked for wrong passwords or codes.")

        @OptionGroup var result: ResultOptions

        @OptionGroup var client: ClientOptions

        @Argument(help: "The user's name.")
        var username: String

        func run() async throws {
            try await UserCalls(client, json: result.json).change("setActive", "\(username) may sign in.") {
                ["username": .string(username), "active": true]
            }
        }
    }

    /// `assent users password`
    struct Password: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "password",
            abstract: "Give a user another password. You are asked for it, twice.",
            discussion: """
                The user's sessions and tokens end, and so do sign-ins that have begun, also with the old password.
                """)

        @OptionGroup var result: ResultOptions

        @OptionGroup var client: ClientOptions

        @Argument(help: "The user's name.")
        var username: String

        @OptionGroup var password: NewPasswordOptions

        func run() async throws {
            try await UserCalls(client, json: result.json).change("setPassword", "\(username) has the new password.") {
                ["username": .string(username), "password": .string(try password.read().reveal())]
            }
        }
    }

    /// `assent users totp`
    struct TOTP: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "totp",
            abstract: "Give a user new one-time passwords, and show once what an authenticator app needs.",
            discussion: "Those that the user had stop working, and the user's sessions and tokens end.")

        @OptionGroup var client: ClientOptions

        @Argument(help: "The user's name.")
        var username: String

        @Flag(name: .long, help: "Print the result as JSON.")
        var json = false

        func run() async throws {
            try await UserCalls(client, json: json).change(
                "renewSecondFactor", "\(username) has new one-time passwords."
            ) { ["username": .string(username)] }
        }
    }
}

/// The server's interface about users, and how its answers are shown.
struct UserCalls {
    private let client: ClientOptions
    private let console: Console

    init(_ client: ClientOptions, json: Bool = false) {
        self.client = client
        console = Console(json: json)
    }

    /// Asks for a change, and shows an enrolment that it has made.
    ///
    /// - Parameters:
    ///   - action: the action's name.
    ///   - done: what to say afterwards.
    ///   - body: what is sent. It is read when the command has begun: its errors are the command's.
    /// - Throws: `ExitCode`, after the reason was written.
    func change(_ action: String, _ done: String, _ body: () throws -> JSONObject) async throws {
        var username: JSONValue?
        let answer = try await SessionCalls(client, console: console).administer(action) {
            let body = try body()
            username = body["username"]
            return .object(body)
        }
        if console.json {
            var result = answer.object ?? JSONObject()
            result["username"] = username
            console.emit(.object(result))
        } else {
            console.say(DisplayText.escapedForTerminal(done))
            if let uri = answer["otpauth"]?.string { show(uri) }
        }
        try console.finish()
    }

    private func show(_ uri: String) {
        console.say("For an authenticator app, shown this once:")
        console.say("  \(DisplayText.escapedForTerminal(uri))")
        console.draw(qrCodeOf: uri)
    }

    /// Lists all users.
    func list() async throws {
        try await SessionCalls(client, console: console).list("listUsers", by: "username", show: show)
    }

    private func show(_ user: JSONValue) {
        if console.json { return console.emit(user) }
        var facts = user["roles"]?.strings ?? []
        if user["password"] != true { facts.append("no password") }
        if user["secondFactor"] == true { facts.append("one-time passwords") }
        if user["active"] != true { facts.append(console.styled("locked out", .red)) }
        let name = DisplayText.escapedForTerminal(user["username"]?.string ?? "")
        console.say(
            name.padding(toLength: max(24, name.count), withPad: " ", startingAt: 0) + "  "
                + facts.joined(separator: ", "))
    }
}
