/// What a process that works on a store of secrets said that it did: a line `begin NAME VALUE` before each change (`-`
/// for none, the name `*` for all), and `ack` after it.
package struct StoreAccount {
    /// What was acknowledged.
    package var secrets: [String: String] = [:]
    /// The change that was begun and not acknowledged.
    package var begun: (name: String, value: String?)?
    package var acknowledgements = 0

    package init() {}

    package mutating func read(_ line: String) {
        let words = line.split(separator: " ").map(String.init)
        switch words.first {
        case "begin" where words.count == 3: begun = (words[1], words[2] == "-" ? nil : words[2])
        case "ack":
            secrets = afterBegun
            begun = nil
            acknowledgements += 1
        default: break
        }
    }

    package var afterBegun: [String: String] {
        guard let begun else { return secrets }
        if begun.name == "*" { return [:] }
        var secrets = secrets
        secrets[begun.name] = begun.value
        return secrets
    }
}
