import AssentCore
import Foundation

/// Asks a person at the terminal. The questions go to the terminal itself, so that they work with redirected output.
struct Prompt: Sendable {
    /// There is nobody to ask.
    struct NoTerminal: Error, CustomStringConvertible {
        let question: String
        var description: String { "\(question) must be answered, and there is no terminal to ask at" }
    }

    /// Asks for a line of text.
    func line(_ question: String) throws -> String {
        try ask(question, hidden: false)
    }

    /// Asks for a secret without showing it.
    func secret(_ question: String) throws -> Secret {
        Secret(try ask(question, hidden: true))
    }

    /// Asks for one of several answers, by number; returns its index.
    func choice(_ question: String, _ options: [String], default preset: Int?) throws -> Int {
        guard !options.isEmpty else { throw NoTerminal(question: question) }
        let list = options.enumerated().map { "  \($0 + 1)) \($1)" }.joined(separator: "\n")
        for _ in 0..<5 {
            let hint = preset.map { " [\($0 + 1)]" } ?? ""
            let answer = try line("\(question)\n\(list)\nNumber\(hint)").trimmingCharacters(in: .whitespaces)
            if answer.isEmpty, let preset { return preset }
            if let number = Int(answer), (1...options.count).contains(number) { return number - 1 }
            if let index = options.firstIndex(where: { $0.caseInsensitiveCompare(answer) == .orderedSame }) {
                return index
            }
        }
        throw NoTerminal(question: question)
    }

    private func ask(_ question: String, hidden: Bool) throws -> String {
        if isatty(STDIN_FILENO) == 1 {
            try? FileHandle.standardError.write(contentsOf: Data((question + ": ").utf8))
        }
        var saved = termios()
        let silenced = hidden && tcgetattr(STDIN_FILENO, &saved) == 0
        if silenced {
            var quiet = saved
            quiet.c_lflag &= ~tcflag_t(ECHO)
            tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet)
        }
        defer {
            if silenced {
                tcsetattr(STDIN_FILENO, TCSAFLUSH, &saved)
                try? FileHandle.standardError.write(contentsOf: Data("\n".utf8))
            }
        }
        guard let answer = readLine(strippingNewline: true) else { throw NoTerminal(question: question) }
        return answer
    }
}
