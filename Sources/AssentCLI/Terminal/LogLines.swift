import AssentCore
import Logging

/// Where a log for people goes, line by line. An error in it may quote a server: what is quoted begins no line of its
/// own, which would look like this program's, and no terminal acts upon it.
struct LogLines: TextOutputStream, Sendable {
    private let take: @Sendable (String) -> Void

    /// A log.
    ///
    /// - Parameter take: gets each line, without its end.
    init(_ take: @escaping @Sendable (String) -> Void) { self.take = take }

    /// Passes a line on. swift-log's handler writes a whole one at a time.
    func write(_ line: String) {
        var text = line
        if text.unicodeScalars.last == "\n" { text.unicodeScalars.removeLast() }
        take(DisplayText.lineForTerminal(text))
    }
}

extension Logger {
    /// The log of a command of a client: warnings, on standard error.
    static func ofClient() -> Logger {
        let console = Console()
        let lines = LogLines { console.warn($0) }
        var logger = Logger(label: "assent", factory: { StreamLogHandler(label: $0, stream: lines) })
        logger.logLevel = .warning
        return logger
    }
}
