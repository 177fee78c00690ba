import AssentCore
import Foundation

/// Asks a person at the terminal. The questions go to the terminal itself, so that they work with redirected output.
struct Prompt: Sendable {
    /// There is nobody to ask, or nobody answers.
    struct NoTerminal: Error, CustomStringConvertible {
        let question: String

        /// Whether there is a terminal, at which somebody ended the input.
        var isTerminal = false

        var description: String {
            // Of a choice, the question without its list.
            let first = question.prefix { $0 != "\n" }
            return isTerminal
                ? "The question \"\(first)\" was not answered."
                : "The question \"\(first)\" must be answered. There is no terminal to ask at, and standard input "
                    + "has no more lines."
        }
    }

    /// Where the answers come from.
    var input = TerminalInput()

    /// Asks for a line of text.
    func line(_ question: String) throws -> String {
        String(decoding: try ask(question, hidden: false), as: UTF8.self)
    }

    /// Asks for a secret without showing it.
    func secret(_ question: String) throws -> Secret {
        Secret(bytes: try ask(question, hidden: true))
    }

    /// Asks for one of several answers, by number; returns its index.
    func choice(_ question: String, _ options: [String], default preset: Int?) throws -> Int {
        guard !options.isEmpty else { throw CommandFailure("The server asks \"\(question)\" and offers no answer.") }
        let list = options.enumerated().map { "  \($0 + 1)) \($1)" }.joined(separator: "\n")
        for _ in 0..<5 {
            let hint = preset.map { " [\($0 + 1)]" } ?? ""
            let answer = try line("\(question)\n\(list)\nWhich one\(hint)").trimmingCharacters(in: .whitespaces)
            if answer.isEmpty, let preset { return preset }
            if let number = Int(answer), (1...options.count).contains(number) { return number - 1 }
            if let index = options.firstIndex(where: { $0.caseInsensitiveCompare(answer) == .orderedSame }) {
                return index
            }
            TerminalInput.show("Enter a number from 1 to \(options.count).\n")
        }
        throw CommandFailure("The question \"\(question)\" was not answered with one of its choices.")
    }

    private func ask(_ question: String, hidden: Bool) throws -> [UInt8] {
        let show = { if input.isTerminal { TerminalInput.show(question + ": ") } }
        var answer: [UInt8]?
        if hidden {
            answer = try input.hiddenLine(show)
            if input.isTerminal { TerminalInput.show("\n") }
        } else {
            show()
            answer = try input.line()
        }
        guard let answer else { throw NoTerminal(question: question, isTerminal: input.isTerminal) }
        return answer
    }
}
