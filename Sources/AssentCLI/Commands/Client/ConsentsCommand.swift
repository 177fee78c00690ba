import ArgumentParser

/// `assent consents`
struct ConsentsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "consents", abstract: "See which apps may use your account, and take that back.",
        subcommands: [List.self, Withdraw.self], defaultSubcommand: List.self)

    /// `assent consents list`
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "Print what you have agreed to as JSON, one app a line.")

        @OptionGroup var client: ClientOptions

        func run() async throws { try await AdminCall(client).consents() }
    }

    /// `assent consents withdraw`
    struct Withdraw: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "withdraw",
            abstract: "Take a consent back: the app's access ends at once, and it must ask again.")

        @OptionGroup var client: ClientOptions

        @Argument(help: "The app's id, as the list has it.")
        var clientID: String

        func run() async throws { try await AdminCall(client).withdrawConsent(to: clientID) }
    }
}
