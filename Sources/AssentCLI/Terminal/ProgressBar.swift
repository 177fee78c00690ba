import Assent
import Foundation

/// Shows on a terminal how much of a download is there; nothing where standard error is not a terminal.
struct ProgressBar: Sendable {
    private let console: Console
    private let isShown: Bool

    /// How many characters the bar has between its ends.
    private static let width = 30

    init(_ console: Console) {
        self.console = console
        isShown = isatty(STDERR_FILENO) == 1
    }

    func draw(_ progress: NetworkProgress) {
        guard isShown else { return }
        if let total = progress.bytesToReceive {
            console.draw(Self.line(progress.receivedBytes, of: total))
        } else {
            console.draw("\(Self.size(progress.receivedBytes)) MiB")
        }
    }

    /// Takes the bar away.
    func end() {
        if isShown { console.draw("") }
    }

    /// The bar as a line: `[######------------------------]  20 %  1.0 of 5.0 MiB`.
    static func line(_ done: Int, of total: Int) -> String {
        let share = total > 0 ? min(max(Double(done) / Double(total), 0), 1) : 1
        let full = Int(share * Double(width))
        let bar = String(repeating: "#", count: full) + String(repeating: "-", count: width - full)
        return "[\(bar)] \(Int(share * 100)) %  \(size(done)) of \(size(total)) MiB"
    }

    private static func size(_ bytes: Int) -> String {
        let tenths = bytes * 10 / (1 << 20)
        return "\(tenths / 10).\(tenths % 10)"
    }
}
