import ArgumentParser
import AssentCore
import Foundation

/// `assent`: the server, and a client to it, on the command line.
@main
struct AssentCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "assent",
        abstract: "Prove that a user agreed to this action, once: the server, and a client to it.",
        discussion: """
            Try it:   assent demo
            Serve:    assent serve --config assent.yaml
            Sign in:  assent login --config client.yaml
            Pay:      assent request POST https://…/transfers --data '{…}'

            Exit status: 0 done, 1 failed, 2 refused by the server or declined by you, 3 outcome unknown (ask again before \
            you repeat), 64 wrong usage, 78 wrong configuration.
            """,
        version: AssentVersion.current,
        subcommands: [
            ServeCommand.self, DemoCommand.self, LoginCommand.self, StatusCommand.self, RegisterCommand.self,
            UnregisterCommand.self, RequestCommand.self, TokenCommand.self, UserInfoCommand.self, WebCommand.self,
            LogoutCommand.self, ConsentsCommand.self, VaultCommand.self,
            DeviceCommand.self, TransactionsCommand.self, OTPCommand.self, VerifyCommand.self, UsersCommand.self,
            ClientsCommand.self, AdminCommand.self, PolicyCommand.self, DatabaseCommand.self, RestoreFenceCommand.self,
            DoctorCommand.self, ConfigCommand.self,
        ])
    static func main() async {
        // tpm2-tss writes to standard error what we say ourselves. To see it, set TSS2_LOG.
        setenv("TSS2_LOG", "all+none", 0)
        if let words = Misspelling.words(about: Array(CommandLine.arguments.dropFirst()), in: self) {
            Console().warn(words)
            Foundation.exit(EX_USAGE)
        }
        await main(nil)
    }
}
