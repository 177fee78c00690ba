import ArgumentParser
import Assent

/// `assent admin payload-keys`
struct PayloadKeysCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "payload-keys", abstract: "The server's static keys for payload encryption.",
        discussion: """
            Have two, both known to clients, so that one can be withdrawn. docs/payload-encryption.md says what they are \
            for. Each act is in the audit log.
            """,
        subcommands: [List.self, Add.self, Withdraw.self])

    /// `assent admin payload-keys list`
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List the keys as JSON, one a line; x is the public half, times are seconds since 1970.")

        @OptionGroup var client: ClientOptions

        func run() async throws {
            let calls = SessionCalls(client)
            try calls.emit(try await calls.administer("listPayloadKeys") { [:] }["result"])
        }
    }

    /// `assent admin payload-keys add`
    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "add",
            abstract: "Make a key, and print it as JSON with its public half for the configuration of clients.")

        @OptionGroup var client: ClientOptions

        @Option(name: .long, help: "For how many days it is valid, at most 3650.")
        var days: Int64 = 730

        func validate() throws {
            guard (1...3650).contains(days) else { throw ValidationError("--days is from 1 to 3650.") }
        }

        func run() async throws {
            let body: JSONValue = ["days": .integer(days)]
            let console = Console()
            console.emit(try await SessionCalls(client, console: console).administer("addPayloadKey") { body })
            try console.finish()
        }
    }

    /// `assent admin payload-keys withdraw`
    struct Withdraw: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "withdraw",
            abstract: "Take a key back for good. Its sessions end within a minute on all nodes.")

        @OptionGroup var result: ResultOptions

        @OptionGroup var client: ClientOptions

        @Argument(help: "The key's name, as the list has it; behind '--' where it begins with a hyphen.")
        var kid: String

        func run() async throws {
            try await AdminCall(client, console: result.console).post("withdrawPayloadKey", ["kid": .string(kid)])
        }
    }
}
