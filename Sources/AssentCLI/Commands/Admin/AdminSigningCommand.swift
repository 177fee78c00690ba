import ArgumentParser
import Assent
import AssentSigningProtocol

extension AdminCommand {
    /// `assent admin signing-keys`
    struct SigningKeys: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "signing-keys",
            abstract: "The keys of the realm's transaction signing, which devices and evidence rely on.",
            discussion: "You must be an administrator who has signed in within the last minutes ('assent login').",
            subcommands: [RotateIdentity.self, WithdrawOnline.self])

        /// `assent admin signing-keys rotate-identity`
        struct RotateIdentity: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                commandName: "rotate-identity",
                abstract: "Make a new identity key: devices follow it by themselves, and old evidence stays good.",
                discussion: """
                    It does not help against somebody who has the old key: they can name a successor, too. Then all devices must \
                    enrol again, at an issuer with another URL.
                    """)

            @OptionGroup var client: ClientOptions

            func run() async throws { try await SigningKeys.change(client, "rotateIdentity") }
        }

        /// `assent admin signing-keys withdraw-online`
        struct WithdrawOnline: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                commandName: "withdraw-online",
                abstract: "Someone else may have an online key: make new ones, and end the old ones.",
                discussion: "A device that has not asked since then still takes what the old keys sign, until it asks.")

            @OptionGroup var client: ClientOptions

            func run() async throws { try await SigningKeys.change(client, "withdrawOnline") }
        }

        private static func change(_ client: ClientOptions, _ action: String) async throws {
            let calls = SessionCalls(client)
            let path = IssuerPath.keys.path()
            let answer = try await calls.send { .post("\($0("signing"))\(path)", json: ["action": .string(action)]) }
            calls.console.say("Done. Online keys are valid from generation \(answer["min"]?.integer ?? 0) on.")
            let identity = DisplayText.escapedForTerminal(answer["identity"]?.string ?? "")
            calls.console.say("The identity key, for 'assent verify --trust':  \(identity)")
            try calls.console.finish()
        }
    }
}
