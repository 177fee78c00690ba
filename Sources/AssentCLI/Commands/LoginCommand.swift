import ArgumentParser
import Assent
import Foundation

/// `assent login`
struct LoginCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "login",
        abstract: "Sign in: walk a journey in the terminal, and keep session and tokens in a vault.",
        discussion: """
            Everything that the journey asks is asked here. A password can come from a file or a descriptor instead, never \
            from the command line: other users can read that.
            """)

    @OptionGroup var client: ClientOptions

    @Option(name: .long, help: "The journey; the configuration's own when it is not given.")
    var journey: String?

    @Option(name: .shortAndLong, help: "The user name.")
    var username: String?

    @Option(name: .long, help: "A file that holds the password.")
    var passwordFile: String?

    @Option(name: .long, help: "A file descriptor to read the password from.")
    var passwordDescriptor: Int32?

    @Flag(name: .long, help: "Print the result as JSON; questions then go to standard error.")
    var json = false

    func run() async throws {
        let console = Console(json: json)
        try await Outcome.run(console) {
            let profile = try client.load()
            let assent = try profile.assent()
            var answers = TerminalAnswers(console: console)
            answers.username = username
            answers.password = try password()
            try await assent.journey(journey ?? profile.file.journey, options: .init(forceAuth: true)) { step in
                try answers.answer(&step)
            }
            let user = try await assent.user()
            let tokens = try await user?.tokens()
            await assent.shutdown()
            if json {
                console.emit(["signedIn": true, "scopes": .array((tokens?.scopes ?? []).map { .string($0) })])
            } else {
                console.say(console.styled("Signed in.", .green))
                if let origin = profile.file.resources.first?.origin {
                    console.say("Next:  assent request GET \(origin)/accounts")
                }
            }
        }
    }

    private func password() throws -> Secret? {
        if let passwordFile {
            guard let data = FileManager.default.contents(atPath: passwordFile) else {
                throw ValidationError("\(passwordFile) cannot be read")
            }
            return Secret(String(decoding: data, as: UTF8.self).trimmingCharacters(in: .newlines))
        }
        if let passwordDescriptor {
            let handle = FileHandle(fileDescriptor: passwordDescriptor, closeOnDealloc: false)
            let data = try handle.readToEnd() ?? Data()
            return Secret(String(decoding: data, as: UTF8.self).trimmingCharacters(in: .newlines))
        }
        return nil
    }
}
