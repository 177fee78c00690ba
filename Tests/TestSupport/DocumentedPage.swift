import Foundation

/// A page of the documentation, as tests read it: what it has for people to type, and to put into files.
package struct DocumentedPage: Sendable {
    /// What stands between two fences.
    package struct Block: Sendable {
        /// The line of its first fence, from 1.
        package let line: Int

        /// The word behind its first fence, for example `console`; empty without one.
        package let language: String

        /// The heading that it stands under, without its signs.
        package let heading: String

        /// Its text, without the indentation that all of its lines have.
        package let text: String

        /// What is typed in it, without remarks, each command as one text. Lines that a program prints are left out.
        package var commands: [String] {
            var commands: [String] = []
            var open: String?
            for line in text.components(separatedBy: "\n") {
                guard open != nil || line.hasPrefix("$ ") else { continue }
                let command = open.map { "\($0)\n\(line)" } ?? String(line.dropFirst(2))
                let read = ShellLine(command)
                open = read.goesOn ? command : nil
                if !read.goesOn { commands.append(read.text) }
            }
            return commands
        }

        /// What a program prints in it.
        package var output: String {
            var isOpen = false
            var command = ""
            let lines = text.components(separatedBy: "\n").filter { line in
                guard isOpen || line.hasPrefix("$ ") else { return true }
                command = isOpen ? "\(command)\n\(line)" : line
                isOpen = ShellLine(command).goesOn
                return false
            }
            return lines.joined(separator: "\n")
        }
    }

    /// The package's own directory.
    package static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().path

    /// Where it is, from the package's own directory.
    package let path: String

    /// All of it.
    package let text: String

    /// Its blocks, in their order.
    package let blocks: [Block]

    /// It without its blocks.
    package let prose: String

    /// The page at a path in the package's own directory.
    ///
    /// - Throws: what the file system says.
    package init(_ path: String) throws {
        self.path = path
        text = try String(contentsOfFile: Self.root + "/" + path, encoding: .utf8)
        (blocks, prose) = Self.read(text)
    }

    /// All pages but the list of changes, by their paths.
    ///
    /// - Throws: what the file system says.
    package static func all() throws -> [DocumentedPage] {
        var paths = ["README.md", "CONTRIBUTING.md", "SECURITY.md"]
        for directory in ["docs", "Examples", "Sources"] {
            let found = try FileManager.default.subpathsOfDirectory(atPath: root + "/" + directory)
            paths += found.filter { $0.hasSuffix(".md") }.map { "\(directory)/\($0)" }
        }
        return try paths.sorted().map { try DocumentedPage($0) }
    }

    /// The blocks of a language under a heading.
    package func blocks(_ language: String, under heading: String) -> [Block] {
        blocks.filter { $0.language == language && $0.heading == heading }
    }

    /// What sentences under a heading name as code, up to the next heading of whatever level.
    package func names(under heading: String) -> [String] {
        var isInside = false
        let lines = prose.components(separatedBy: "\n").filter { line in
            guard let title = Self.title(line) else { return isInside }
            isInside = title == heading
            return false
        }
        return lines.joined(separator: "\n").matches(of: /`([^`]+)`/).map { String($0.output.1) }
    }

    private static func title(_ line: String) -> String? {
        guard line.hasPrefix("#") else { return nil }
        return line.drop { $0 == "#" }.trimmingCharacters(in: .whitespaces)
    }

    private static func read(_ text: String) -> (blocks: [Block], prose: String) {
        var blocks: [Block] = []
        var prose: [String] = []
        var heading = ""
        var open: (line: Int, language: String, lines: [String])?
        for (number, line) in text.components(separatedBy: "\n").enumerated() {
            let content = line.trimmingCharacters(in: .whitespaces)
            if content.hasPrefix("```") {
                if let block = open {
                    blocks.append(
                        Block(
                            line: block.line, language: block.language, heading: heading, text: dedented(block.lines)))
                    open = nil
                } else {
                    open = (number + 1, String(content.dropFirst(3)), [])
                }
            } else if open != nil {
                open?.lines.append(line)
            } else {
                heading = title(line) ?? heading
                prose.append(line)
            }
        }
        return (blocks, prose.joined(separator: "\n"))
    }

    private static func dedented(_ lines: [String]) -> String {
        let indents = lines.filter { !$0.isEmpty }.map { line in line.prefix { $0 == " " }.count }
        let indent = indents.min() ?? 0
        return lines.map { String($0.dropFirst(indent)) }.joined(separator: "\n")
    }
}
