import ArgumentParser
import AssentCore
import AssentSigningProtocol

/// `assent config key`
struct ConfigKeyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "key",
        abstract: "Make a key that signs trust files or device configurations, and print its thumbprint.",
        discussion: """
            It makes <name>.pem, the private key, and <name>.jwk, the public half that a draft names. Files that are there \
            stay. Make at least two, keep them in different places, and none of them at a server: someone who has one can \
            tell every app whom to trust, and when all are lost only a release of the app helps.

            The key of the device configuration is made in the same way. That one signs no trust file, and belongs at the \
            server: docs/device-configuration.md says where.
            """)

    @Argument(help: "The files' name, without .pem and .jwk.")
    var name: String

    @OptionGroup var result: ResultOptions

    func run() async throws {
        let console = result.console
        try await Outcome.run(console) {
            let key = try TrustKeyFile.make(name)
            console.report(
                [
                    "thumbprint": .string(key.thumbprint.text), "private": .string("\(name).pem"),
                    "public": .string("\(name).jwk"),
                ], key.thumbprint.text)
        }
    }
}
