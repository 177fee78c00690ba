import ArgumentParser
import Assent
import AssentSigning
import Foundation

/// `assent otp`
struct OTPCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "otp", abstract: "Print a one-time code of this profile's enrolled device.",
        discussion: """
            The keys come from the server when the device enrols. A code from the time (TOTP) needs a clock that is right; a \
            code from a counter (HOTP) takes that value for good; a key for challenges (OCRA) needs --challenge.

            Example:  assent otp
                      assent otp --key bank --challenge 12345678
            """)

    @Option(name: .long, help: "The key, by its label, where the container has several.")
    var key: String?

    @Option(name: .long, help: "The challenge that you are shown, for a key that answers challenges.")
    var challenge: String?

    @Flag(name: .long, help: "List the keys, and make no code.")
    var list = false

    @OptionGroup var container: ContainerOption

    @OptionGroup var result: ResultOptions

    @OptionGroup var client: ClientOptions

    func validate() throws {
        if list, key != nil || challenge != nil {
            throw ValidationError("--list makes no code: leave out --key and --challenge.")
        }
    }

    func run() async throws {
        let console = result.console
        try await SigningProfile.run(client, console) { profile in
            let container = try await profile.container(container.id)
            guard !list else { return try await show(container.oneTimeKeys(), console) }
            let code = try await container.oneTimeCode(label: key, challenge: challenge)
            console.report(
                [
                    "key": .string(code.label), "code": .string(code.code.reveal()),
                    "expires_at": code.expiresAt.map { .integer(Int64($0.timeIntervalSince1970)) } ?? .null,
                ], code.code.reveal())
        }
    }

    private func show(_ keys: [SigningOneTimeKey], _ console: Console) {
        for key in keys {
            console.report(
                ["key": .string(key.label), "kind": .string(key.kind.rawValue)], "\(key.label)  \(key.kind.rawValue)")
        }
        if keys.isEmpty, !result.json { console.say("The container has no keys for one-time codes.") }
    }
}
