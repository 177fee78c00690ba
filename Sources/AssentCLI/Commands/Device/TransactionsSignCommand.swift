import ArgumentParser
import Assent
import AssentSigning

extension TransactionsCommand {
    /// `assent transactions sign`
    struct Sign: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "sign",
            abstract: "Sign a text of yours with a key of this device; the server keeps it as evidence.",
            discussion: """
                The text is shown as the server has it, and you are asked whether to sign it. 'assent device evidence' gives the \
                bundle that others can verify.
                """)

        @Argument(help: "The text, 1 to 1000 characters.")
        var text: String

        @Option(name: .long, help: "The key, by its label, where the container has several that sign.")
        var label: String?

        @OptionGroup var container: ContainerOption

        @OptionGroup var result: ResultOptions

        @OptionGroup var client: ClientOptions

        func run() async throws {
            let console = result.console
            try await SigningProfile.run(client, console) { profile in
                let transaction = try await profile.container(container.id).record(text, label: label)
                try await profile.answer(transaction, console).show(on: console)
            }
        }
    }
}
