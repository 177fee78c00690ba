import Foundation

/// Where the command line keeps its things, after the XDG Base Directory Specification.
struct Places: Sendable {
    /// Configuration: `$XDG_CONFIG_HOME/assent`.
    let configuration: String

    /// The vault and its key: `$XDG_STATE_HOME/assent`.
    let state: String

    /// The name of a profile's unprotected key file, beside its vault.
    static let keyFileName = "vault.key"

    init(environment: [String: String] = ProcessInfo.processInfo.environment) {
        let home = environment["HOME"] ?? FileManager.default.homeDirectoryForCurrentUser.path
        func base(_ name: String, _ fallback: String) -> String {
            // A relative path is to be ignored, says the specification.
            if let value = environment[name], value.hasPrefix("/") { return value + "/assent" }
            return home + fallback + "/assent"
        }
        configuration = base("XDG_CONFIG_HOME", "/.config")
        state = base("XDG_STATE_HOME", "/.local/state")
    }

    /// The configuration of a profile.
    func configurationFile(profile: String) -> String { "\(configuration)/\(profile).yaml" }

    /// The vault directory of a profile.
    func vault(profile: String) -> String { "\(state)/\(profile)" }
}
