import ArgumentParser
import AssentCore
import Foundation

/// How fast Assent is, as ratios to the same work done by hand or by nginx, in one run on one machine.
@main
struct AssentBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "AssentBench",
        abstract: "Compares Assent with the same work done by hand, and its gateway with nginx.",
        discussion: """
            Subject and baseline take turns in each round, so that what else the machine does hits both. What counts is the \
            median of the rounds' ratios; the smallest and the largest are shown beside it. Exit status 0 when everything \
            was measured, whether the aims are met or not.
            """,
        subcommands: [ServeGateway.self])

    /// What can be measured by itself.
    enum Part: String, CaseIterable, ExpressibleByArgument {
        case a
        case b
        case c
    }

    @Flag(name: .long, help: "Few rounds: whether it works, not how fast it is.")
    var quick = false

    @Flag(name: .long, help: "The result as JSON on standard output, with the figures of every round.")
    var json = false

    @Option(name: .long, help: "Only one part: a (call), b (take) or c (gateway).")
    var only: Part?

    @Option(name: .long, help: "Where to put the work files, on a real disk; else beside the executable.")
    var directory: String?

    func run() async throws {
        let watchdog = Task.detached {
            try await Task.sleep(for: .seconds(20 * 60))
            Progress.say("given up after 20 minutes")
            // The processes that were started end with their standard input.
            Foundation.exit(70)
        }
        defer { watchdog.cancel() }
        let workspace = try Workspace(in: directory)
        defer { workspace.remove() }
        var results: [Comparison] = []
        for part in only.map({ [$0] }) ?? Part.allCases {
            switch part {
            case .a: results += try await CallBenchmark(workspace: workspace, isQuick: quick).run()
            case .b: results += try await TakeBenchmark(workspace: workspace, isQuick: quick).run()
            case .c: results.append(try await GatewayBenchmark(workspace: workspace, isQuick: quick).run())
            }
        }
        let report = Report(comparisons: results, isQuick: quick)
        print(json ? report.json.serialized() : report.table)
    }
}
