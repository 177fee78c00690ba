import ArgumentParser
import Assent
import Foundation

/// What every command of the client takes.
struct ClientOptions: ParsableArguments {
    @Option(name: .shortAndLong, help: "The client's file, as 'assent serve' writes it; kept for the next commands.")
    var config: String?

    @Option(name: .long, help: "The name under which configuration, session and tokens are kept.")
    var profile = "default"

    @OptionGroup var vault: VaultSecretOptions

    /// The profile.
    func load() throws -> ClientProfile {
        var loaded = try ClientProfile.load(config: config, name: profile)
        loaded.presence = try vault.presence()
        return loaded
    }
}
