import AssentCore

/// A piece of an HTML document. Text that is interpolated is escaped, always; only another piece goes in as it is.
struct HTML: ExpressibleByStringInterpolation, CustomStringConvertible {
    private(set) var description: String

    init(stringLiteral value: String) { description = value }

    init(stringInterpolation: StringInterpolation) { description = stringInterpolation.text }

    /// An address, whose lines break between its parts and not inside a word.
    init(breaking address: String) {
        var pieces: [HTML] = []
        var rest = address[...]
        while let end = rest.firstIndex(where: { [".", "/", "?", "&"].contains($0) }) {
            let next = rest.index(after: end)
            // Not between the slashes after a scheme.
            let isLast = next == rest.endIndex || rest[next] == "/"
            pieces.append("\(rest[..<next])\(isLast ? nil : "<wbr>" as HTML)")
            rest = rest[next...]
        }
        self = "\(pieces)\(rest)"
    }

    /// Takes the literal parts as markup and everything else as text.
    struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var text = ""

        init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity * 2) }

        mutating func appendLiteral(_ literal: String) { text += literal }

        /// Text to be seen: characters that would not show, or would reorder others, become visible.
        mutating func appendInterpolation(_ shown: some StringProtocol) { text += DisplayText.escapedForHTML(shown) }

        mutating func appendInterpolation(_ number: Int) { text += String(number) }

        /// The value of an attribute that is read by programs: exactly that value, quoted.
        mutating func appendInterpolation(exact value: String) {
            for scalar in value.unicodeScalars {
                switch scalar {
                case "&": text += "&amp;"
                case "<": text += "&lt;"
                case ">": text += "&gt;"
                case "\"": text += "&quot;"
                case "'": text += "&#39;"
                case "\n", "\r", "\t": text += "&#\(scalar.value);"
                default: text.unicodeScalars.append(scalar)
                }
            }
        }

        mutating func appendInterpolation(_ piece: HTML) { text += piece.description }

        mutating func appendInterpolation(_ pieces: [HTML]) { for piece in pieces { text += piece.description } }

        /// A piece that is only there when it is not `nil`.
        mutating func appendInterpolation(_ piece: HTML?) { text += piece?.description ?? "" }
    }
}
