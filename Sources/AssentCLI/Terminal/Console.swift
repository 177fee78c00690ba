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

    /// Whether something could not be written to standard output, for example because its disk is full.
    private let isIncomplete = Locked(false)

    init(json: Bool = false, silent: Bool = false) {
        self.json = json
        isSilent = silent
        let environment = ProcessInfo.processInfo.environment
        colours =
            isatty(STDOUT_FILENO) == 1 && environment["NO_COLOR"] == nil && environment["TERM"] != "dumb" && !json
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
        write(text + "\n", to: .standardError)
    }

    /// A line on the terminal that the next one takes the place of.
    func draw(_ text: String) {
        write("\r\u{1B}[K" + text, to: .standardError)
    }

    /// A result for a script.
    func emit(_ value: JSONValue) {
        write(value.serialized() + "\n", to: .standardOutput)
    }

    /// A reply's body, exactly as it is; on a terminal it also ends its last line, or the prompt would stand behind it.
    func raw(_ bytes: [UInt8]) {
        let text = Self.shown(bytes, onTerminal: isatty(STDOUT_FILENO) == 1)
        write(Data(text), to: .standardOutput)
    }

    /// A text as a QR code, for a camera that looks at the terminal; nothing where standard output is none.
    func draw(qrCodeOf text: String) {
        guard isatty(STDOUT_FILENO) == 1, let code = QRCode(text) else { return }
        for line in code.lines(colours: colours) { say(line) }
    }

    /// Ends the command with status 1 when its output is not complete: a script must not take a part for the whole.
    func finish() throws {
        guard isIncomplete.withLock({ $0 }) else { return }
        warn("The output is not complete: standard output could not be written. Is the disk full?")
        throw ExitCode(1)
    }

    static func shown(_ bytes: [UInt8], onTerminal: Bool) -> [UInt8] {
        guard onTerminal, let last = bytes.last, last != UInt8(ascii: "\n") else { return bytes }
        return bytes + [UInt8(ascii: "\n")]
    }

    private func write(_ text: String, to handle: FileHandle) { write(Data(text.utf8), to: handle) }

    private func write(_ data: Data, to handle: FileHandle) {
        if isSilent { return }
        do {
            try handle.write(contentsOf: data)
        } catch {
            if handle.fileDescriptor == STDOUT_FILENO { isIncomplete.withLock { $0 = true } }
        }
    }
}
