import ArgumentParser
import Assent
import AssentEngine
import AssentServer
import Foundation

/// `assent restore-fence`
struct RestoreFenceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore-fence",
        abstract: "After a backup was restored, before the first start: end what was open when it was made.",
        discussion: """
            The backup does not know what became of open transactions, invites and enrolments since. They fail, and users \
            are asked again. PINs that the server counts are locked until their users sign in and unlock them. Devices that \
            were revoked since are active again: revoke them again. All servers of the database must be stopped.
            """)

    @OptionGroup var server: ServerFileOptions

    func run() async throws {
        try await server.run {
            try await RestoreFence.run(ServerConfiguration.load(file: $0))
        } text: { outcome in
            "Ended: \(outcome.transactions) open transactions, \(outcome.invites) invites, "
                + "\(outcome.enrolments) unfinished enrolments. Start the servers now."
        } json: { outcome in
            [
                "transactions": .integer(Int64(outcome.transactions)), "invites": .integer(Int64(outcome.invites)),
                "enrolments": .integer(Int64(outcome.enrolments)),
            ]
        }
    }
}
