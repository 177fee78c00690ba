import ArgumentParser
import Assent
import Foundation

/// What every command of the client takes.
struct ClientOptions: ParsableArguments {
    @Option(
        name: .shortAndLong,
        help:
            "The client's file, as 'assent serve' writes it, for this call; otherwise the one that 'assent login', 'assent register' or 'assent device enroll' kept.",
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String?

    @Option(name: .long, help: "The name under which configuration, session and tokens are kept.")
    var profile = "default"

    @Option(
        name: .long,
        help:
            "The trust file that this app is shipped with; it says hosts, pins and resources in the place of the client's file.",
        completion: .file())
    var trust: String?

    @OptionGroup var vault: VaultSecretOptions

    /// The profile.
    ///
    /// - Parameter prompt: asks for the vault's passphrase or PIN.
    /// - Returns: the profile, whose vault is not open yet.
    /// - Throws: `ConfigurationError`, ``CommandFailure``, `ValidationError`.
    func load(asking prompt: Prompt = Prompt()) throws -> ClientProfile {
        var loaded = try ClientProfile.load(config: config, name: profile)
        if let trust {
            loaded.file.trust = URL(fileURLWithPath: trust).path
            (loaded.file.pins, loaded.file.resources) = ([], [])
        }
        loaded.presence = try vault.presence()
        loaded.presence.prompt = prompt
        return loaded
    }
}
