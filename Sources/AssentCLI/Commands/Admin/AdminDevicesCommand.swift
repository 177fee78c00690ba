import ArgumentParser
import Assent
import AssentSigning
import AssentSigningProtocol

extension AdminCommand {
    /// `assent admin devices`
    struct Devices: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "devices", abstract: "The devices of the realm's users that sign transactions.",
            subcommands: [List.self, Change.self])

        /// `assent admin devices list`
        struct List: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                commandName: "list",
                abstract: "Print a user's containers as JSON, one a line.")

            @Argument(help: "The user's name or id.")
            var user: String

            @OptionGroup var client: ClientOptions

            func run() async throws {
                let calls = SessionCalls(client)
                let query = PercentEncoding.encode(user)
                let path = IssuerPath.containers.path()
                let answer = try await calls.send { .get("\($0("signing"))\(path)?user=\(query)") }
                try calls.emit(answer["containers"])
            }
        }

        /// `assent admin devices change`
        struct Change: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                commandName: "change",
                abstract: "Block, unblock or end a container; lock or destroy what its PIN opens.",
                discussion: """
                    block, unblock   it may do nothing but ask how it stands, or again what it did
                    revoke           it ends, for good
                    lock, unlock     nobody can try its PIN, or they can again (sign in within the last minutes)
                    wipe             what its PIN opens is destroyed: the user begins a reset, which gives it new keys

                    Destroying does not reach backups: somebody who has the device's files, a backup from before and the \
                    master key can still guess the PIN. The keys that they find are no longer valid.
                    """)

            @Argument(help: "block, unblock, revoke, lock, unlock or wipe.")
            var action: ContainerAction

            @OptionGroup var container: ContainerID

            @Option(
                name: .long,
                help: "With lock, unlock and wipe: which keys the PIN opens, session, signing or otp. Default: signing."
            )
            var slot: PasswordSlot?

            @OptionGroup var result: ResultOptions

            @OptionGroup var client: ClientOptions

            func validate() throws {
                guard slot == nil || action.isAboutSlot else {
                    throw ValidationError("--slot goes with lock, unlock and wipe.")
                }
            }

            func run() async throws {
                try await SessionCalls(client, console: result.console)
                    .change(container: container.value, action, slot: slot)
            }
        }
    }
}
