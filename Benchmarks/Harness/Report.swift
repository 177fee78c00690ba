import AssentCore
import Foundation

/// What came out, for people and for scripts.
struct Report {
    let comparisons: [Comparison]
    let isQuick: Bool
    var machine = Machine()

    var table: String {
        let heading = ["", "ratio of", "median", "min–max", "rounds", "aim", "", "subject", "baseline"]
        let rows = comparisons.map { comparison in
            [
                comparison.benchmark, comparison.title, Figure.text(comparison.median),
                "\(Figure.text(comparison.least))–\(Figure.text(comparison.most))", "\(comparison.rounds.count)",
                comparison.aim.text, comparison.isMet ? "met" : "not met",
                comparison.absolutes.subject, comparison.absolutes.baseline,
            ]
        }
        let all = [heading] + rows
        let widths = heading.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
        let lines = all.map { row in
            zip(row, widths).map { text, width in text + String(repeating: " ", count: width - text.count) }
                .joined(separator: "  ")
        }
        return "on \(machine.text)\n" + lines.joined(separator: "\n")
            + (isQuick ? "\nquick: few rounds, no figures to quote" : "")
    }

    var json: JSONValue {
        [
            "quick": .bool(isQuick), "machine": machine.json,
            "comparisons": .array(
                comparisons.map { comparison in
                    [
                        "benchmark": .string(comparison.benchmark), "ratioOf": .string(comparison.title),
                        "median": Self.number(comparison.median), "min": Self.number(comparison.least),
                        "max": Self.number(comparison.most), "aim": .string(comparison.aim.text),
                        "met": .bool(comparison.isMet), "unit": .string(comparison.unit),
                        "rounds": .array(
                            comparison.rounds.map {
                                ["subject": Self.number($0.subject), "baseline": Self.number($0.baseline)]
                            }),
                    ]
                }),
        ]
    }

    private static func number(_ value: Double) -> JSONValue {
        (try? JSONValue.parse(Array("\(value)".utf8))) ?? .null
    }
}

/// Tells who watches what is going on, beside the result.
enum Progress {
    static func say(_ text: String) {
        try? FileHandle.standardError.write(contentsOf: Data((text + "\n").utf8))
    }
}

/// Why something could not be measured.
struct BenchFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
