import ArgumentParser
import AssentCore
import Foundation

/// Where the command line speaks: text for people, JSON for scripts.
struct Console: Sendable {
    /// What a piece of text is, for its colour.
    enum Style: String, Sendable {
        case bold = "1"
        case dim = "2"
        case red = "31"
        case green = "32"
        case yellow = "33"
        case cyan = "36"
    }

    /// Whether results are JSON on standard output and nothing else is there.
    let json: Bool

    /// Whether standard output understands colours.
    let colours: Bool

    /// Whether nothing at all is written.
    private let isSilent: Bool

    /// Where warnings go instead of standard error: in a server, which waits for nobody who reads them.
    private let warnings: LogStream?

    /// Why something could not be written to standard output (`errno`); 0 when everything could.
    private let failure = Locked<Int32>(0)

    /// What a shell reports of a program that SIGPIPE has ended: 128 and the signal's number.
    private static let closedPipe: Int32 = 141

    init(json: Bool = false, silent: Bool = false, warnings: LogStream? = nil) {
        self.json = json
        self.warnings = warnings
        isSilent = silent
        colours = isatty(STDOUT_FILENO) == 1 && Self.wantsColours(ProcessInfo.processInfo.environment) && !json
    }

    /// Whether a terminal with this environment is shown colours. An empty `NO_COLOR` has no effect (no-color.org).
    static func wantsColours(_ environment: [String: String]) -> Bool {
        environment["NO_COLOR", default: ""].isEmpty && environment["TERM"] != "dumb"
    }

    /// `text` in a style, if colours are understood.
    func styled(_ text: String, _ style: Style) -> String {
        colours ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
    }

    /// A line for a person. In JSON mode it goes to standard error, so that standard output stays JSON.
    func say(_ text: String = "") {
        write(text + "\n", to: json ? .standardError : .standardOutput)
    }

    /// A line about what went wrong or needs attention.
    func warn(_ text: String) {
        if let warnings, !isSilent { return warnings.write(text + "\n") }
        write(text + "\n", to: .standardError)
    }

    /// A line on the terminal that the next one takes the place of.
    func draw(_ text: String) {
        write("\r\u{1B}[K" + text, to: .standardError)
    }

    /// A result for a script. A person may look at it, and others have written parts of it: no terminal acts upon it.
    func emit(_ value: JSONValue) {
        write(DisplayText.escapedJSON(value.serialized()) + "\n", to: .standardOutput)
    }

    /// Writes the result of a command: as JSON for a script, or as a line for a person.
    func report(_ result: @autoclosure () -> JSONValue, _ line: @autoclosure () -> String) {
        if json { emit(result()) } else { say(line()) }
    }

    /// A reply's body, exactly as it is. On a terminal, what the terminal would act upon becomes visible, since a
    /// service may write what looks like this program's questions; and the last line is ended, or the prompt would
    /// stand behind it.
    func raw(_ bytes: [UInt8]) {
        let text = Self.shown(bytes, onTerminal: isatty(STDOUT_FILENO) == 1)
        write(Data(text), to: .standardOutput)
    }

    /// Draws a text as a QR code, for a camera that looks at the terminal. If standard output is not a terminal, it
    /// draws nothing. If the terminal is too narrow, it says so instead: a camera cannot read a code whose lines wrap.
    func draw(qrCodeOf text: String) {
        guard isatty(STDOUT_FILENO) == 1, let code = QRCode(text) else { return }
        if let columns = Self.columns, columns < code.columns {
            return say("The QR code is left out: it needs \(code.columns) columns, and this terminal has \(columns).")
        }
        for line in code.lines(colours: colours) { say(line) }
    }

    /// How wide the terminal is; `nil` where it does not say so.
    private static var columns: Int? {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
        return Int(size.ws_col)
    }

    /// Says to a person that a list has nothing in it. A script sees that by itself.
    func tellEmptyList() {
        if isatty(STDOUT_FILENO) == 1 { warn("There is nothing to list.") }
    }

    /// Ends the command with status 1 when its output is not complete: a script must not take a part for the whole.
    /// Where the reader has enough, as `head` does, it ends without a word, as other programs do.
    func finish() throws {
        switch failure.withLock({ $0 }) {
        case 0: return
        case EPIPE: throw ExitCode(Self.closedPipe)
        case let number:
            let advice = number == ENOSPC || number == EDQUOT ? " Free some space and run the command again." : ""
            warn(
                "The output is not complete: standard output could not be written: \(String(cString: strerror(number)))."
                    + advice)
            throw ExitCode(1)
        }
    }

    static func shown(_ bytes: [UInt8], onTerminal: Bool) -> [UInt8] {
        guard onTerminal, let last = bytes.last else { return bytes }
        let lines = Array(DisplayText.linesForTerminal(String(decoding: bytes, as: UTF8.self)).utf8)
        return last == UInt8(ascii: "\n") ? lines : lines + [UInt8(ascii: "\n")]
    }

    private func write(_ text: String, to handle: FileHandle) { write(Data(text.utf8), to: handle) }

    private func write(_ data: Data, to handle: FileHandle) {
        if isSilent { return }
        let number = Self.write(data, to: handle.fileDescriptor)
        if number != 0, handle.fileDescriptor == STDOUT_FILENO { failure.withLock { $0 = number } }
    }

    /// Writes everything. Foundation's file handle says that it failed, not why.
    ///
    /// - Returns: 0, or why it failed (`errno`).
    private static func write(_ data: Data, to descriptor: Int32) -> Int32 {
        var rest = Array(data)[...]
        while !rest.isEmpty {
            let written = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if written >= 0 {
                rest = rest.dropFirst(written)
            } else if errno == EAGAIN {
                // Another program has made the terminal or the pipe one that does not wait.
                var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&waiting, 1, -1)
            } else if errno != EINTR {
                return errno
            }
        }
        return 0
    }
}
