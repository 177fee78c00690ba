import AssentCore

/// A word of a command that a person is told to type. Some are chosen by a server, and most people copy the line.
enum ShellWord {
    private static let plainSigns = Set("-_.:/+@%,".utf8)

    /// `text` as one word of a POSIX shell, which runs nothing that is in it: between quotation marks, unless it has
    /// only letters, digits and signs that mean nothing there.
    static func quoted(_ text: String) -> String {
        let isPlain = !text.isEmpty && text.utf8.allSatisfy { $0.isASCIIAlphanumeric || plainSigns.contains($0) }
        // Without a backslash: where the line is shown, each is written twice.
        return isPlain ? text : "'" + text.replacing("'", with: "'\"'\"'") + "'"
    }
}
