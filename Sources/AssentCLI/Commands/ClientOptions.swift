import ArgumentParser
import Assent
import Foundation

/// What every command of the client takes.
struct ClientOptions: ParsableArguments {
    @Option(name: .shortAndLong, help: "The client's file, as 'assent serve' writes it; kept for the next commands.")
    var config: String?

    @Option(name: .long, help: "The name under which configuration, session and tokens are kept.")
    var profile = "default"

    /// The profile.
    func load() throws -> ClientProfile { try ClientProfile.load(config: config, name: profile) }
}
