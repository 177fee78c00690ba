import ArgumentParser
import Assent
import Foundation

/// `assent users sessions`
struct UserSessions: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sessions", abstract: "List a user's sessions, or end one.",
        discussion: """
            A session without a token belongs to an app that remembers the user, who has typed nothing for it. Nobody \
            can present it; the app's grant ends with it.

            Example:  assent users sessions ben --end 4d9f8a52-7d1c-4b7e-9a55-0c5b4c1f7a10
            """)

    @OptionGroup var client: ClientOptions

    @Argument(help: "The user's name.")
    var username: String

    @Option(name: .long, help: ArgumentHelp("End this session, by its id in the list.", valueName: "id"))
    var end: String?

    @Flag(name: .long, help: "Print the result as JSON, one session a line; times are seconds since 1970.")
    var json = false

    func run() async throws {
        if let end {
            try await UserCalls(client, json: json).change("endSession", "The session of \(username) has ended.") {
                ["username": .string(username), "session": .string(end)]
            }
        } else {
            try await list()
        }
    }

    private func list() async throws {
        let console = Console(json: json)
        let answer = try await SessionCalls(client, console: console).administer("listSessions") {
            ["username": .string(username)]
        }
        let sessions = answer["result"]?.array ?? []
        if sessions.isEmpty, !json { console.say("\(DisplayText.escapedForTerminal(username)) has no session.") }
        for session in sessions {
            console.report(session, DisplayText.escapedForTerminal(Self.line(session)))
        }
        try console.finish()
    }

    /// A session as one line for people.
    static func line(_ session: JSONValue) -> String {
        var facts = ["level \(session["authLevel"]?.integer ?? 0)"]
        if let kind = session["kind"]?.string { facts.insert(kind, at: 0) }
        if let time = session["createdAt"]?.integer { facts.append("since \(text(time))") }
        if let time = session["idleExpiresAt"]?.integer { facts.append("until \(text(time)) unless it is used") }
        if session["token"] == false { facts.append("without a token") }
        if session["bound"] == true { facts.append("belongs to a key") }
        if let methods = session["amr"]?.strings { facts.append("by \(methods.joined(separator: " and "))") }
        if let clients = session["clients"]?.strings, !clients.isEmpty {
            facts.append("for \(clients.joined(separator: ", "))")
        }
        return "\(session["session"]?.string ?? "")  \(facts.joined(separator: ", "))"
    }

    private static func text(_ seconds: Int64) -> String {
        Date(timeIntervalSince1970: TimeInterval(seconds)).formatted(.iso8601)
    }
}
