import ArgumentParser

/// `assent config`
struct ConfigCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Make, sign and check the trust files of an app, offline.",
        discussion: """
            A trust file says which hosts an app calls, with which pins, and whose credentials each gets. Apps get a later \
            version without a release; docs/trust-file.md has the format and the rules. No server has a key that signs one: \
            run these commands where the keys are.

            Example:  assent config key first; assent config key second
                      mkdir versions
                      assent config sign trust.yaml versions --key first.pem
                      assent config check versions
            """,
        subcommands: [
            ConfigKeyCommand.self, ConfigSignCommand.self, ConfigCheckCommand.self, ConfigRehearseCommand.self,
        ])
}
