import AssentCore
import AssentStore
import Foundation

/// Shows how far a copy is: a bar on a terminal, elsewhere a line for each table that is done.
final class CopyDisplay: Sendable {
    private let console: Console
    private let isTerminal: Bool
    private let latest = Locked("")

    /// A display. Standard error is where it draws, so that standard output has results only.
    init(_ console: Console, isTerminal: Bool = isatty(STDERR_FILENO) == 1) {
        self.console = console
        self.isTerminal = isTerminal
    }

    /// Shows a stage. The same text is not drawn twice.
    func show(_ progress: CopyProgress) {
        let text = isTerminal ? Self.bar(progress) : progress.isDone ? Self.line(progress) : nil
        guard let text else { return }
        let isNew = latest.withLock { latest in
            defer { latest = text }
            return latest != text
        }
        guard isNew else { return }
        if isTerminal { console.draw(text) } else { console.say(text) }
    }

    /// Removes the bar.
    func end() {
        let wasDrawn = latest.withLock { latest in
            defer { latest = "" }
            return isTerminal && !latest.isEmpty
        }
        if wasDrawn { console.draw("") }
    }

    /// `Copying   audit  [#####-----]  50 %  100 of 200`: at most 80 columns.
    static func bar(_ progress: CopyProgress) -> String {
        let share = progress.total == 0 ? 1 : min(1, Double(progress.rows) / Double(progress.total))
        let filled = Int(share * 10)
        let bar = String(repeating: "#", count: filled) + String(repeating: "-", count: 10 - filled)
        let percent = String(Int(share * 100)).padded(to: 3)
        return "\(progress.verb) \(progress.table)  [\(bar)] \(percent) %  \(progress.rows) of \(progress.total)"
    }

    /// `Copying   audit  200 rows`
    static func line(_ progress: CopyProgress) -> String {
        "\(progress.verb) \(progress.table)  \(progress.rows) \(progress.rows == 1 ? "row" : "rows")"
    }
}

extension CopyProgress {
    fileprivate var verb: String {
        switch step {
        case .copying: "Copying  "
        case .comparing: "Comparing"
        }
    }
}

extension String {
    fileprivate func padded(to width: Int) -> String { String(repeating: " ", count: max(0, width - count)) + self }
}
