import ArgumentParser
import Assent
import AssentVault
import Foundation

/// `assent clients`
struct ClientsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clients", abstract: "Keys by which clients authenticate at a server (private_key_jwt).",
        subcommands: [Key.self])

    /// `assent clients key`
    struct Key: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "key", abstract: "Make the key of a client, and print its public half as a JWKS.",
            discussion: """
                The private half stays with the key provider of the profile's vault: a key file, a passphrase, a PKCS#11 \
                token or a TPM. Nothing prints it. --keys chooses that for a profile that has no vault yet.

                Give the JWKS to the person who runs the server, and write the key's name into the client's file as clientKey.

                Example:  assent clients key bank-app --keys tpm > bank-app.jwks
                """)

        @Argument(help: "The key's name: letters, digits, '.', '_', ':' and '-'.")
        var name: String

        @Option(name: .long, help: "The profile whose client it is.")
        var profile = "default"

        @Option(
            name: .long,
            help:
                "Where the keys of a profile without a vault are to be: \(KeyProviderKinds.names). Default: a key file."
        )
        var keys: RekeyOptions.Target?

        @OptionGroup var hardware: HardwareOptions

        @OptionGroup var vault: VaultSecretOptions

        @Flag(name: .long, help: "Print the public half of the key that is there, and make none.")
        var show = false

        @Flag(
            name: .long,
            help:
                "Destroy the key that is there and make another. The server refuses the client until it has the new one."
        )
        var replace = false

        @Flag(name: .long, help: "Print errors as JSON, and nothing beside the JWKS.")
        var json = false

        func run() async throws {
            let console = Console(json: json)
            try await Outcome.run(console) {
                let store = try ClientKeyStore(profile: profile, choice: choice, presence: try vault.presence())
                let key = show ? try await store.find(name) : try await store.make(name, replacing: replace)
                console.emit(key.keySet.json)
                if !show, !json { for line in notes(store) { console.warn(line) } }
            }
        }

        private func notes(_ store: ClientKeyStore) -> [String] {
            var lines = [
                "This is the public half. Give it to the person who runs the server, and write into the client's file:",
                "    clientKey: \(name)",
            ]
            if store.kind.name == KeyFileKind.name {
                lines.append("The private half is in a key file: everyone who can read that file can be this client.")
            }
            return lines
        }

        private func choice(_ places: Places) throws -> (any KeyProviderKind)? {
            let file = places.vault(profile: profile) + "/" + Places.keyFileName
            return try hardware.kind(keys, standardFile: file)
        }

        func validate() throws {
            try ClientProfile.check(name: profile)
            do {
                try ClientKey.check(name: name)
            } catch {
                throw ValidationError(error.detail)
            }
            guard !show || !replace else { throw ValidationError("Say --show or --replace, not both.") }
            guard !show || keys == nil else {
                throw ValidationError("--keys chooses where a new key is to be: leave it out with --show.")
            }
            _ = try choice(Places())
        }
    }
}
