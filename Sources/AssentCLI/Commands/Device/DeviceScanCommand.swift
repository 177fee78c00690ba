import ArgumentParser
import Assent
import AssentSigning
import Foundation

extension DeviceCommand {
    /// `assent device scan`
    struct Scan: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "scan",
            abstract: "Claim the transaction of a QR code on a page, show it, ask for an answer and sign it.",
            discussion: """
                Only the page where it began shows the number that you are asked for. Read who asks, and from which place and \
                address: somebody who shows you their own page has its number, too.

                Example:  assent device scan --file qr.txt
                """)

        @Argument(help: "The text of the QR code.")
        var text: String?

        @Option(name: .long, help: "A file with the text of the QR code.", completion: .file())
        var file: String?

        @Option(name: .long, help: "The user, by id or name, where this device has containers of several.")
        var user: String?

        @OptionGroup var result: ResultOptions

        @OptionGroup var client: ClientOptions

        func validate() throws {
            guard (text == nil) != (file == nil) else { throw ValidationError("Give the text or --file.") }
        }

        func run() async throws {
            let console = result.console
            try await SigningProfile.run(client, console) { profile in
                let scanned = try text ?? QRCodeFile.text(file ?? "")
                let info = try await profile.device.retrieveTransactionInfo(scanned, user: user)
                let transaction = try await info.transaction()
                try await profile.answer(transaction, console).show(on: console)
            }
        }
    }

    /// `assent device renew`
    struct Renew: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "renew",
            abstract: "Replace a container's keys by new ones, when they are about to expire or after a reset.",
            discussion: """
                Without a code it works from the day that 'assent device list' names (renewable). With the code of a reset \
                ('assent device invite --container …') it works at any time before the keys expire: type the digits where the \
                code was shown, and run the command again with the same code.

                Keys behind a PIN or password need the current one, which goes on guarding the new keys; after a reset you choose \
                a new one.
                """)

        @Argument(help: "The code of a reset, from 'assent device invite --container ID'.")
        var code: String?

        @OptionGroup var container: ContainerOption

        @OptionGroup var result: ResultOptions

        @OptionGroup var client: ClientOptions

        func run() async throws {
            let console = result.console
            try await SigningProfile.run(client, console) { profile in
                let container = try await profile.container(container.id)
                let invite = try code.map { try SigningInvite(typed: $0, issuer: container.issuer) }
                let password = TerminalPassword(console: console, signsIn: container.signsIn)
                let renewal: SigningRenewal
                do {
                    renewal = try await password.retrying {
                        try await container.renew(invite: invite) { try password.renewing($0) }
                    }
                } catch let error as SigningError where error.code == .freshAuthenticationRequired && invite == nil {
                    let day = container.renewableFrom.formatted(.iso8601)
                    throw CommandFailure(
                        "The keys cannot be renewed before \(day). For new keys now: assent device invite --container "
                            + "\(container.id), and then assent device renew CODE. [\(error.code.rawValue)]")
                }
                if let digits = renewal.digits {
                    guard !result.json else {
                        return console.emit(["container": .string(container.id), "digits": .string(digits)])
                    }
                    console.showDigits(digits, user: renewal.userName, issuer: renewal.issuerName)
                } else {
                    let until = try await profile.device.container(container.id).expiresAt
                    console.report(
                        ["container": .string(container.id), "expires": .string(until.formatted(.iso8601))],
                        "The container has new keys, until \(until.formatted(.iso8601)).")
                }
            }
        }
    }
}
