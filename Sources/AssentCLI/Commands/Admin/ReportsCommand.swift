import ArgumentParser
import Assent
import Foundation

/// `assent admin reports`
struct ReportsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reports",
        abstract: "Count what apps have said that their probes have found: debuggers, preloaded libraries, root.",
        discussion: """
            A realm takes reports with 'integrityReports: true' in the server's file. Those that an installation has proved \
            by its key come first; anybody can send the others. Silence proves nothing, and neither does a report. \
            Each is in the audit log: assent admin audit --event integrity.report

            Example:  assent admin reports --since 24h --app pay
            """)

    @OptionGroup var result: ResultOptions

    @OptionGroup var client: ClientOptions

    @Option(name: .long, help: "From a time on: 2026-03-01, 2026-03-01T12:00:00Z, or how long ago: 30m, 24h, 7d.")
    var since = "7d"

    @Option(name: .long, help: "Only those of this app.")
    var app: String?

    @Option(name: .long, help: "How many lines, at most 1000.")
    var limit = 50

    func validate() throws {
        guard (1...1000).contains(limit) else { throw ValidationError("--limit is from 1 to 1000.") }
        guard AdminCommand.Audit.time(since, now: Date()) != nil else {
            throw ValidationError("--since is a date, a time in UTC, or 30m, 24h, 7d.")
        }
    }

    func run() async throws {
        let console = result.console
        let seconds = AdminCommand.Audit.time(since, now: Date()) ?? 0
        var summary = ReportSummary(app: app)
        try await SessionCalls(client, console: console).run { send in
            var after: Int64 = 0
            while true {
                let asked = "audit?after=\(after)&limit=\(AuditFollower.page)&event=integrity.report&since=\(seconds)"
                let records = try await send(200) { .get("\($0("json"))/\(asked)") }["result"]?.array ?? []
                for record in records { summary.add(record) }
                guard records.count == AuditFollower.page, let last = records.last?["position"]?.integer, last > after
                else { return }
                after = last
            }
        }
        let rows = summary.rows
        for (kind, count) in rows.prefix(limit) {
            console.report(ReportSummary.json(kind, count), ReportSummary.line(kind, count))
        }
        if rows.isEmpty { console.say("Nothing was reported.") }
        if rows.count > limit { console.warn("\(rows.count - limit) lines more: --limit shows them, or --app fewer.") }
        try console.finish()
    }
}
