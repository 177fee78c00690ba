import ArgumentParser

/// `assent policy`
struct PolicyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "policy", abstract: "Try policies before they are in force, and take over AM's.",
        subcommands: [PolicyTestCommand.self, PolicyImportCommand.self])
}
