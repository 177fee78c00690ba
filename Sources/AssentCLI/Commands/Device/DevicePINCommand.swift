import ArgumentParser
import Assent
import AssentSigning

extension DeviceCommand {
    /// `assent device pin`
    struct PIN: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "pin", abstract: "The PIN or password of a container's keys.",
            discussion: """
                Is it forgotten? Then nobody can open the keys, and the container gets new ones:

                assent device invite --container ID     where you are signed in
                assent device renew CODE                on the device; it asks for a new PIN
                """,
            subcommands: [Show.self, Change.self, Unlock.self])

        /// The password that is meant.
        struct Choice: ParsableArguments {
            @OptionGroup var container: ContainerOption

            @Option(name: .long, help: "Which keys it opens, where a container has several: session, signing or otp.")
            var slot: PasswordSlot?

            func password(_ profile: SigningProfile) async throws -> SigningPassword {
                let all = try await profile.container(container.id).passwords
                guard let slot else {
                    guard let only = all.first else {
                        throw CommandFailure("The keys of this container need no PIN or password.")
                    }
                    guard all.count == 1 else {
                        let names = all.map(\.slot.rawValue).joined(separator: ", ")
                        throw CommandFailure("There are several; name one with --slot: \(names).")
                    }
                    return only
                }
                guard let found = all.first(where: { $0.slot == slot }) else {
                    throw CommandFailure("The container has no PIN or password \(slot.rawValue).")
                }
                return found
            }
        }

        /// `assent device pin show`
        struct Show: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                commandName: "show",
                abstract: "Print what is left of each container's tries as JSON, one a line.",
                discussion: "The server is asked. Nothing is opened, and no try is used.")

            @OptionGroup var client: ClientOptions

            func run() async throws {
                let console = Console()
                try await SigningProfile.run(client, console) { profile in
                    for known in try await profile.device.containers() where !known.passwords.isEmpty {
                        let state = try await known.status().state
                        guard state != .revoked, state != .void else {
                            console.warn("Container \(known.id) has ended.")
                            continue
                        }
                        let container = try await profile.device.container(known.id)
                        for password in container.passwords {
                            console.emit(
                                JSONValue(omittingNil: [
                                    "container": .string(container.id), "slot": .string(password.slot.rawValue),
                                    "mode": .string(password.mode.rawValue), "state": .string(password.state.rawValue),
                                    "tries": password.remaining.map { .integer($0) },
                                    "spare": password.spare.map { .integer($0) },
                                ]))
                        }
                    }
                }
            }
        }

        /// `assent device pin unlock`
        struct Unlock: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                commandName: "unlock",
                abstract: "Let a PIN that wrong tries have locked be tried again.",
                discussion: "You must have signed in within the last minutes ('assent login').")

            @OptionGroup var container: ContainerID

            @Option(name: .long, help: "Which keys it opens: session, signing or otp. Default: signing.")
            var slot: PasswordSlot?

            @OptionGroup var result: ResultOptions

            @OptionGroup var client: ClientOptions

            func run() async throws {
                try await SessionCalls(client, console: result.console)
                    .change(container: container.value, .unlock, slot: slot)
            }
        }

        /// `assent device pin change`
        struct Change: AsyncParsableCommand {
            static let configuration = CommandConfiguration(
                commandName: "change",
                abstract: "Set another PIN or password: asks for the current one, and for the new one twice.")

            @OptionGroup var choice: Choice

            @OptionGroup var result: ResultOptions

            @OptionGroup var client: ClientOptions

            func run() async throws {
                let console = result.console
                try await SigningProfile.run(client, console) { profile in
                    let password = try await choice.password(profile)
                    let container = try await profile.container(choice.container.id)
                    let terminal = TerminalPassword(console: console, signsIn: container.signsIn)
                    try await terminal.changing(password, issuer: container.issuerName)
                    console.report(
                        ["container": .string(container.id), "slot": .string(password.slot.rawValue)],
                        "Changed. The old one opens nothing any more.")
                }
            }
        }
    }
}
