/// What a shell makes of a line, as far as the pages use it: quotes, remarks, several commands in a row or joined by
/// pipes, and files that output goes to. A placeholder such as `<kid>` is a word.
package struct ShellLine: Sendable {
    /// The commands, each as its words. Where output goes to is left out.
    package private(set) var commands: [[String]] = []

    /// The line without a remark behind it.
    package private(set) var text = ""

    /// Whether the next line belongs to it.
    package private(set) var goesOn = false

    private var words: [String] = []
    private var word: String?
    private var namesFile = false

    /// Reads a line, or several of which each but the last goes on.
    package init(_ line: String) {
        var quote: Character?
        var isEscaped = false
        for character in line {
            if character == "#", quote == nil, word == nil, !isEscaped { break }
            text.append(character)
            if isEscaped {
                isEscaped = false
                if character == "\n" { endWord() } else { append(character) }
            } else if let open = quote {
                if character == open { quote = nil } else { append(character) }
            } else {
                switch character {
                case "'", "\"":
                    quote = character
                    word = word ?? ""
                case "\\": isEscaped = true
                default: take(character)
                }
            }
        }
        goesOn = quote != nil || isEscaped
        endCommand()
        while let last = text.last, last.isWhitespace { text.removeLast() }
    }

    /// Takes a character that is neither quoted nor escaped.
    private mutating func take(_ character: Character) {
        switch character {
        case " ", "\t", "\n": endWord()
        case "|", ";", "&", "(", ")": endCommand()
        case ">" where word?.hasPrefix("<") != true:
            // `2>` names what is led elsewhere.
            if word == "2" { word = nil } else { endWord() }
            namesFile = true
        default: append(character)
        }
    }

    private mutating func append(_ character: Character) { word = (word ?? "") + String(character) }

    private mutating func endWord() {
        guard let ended = word else { return }
        if namesFile { namesFile = false } else { words.append(ended) }
        word = nil
    }

    private mutating func endCommand() {
        endWord()
        if !words.isEmpty { commands.append(words) }
        (words, namesFile) = ([], false)
    }
}
