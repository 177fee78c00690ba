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
            median of the rounds' ratios; the smallest and the largest are shown beside it, and the medians of what was \
            measured, which mean something on that machine only. Exit status 0 when everything \
            was measured, whether the aims are met or not.
            """,
        subcommands: [ServeGateway.self])

    @Flag(name: .long, help: "Few rounds: whether it works, not how fast it is.")
    var quick = false

    @Flag(name: .long, help: "The result as JSON on standard output, with the figures of every round.")
    var json = false

    @Flag(name: .long, help: "What can be measured.")
    var list = false

    @Option(name: .long, help: "Only these, by name, with commas between them.")
    var only: String?

    @Option(name: .long, help: "Where to put the work files, on a real disk; else beside the executable.")
    var directory: String?

    @Option(name: .long, help: "An earlier build of this program: 'gateway' compares the gateways of both, too.")
    var before: String?

    func run() async throws {
        let chosen = try chosen()
        guard !list else { return chosen.forEach { print("\($0.name): \($0.summary)") } }
        let watchdog = Task.detached {
            try await Task.sleep(for: .seconds(20 * 60))
            Progress.say("given up after 20 minutes")
            // The processes that were started end with their standard input.
            Foundation.exit(70)
        }
        defer { watchdog.cancel() }
        let workspace = try Workspace(in: directory)
        defer { workspace.remove() }
        let setting = BenchSetting(workspace: workspace, isQuick: quick, before: before)
        var results: [Comparison] = []
        for (index, benchmark) in chosen.enumerated() {
            Progress.say("[\(index + 1)/\(chosen.count)] \(benchmark.name): \(benchmark.summary)")
            results += try await benchmark.make(setting).run()
        }
        let report = Report(comparisons: results, isQuick: quick)
        print(json ? report.json.serialized() : report.table)
    }

    private func chosen() throws -> [Benchmarks.Entry] {
        guard let only else { return Benchmarks.all }
        return try only.split(separator: ",").map { name in
            guard let found = Benchmarks.all.first(where: { $0.name == name }) else {
                let names = Benchmarks.all.map(\.name).joined(separator: ", ")
                throw ValidationError("there is no benchmark \(name); there are \(names)")
            }
            return found
        }
    }
}
