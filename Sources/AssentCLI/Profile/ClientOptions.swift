import ArgumentParser
import Assent
import Foundation

/// What every command of the client takes.
struct ClientOptions: ParsableArguments {
    @Option(
        name: .shortAndLong,
        help:
            "The client's file, as 'assent serve' writes it, for this call; otherwise the one that 'assent login' or 'assent device enroll' kept.",
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    @Option(name: .long, help: "The name under which configuration, session and tokens are kept.")
    var profile = "default"

    @OptionGroup var vault: VaultSecretOptions

    /// The profile.
    ///
    /// - Parameter prompt: asks for the vault's passphrase or PIN.
    /// - Returns: the profile, whose vault is not open yet.
    /// - Throws: `ConfigurationError`, ``CommandFailure``, `ValidationError`.
    func load(asking prompt: Prompt = Prompt()) throws -> ClientProfile {
        var loaded = try ClientProfile.load(config: config, name: profile)
        loaded.presence = try vault.presence()
        loaded.presence.prompt = prompt
        return loaded
    }
}
