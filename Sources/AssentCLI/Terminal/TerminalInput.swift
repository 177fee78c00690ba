import Foundation

/// Reads lines with read(2): from standard input, or from the terminal itself where standard input is something else.
///
/// The C library's own lines are read ahead, so that nobody else gets them, and at the end of the input after a signal
/// they never end.
struct TerminalInput: Sendable {
    /// The most bytes of a line.
    static let limit = 65_536

    private let descriptor: Int32

    /// Standard input.
    init() { descriptor = STDIN_FILENO }

    /// An open file or pipe.
    init(descriptor: Int32) { self.descriptor = descriptor }

    /// The terminal of this process, for commands that read something else from standard input. Where there is none,
    /// nothing can be read.
    static func terminal() -> TerminalInput {
        TerminalInput(descriptor: open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY))
    }

    /// Whether somebody types there.
    var isTerminal: Bool { isatty(descriptor) == 1 }

    /// The next line without its end; `nil` when there is none any more.
    ///
    /// - Throws: ``CommandFailure`` when it is too long.
    func line() throws -> [UInt8]? {
        var line: [UInt8] = []
        while let byte = nextByte() {
            guard try Self.take(byte, into: &line) else { return line }
        }
        return line.isEmpty ? nil : line
    }

    /// The next line, which the terminal does not show while it is typed. On every way out, a signal's too, the
    /// terminal is as it was; after a stop and a continuation the question is asked again.
    ///
    /// - Parameter ask: shows the question.
    /// - Returns: the line without its end; `nil` at the end of the input.
    /// - Throws: ``CommandFailure`` when the line is too long.
    func hiddenLine(_ ask: () -> Void) throws -> [UInt8]? {
        var shown = termios()
        guard tcgetattr(descriptor, &shown) == 0 else {
            ask()
            return try line()
        }
        var hidden = shown
        hidden.c_lflag &= ~tcflag_t(ECHO)
        var signals = CaughtSignals()
        defer { signals.release() }
        // What was typed before anybody asked was shown, and is not the answer.
        tcsetattr(descriptor, TCSAFLUSH, &hidden)
        defer { tcsetattr(descriptor, TCSADRAIN, &shown) }
        ask()
        var line: [UInt8] = []
        defer { for index in line.indices { line[index] = 0 } }
        while true {
            switch signals.next(orInputOn: descriptor) {
            case .signal(let number):
                if number != SIGCONT {
                    // Not half of a secret for the program that reads the terminal next.
                    tcsetattr(descriptor, TCSAFLUSH, &shown)
                    TerminalInput.show("\n")
                    signals.deliver(number)
                }
                tcsetattr(descriptor, TCSAFLUSH, &hidden)
                ask()
                line = []
            case .input:
                switch readByte() {
                case .byte(let byte):
                    guard try Self.take(byte, into: &line) else { return line }
                case .again: break
                case .end: return line.isEmpty ? nil : line
                }
            }
        }
    }

    /// Waits for a line, the end of the input, or a signal that would end the process: who waits has something to end
    /// first. Such a signal has no other effect; the next one ends the process.
    ///
    /// - Parameter ask: says what is waited for, when signals are caught.
    func lineOrSignal(_ ask: () -> Void) {
        var signals = CaughtSignals()
        defer { signals.release() }
        // An Enter too many behind the answer before would end what the person is to see.
        discardTyped()
        ask()
        while true {
            switch signals.next(orInputOn: descriptor) {
            case .signal(let number):
                if number == SIGTSTP { signals.deliver(number) } else if number != SIGCONT { return }
            case .input:
                switch readByte() {
                case .byte(let byte): if byte == UInt8(ascii: "\n") { return }
                case .again: break
                case .end: return
                }
            }
        }
    }

    /// Throws away what was typed before anybody asked. What a pipe or a file has stays.
    func discardTyped() { _ = tcflush(descriptor, TCIFLUSH) }

    /// Shows text to the person at the terminal, also where standard error leads elsewhere.
    static func show(_ text: String) {
        let terminal = isatty(STDERR_FILENO) == 1 ? nil : FileHandle(forWritingAtPath: "/dev/tty")
        try? (terminal ?? .standardError).write(contentsOf: Data(text.utf8))
    }

    private enum Reading {
        case byte(UInt8)
        case again
        case end
    }

    private func readByte() -> Reading {
        var byte: UInt8 = 0
        switch read(descriptor, &byte, 1) {
        case 1: return .byte(byte)
        case -1 where errno == EINTR || errno == EAGAIN: return .again
        default: return .end
        }
    }

    private func nextByte() -> UInt8? {
        while true {
            switch readByte() {
            case .byte(let byte): return byte
            case .end: return nil
            case .again:
                var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                _ = poll(&waiting, 1, -1)
            }
        }
    }

    /// Appends a byte; `false` when it ends the line.
    private static func take(_ byte: UInt8, into line: inout [UInt8]) throws -> Bool {
        if byte == UInt8(ascii: "\n") {
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
            return false
        }
        guard line.count < limit else { throw CommandFailure("A line of the input has more than \(limit) bytes.") }
        line.append(byte)
        return true
    }
}
