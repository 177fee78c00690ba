import ArgumentParser
import Assent
import AssentEngine
import AssentServer
import Foundation

/// `assent restore-fence`
struct RestoreFenceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore-fence",
        abstract: "After each restore of a backup, before the first start: end what could be used a second time.",
        discussion: """
            A backup does not know what was used since it was made: approvals, codes, refresh tokens, one-time passwords, \
            invites. It also brings back sessions that were signed out. This command ends all of that, so users sign in \
            again, and locks each PIN that the server checks until its user signs in. Stop all servers of the database \
            first.

            It cannot know who was locked, which password was changed and which device was revoked since: do that again.
            """)

    @OptionGroup var server: ServerFileOptions

    @Flag(
        help: ArgumentHelp(
            "Keep sessions, grants, consents, usual networks and the keys for tokens as the backup has them.",
            discussion:
                "Everything that was signed out, revoked, withdrawn or discarded since the backup is then valid again.")
    )
    var keepSessions = false

    func run() async throws {
        try await server.run {
            try await RestoreFence.run(ServerConfiguration.load(file: $0), keepingSessions: keepSessions)
        } text: { outcome in
            // Of nonces there is always one row, which says from when on they are valid.
            let counts = FencedKind.allCases.filter { $0 != .nonces }.compactMap { kind in
                outcome.counts[kind].map { "\n  \(kind.text): \($0)" }
            }
            let ended = counts.isEmpty ? "Nothing was open." : "Ended:\(counts.joined())"
            return "\(ended)\nDo again what administrators have done since the backup, and start the servers."
        } json: { outcome in
            var object = JSONObject()
            for kind in FencedKind.allCases { object[kind.rawValue] = .integer(outcome.counts[kind] ?? 0) }
            return .object(object)
        }
    }
}
