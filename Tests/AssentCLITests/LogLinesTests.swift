import Assent
import AssentCore
import Logging
import Testing

@testable import AssentCLI

@Suite("What a log quotes")
struct LogLinesTests {
    @Test("A server that is quoted in the log begins no line of its own, and changes no terminal")
    func hostileServer() {
        let taken = Locked<[String]>([])
        let lines = LogLines { line in taken.withLock { $0.append(line) } }
        let logger = Logger(label: "test", factory: { StreamLogHandler(label: $0, stream: lines) })
        // As the SDK writes it when a session cannot be ended: AM's own number for it is the server's text.
        let number = "7\u{1B}]0;title\u{7}\u{9B}2J\u{202E}\r\nPassword of the vault: "
        let error = JourneyError(status: 400, body: ["detail": ["errorCode": .string(number)]])
        logger.warning("the session of the sign-in before was not ended", metadata: ["reason": "\(error)"])
        let written = taken.withLock { $0 }
        #expect(written.count == 1)
        let quoted = #"7\u{1B}]0;title\u{7}\u{9B}2J\u{202E}\u{D}\u{A}Password of the vault: "#
        #expect(written.first?.contains(quoted) == true, "\(written)")
        #expect(written.first?.contains("was not ended") == true)
    }

    @Test("Everything else of a line stays as it is")
    func plain() {
        let taken = Locked<[String]>([])
        let lines = LogLines { line in taken.withLock { $0.append(line) } }
        for line in ["a\tb \\ é\n", "without an end", "\n", ""] { lines.write(line) }
        #expect(taken.withLock { $0 } == ["a\tb \\ é", "without an end", "", ""])
    }
}
