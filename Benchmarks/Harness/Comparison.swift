/// A subject beside its baseline, over several rounds.
struct Comparison: Sendable {
    /// What the ratio should be.
    enum Aim: Sendable {
        case atMost(Double)
        case atLeast(Double)
        case exactly(Double)

        func isMet(by ratio: Double) -> Bool {
            switch self {
            case .atMost(let limit): ratio <= limit
            case .atLeast(let limit): ratio >= limit
            case .exactly(let value): ratio == value
            }
        }

        var text: String {
            switch self {
            case .atMost(let limit): "≤ \(Figure.text(limit))"
            case .atLeast(let limit): "≥ \(Figure.text(limit))"
            case .exactly(let value): "\(Figure.text(value))"
            }
        }
    }

    /// What one round measured of each, in the same unit.
    struct Round: Sendable {
        let subject: Double
        let baseline: Double
        var ratio: Double { subject / baseline }
    }

    /// The name of the benchmark.
    let benchmark: String

    /// What the ratio is of: subject, baseline and quantity.
    let title: String

    /// The unit of the rounds' figures: `s`, what is counted, or `1/s`. Their ratio is what can be compared.
    let unit: String

    let aim: Aim
    private(set) var rounds: [Round] = []

    init(benchmark: String, title: String, unit: String, aim: Aim) {
        self.benchmark = benchmark
        self.title = title
        self.unit = unit
        self.aim = aim
    }

    var median: Double { Figure.median(rounds.map(\.ratio)) }
    var least: Double { rounds.map(\.ratio).min() ?? .nan }
    var most: Double { rounds.map(\.ratio).max() ?? .nan }

    var isMet: Bool { aim.isMet(by: median) }

    /// The medians of what was measured, with the unit.
    var absolutes: (subject: String, baseline: String) {
        (
            Figure.text(Figure.median(rounds.map(\.subject)), unit: unit),
            Figure.text(Figure.median(rounds.map(\.baseline)), unit: unit)
        )
    }

    /// Measures a subject and its baseline in rounds, each as often first as the other. The first round warms both up.
    ///
    /// - Parameters:
    ///   - rounds: how many count.
    ///   - prepare: makes a round's two pieces of work; each returns its figure.
    /// - Throws: what they throw.
    mutating func inTurns(
        rounds: Int,
        _ prepare: () async throws -> (subject: () async throws -> Double, baseline: () async throws -> Double)
    ) async throws {
        for round in 0...rounds {
            let (subject, baseline) = try await prepare()
            let isFirst = round.isMultiple(of: 2)
            let first = try await isFirst ? subject() : baseline()
            let second = try await isFirst ? baseline() : subject()
            guard round > 0 else { continue }
            add(subject: isFirst ? first : second, baseline: isFirst ? second : first, of: rounds)
        }
    }

    /// Counts a round and tells who watches.
    mutating func add(subject: Double, baseline: Double, of count: Int) {
        let round = Round(subject: subject, baseline: baseline)
        rounds.append(round)
        Progress.say("  \(title), round \(rounds.count) of \(count): \(Figure.text(round.ratio))")
    }
}

/// Numbers as they are shown.
enum Figure {
    /// Two decimals.
    static func text(_ value: Double) -> String {
        guard value.isFinite else { return "-" }
        let hundredths = Int((value * 100).rounded())
        let fraction = hundredths % 100
        return "\(hundredths / 100).\(fraction < 10 ? "0" : "")\(fraction)"
    }

    /// Three digits or so, with the unit; seconds become ms or µs, large numbers thousands and millions.
    static func text(_ value: Double, unit: String) -> String {
        guard value.isFinite else { return "-" }
        if unit.hasPrefix("s") {
            let rest = unit.dropFirst()
            switch value {
            case 1...: return "\(short(value)) s\(rest)"
            case 1e-3...: return "\(short(value * 1e3)) ms\(rest)"
            default: return "\(short(value * 1e6)) µs\(rest)"
            }
        }
        switch value {
        case 1e6...: return "\(short(value / 1e6)) M \(unit)"
        case 1e4...: return "\(short(value / 1e3)) k \(unit)"
        default: return "\(short(value)) \(unit)"
        }
    }

    private static func short(_ value: Double) -> String {
        value >= 100 ? "\(Int(value.rounded()))" : text(value)
    }

    /// The middle of `values`, or the mean of the two in the middle.
    static func median(_ values: [Double]) -> Double {
        guard !values.isEmpty else { return .nan }
        let sorted = values.sorted()
        let middle = sorted.count / 2
        return sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
    }
}

extension Duration {
    /// In seconds.
    var inSeconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) / 1e18
    }
}
