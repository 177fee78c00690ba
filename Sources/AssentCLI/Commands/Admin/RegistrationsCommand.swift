import ArgumentParser
import Assent
import Foundation

/// `assent admin registrations`
struct RegistrationsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "registrations", abstract: "Instances of apps that have registered as clients.",
        discussion: "docs/registration.md says how apps register. Each act is in the audit log.",
        subcommands: [Token.self, List.self, End.self])

    /// `assent admin registrations token`
    struct Token: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "token",
            abstract: "Make an initial access token, with which instances of an app register. It is shown this once.",
            discussion: """
                With --output it goes into a file that only you may read, as 'assent register --token-file' wants it.

                Example:  assent admin registrations token --app bank-pay --output token.txt
                """)

        @OptionGroup var result: ResultOptions

        @OptionGroup var client: ClientOptions

        @Option(name: .long, help: "The app's id in the server's file.")
        var app: String

        @Option(name: .long, help: "How many instances may register with it.")
        var count = 1

        @Option(name: .long, help: "For how many days it is valid, at most 365.")
        var days = 7

        @Option(name: .long, help: "A new file to write it into, which only you may read.", completion: .file())
        var output: String?

        func validate() throws {
            guard output == nil || !result.json else {
                throw ValidationError("--json prints what --output keeps: leave one out.")
            }
            if let output, FileManager.default.fileExists(atPath: output) {
                throw ValidationError("\(output) is there already. No token was made: name a new file.")
            }
            guard (1...1_000_000).contains(count) else { throw ValidationError("--count is from 1 to 1000000.") }
            guard (1...365).contains(days) else { throw ValidationError("--days is from 1 to 365.") }
        }

        func run() async throws {
            let body: JSONValue = ["app": .string(app), "count": .integer(count), "days": .integer(days)]
            let console = result.console
            var file: FileHandle?
            let answer: JSONValue
            let token: String
            do {
                answer = try await SessionCalls(client, console: console).administer("createRegistrationToken") {
                    // Before the server is asked: a token that cannot be written is lost, and stays valid.
                    if let output, file == nil { file = try TrustText.make(output, mode: 0o600) }
                    return body
                }
                guard let made = answer["token"]?.string else {
                    throw CommandFailure("The server's answer has no token.")
                }
                token = made
            } catch {
                if file != nil, let output { try? FileManager.default.removeItem(atPath: output) }
                throw error
            }
            if let file, let output {
                try TrustText.fill(file, output, with: token + "\n")
                console.say("The token is in \(output).")
            } else {
                console.report(answer, DisplayText.escapedForTerminal(token))
            }
            try console.finish()
        }
    }

    /// `assent admin registrations list`
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List instances as JSON, one a line; times are seconds since 1970.")

        @OptionGroup var client: ClientOptions

        @Option(name: .long, help: "Only those of this app.")
        var app: String?

        func run() async throws {
            let calls = SessionCalls(client)
            var members = JSONObject()
            members["app"] = app.map(JSONValue.string)
            try await calls.list("listRegistrations", by: "clientId", members, show: calls.console.emit)
        }
    }

    /// `assent admin registrations end`
    struct End: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "end",
            abstract: "End an instance with all its grants, or all instances of an app with its initial access tokens.")

        @OptionGroup var result: ResultOptions

        @OptionGroup var client: ClientOptions

        @Argument(help: "The client id of the instance.")
        var clientID: String?

        @Option(name: .long, help: "The app, together with --all.")
        var app: String?

        @Flag(name: .long, help: "End all instances of the app.")
        var all = false

        func validate() throws {
            guard (clientID == nil) == all, (app == nil) != all else {
                throw ValidationError("Name a client id, or an app with --app and --all.")
            }
        }

        func run() async throws {
            if let clientID {
                return try await AdminCall(client, console: result.console).post(
                    "endRegistration", ["clientId": .string(clientID)])
            }
            let console = result.console
            let body: JSONValue = ["app": .string(app ?? "")]
            var total: Int64 = 0
            try await SessionCalls(client, console: console).run { send in
                total = try await Self.endAll {
                    try await send(200) {
                        .post("\($0("json"))/administration?_action=endRegistrations", json: body)
                    }["ended"]?.integer ?? 0
                }
            }
            console.report(["ended": .integer(total)], "\(total) instances have ended.")
            try console.finish()
        }

        /// Has instances ended, some at a time, until none is left.
        ///
        /// - Parameter endSome: has the server end some, and says how many it has ended.
        /// - Returns: how many have ended.
        /// - Throws: ``CommandFailure`` when the server's counts cannot be true; what `endSome` throws.
        static func endAll(_ endSome: () async throws -> Int64) async throws -> Int64 {
            var total: Int64 = 0
            while true {
                let ended = try await endSome()
                guard ended > 0 else { return total }
                let sum = total.addingReportingOverflow(ended)
                guard !sum.overflow else {
                    throw CommandFailure("The server says that it has ended more instances than there can be.")
                }
                total = sum.partialValue
            }
        }
    }
}
