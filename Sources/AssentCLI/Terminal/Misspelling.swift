import ArgumentParser
import AssentCore

/// Finds the command that somebody meant who typed the name of none.
enum Misspelling {
    /// What to say about arguments whose command does not exist; `nil` when it exists, or when nothing like it does.
    ///
    /// - Parameters:
    ///   - arguments: what was typed after the program's name.
    ///   - command: the command that they belong to.
    /// - Returns: which command may have been meant.
    static func words(about arguments: [String], in command: any ParsableCommand.Type) -> String? {
        var command = command
        var path = [command._commandName]
        for argument in arguments {
            let subcommands = command.configuration.subcommands
            guard !subcommands.isEmpty, !argument.hasPrefix("-"), argument != "help" else { return nil }
            if let found = subcommands.first(where: { $0._commandName == argument }) {
                command = found
                path.append(argument)
                continue
            }
            let near = subcommands.map { (name: $0._commandName, distance: distance($0._commandName, argument)) }
                .filter { $0.distance <= max(1, argument.count / 3) }.min { $0.distance < $1.distance }
            let typed = "\(path.joined(separator: " ")) \(argument)"
            return near.map {
                "There is no command '\(DisplayText.escapedForTerminal(typed))'. Did you mean "
                    + "'\((path + [$0.name]).joined(separator: " "))'?"
            }
        }
        return nil
    }

    /// How many letters have to be added, left out, exchanged for another or for their neighbour.
    static func distance(_ one: String, _ other: String) -> Int {
        let (a, b) = (Array(one), Array(other))
        var rows = [Array(0...b.count)]
        for i in 1...max(a.count, 1) where !a.isEmpty {
            var row = [i]
            for j in 1...max(b.count, 1) where !b.isEmpty {
                var best = min(rows[i - 1][j] + 1, row[j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1))
                if i > 1, j > 1, a[i - 1] == b[j - 2], a[i - 2] == b[j - 1] { best = min(best, rows[i - 2][j - 2] + 1) }
                row.append(best)
            }
            rows.append(row)
        }
        return rows[a.count][b.count]
    }
}
