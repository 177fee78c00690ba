/// A text that may be shown to a user as part of what is being approved.
///
/// What a screen or a terminal would not show as it stands (control and escape characters, characters that reorder or
/// hide others, invisible and unassigned ones) is refused, not filtered: the user must see exactly what is executed.
/// Emoji that are built with joiners or variation selectors are refused by the same rule.
///
/// This does not tell look-alike letters of different scripts apart.
public struct DisplayText: Hashable, Sendable, CustomStringConvertible {
    /// The longest text in Unicode scalars, unless the caller sets another limit.
    public static let defaultLimit = 256

    /// The text.
    public let text: String

    /// The text.
    public var description: String { text }

    /// Takes `text` if it may be shown, of at most `limit` Unicode scalars; an empty one may.
    ///
    /// - Throws: ``DisplayTextError``.
    public init(_ text: String, limit: Int = DisplayText.defaultLimit) throws(DisplayTextError) {
        var marks = 0
        var position = 0
        for scalar in text.unicodeScalars {
            guard position < limit else { throw .tooLong(limit: limit) }
            guard scalar.mayBeShown else { throw .character(position: position, code: scalar.value) }
            if scalar.isCombining {
                marks += 1
                guard position > 0, marks <= Self.markLimit else {
                    throw .character(position: position, code: scalar.value)
                }
            } else {
                marks = 0
            }
            position += 1
        }
        self.text = text
    }

    /// Combining marks in a row; more would run over the lines above and below.
    private static let markLimit = 3

    /// The text for a terminal. See ``escapedForTerminal(_:)``.
    public var escapedForTerminal: String { Self.escapedForTerminal(text) }

    /// The text for an HTML element's or attribute's content. See ``escapedForHTML(_:)``.
    public var escapedForHTML: String { Self.escapedForHTML(text) }

    /// Any text in a form that is safe to print on a terminal: what may not be shown becomes visible, as `\u{1B}`, and
    /// backslashes are doubled, so that the result is unambiguous.
    public static func escapedForTerminal(_ text: some StringProtocol) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            if scalar == "\\" {
                escaped += "\\\\"
            } else {
                append(scalar, to: &escaped)
            }
        }
        return escaped
    }

    /// Any text in a form that is safe between HTML tags and in quoted attributes: `& < > " '` become character
    /// references, and what may not be shown becomes visible, as `\u{202E}`.
    public static func escapedForHTML(_ text: some StringProtocol) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            default: append(scalar, to: &escaped)
            }
        }
        return escaped
    }

    /// Lines of somebody else for a terminal, as they are but for what it would act upon, and what changes the order in
    /// which the rest is read: that becomes visible, as `\u{1B}`. Line breaks and tabs stay.
    package static func linesForTerminal(_ text: String) -> String {
        var lines = ""
        var rest = text.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            let endsLine = scalar == "\n" || (scalar == "\r" && rest.first == "\n")
            if endsLine || scalar == "\t" || !scalar.actsOnTerminal {
                lines.unicodeScalars.append(scalar)
            } else {
                lines += visible(scalar)
            }
        }
        return lines
    }

    /// One line of somebody else for a terminal, as it is but for line breaks, what a terminal would act upon, and what
    /// changes the order in which the rest is read: that becomes visible, as `\u{A}`. Tabs stay.
    package static func lineForTerminal(_ text: String) -> String {
        var line = ""
        for scalar in text.unicodeScalars {
            if scalar == "\t" || !scalar.actsOnTerminal {
                line.unicodeScalars.append(scalar)
            } else {
                line += visible(scalar)
            }
        }
        return line
    }

    /// A JSON text of one line for scripts and for a terminal: what may not be shown is escaped, as `\u202E`. Every
    /// reader reads the same.
    package static func escapedJSON(_ json: String) -> String {
        var escaped = ""
        for scalar in json.unicodeScalars {
            if scalar.mayBeShown {
                escaped.unicodeScalars.append(scalar)
                continue
            }
            for unit in scalar.utf16 {
                let digits = String(unit, radix: 16, uppercase: true)
                escaped += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
        }
        return escaped
    }

    private static func append(_ scalar: Unicode.Scalar, to text: inout String) {
        if scalar.mayBeShown {
            text.unicodeScalars.append(scalar)
        } else {
            text += visible(scalar)
        }
    }

    private static func visible(_ scalar: Unicode.Scalar) -> String {
        "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
    }
}

/// Why a text may not be shown as part of what is approved. Errors are equal when their codes are.
public struct DisplayTextError: AssentError {
    /// What went wrong, as a stable name.
    public let code: Code

    /// What is wrong. A character is named by its number only.
    public let detail: String

    /// Where the character stands, counted in Unicode scalars; `nil` when the text is too long.
    public let position: Int?

    /// What to do about it.
    public let suggestion: String? = "Approve nothing that cannot be shown as it stands."

    private init(_ code: Code, _ detail: String, position: Int? = nil) {
        self.code = code
        self.detail = detail
        self.position = position
    }

    /// A stable name of a reason; more may be added.
    public struct Code: ErrorCode {
        /// The name.
        public let rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// It has more Unicode scalars than allowed.
        public static let tooLong = Code("tooLong")
        /// A character would not be shown as it stands.
        public static let character = Code("character")
    }

    /// The text has more Unicode scalars than `limit`.
    package static func tooLong(limit: Int) -> DisplayTextError {
        DisplayTextError(.tooLong, "A text to be shown has more than \(limit) characters.")
    }

    /// The character with this number stands at this position.
    package static func character(position: Int, code: UInt32) -> DisplayTextError {
        let name = "U+\(String(code, radix: 16, uppercase: true))"
        return DisplayTextError(
            .character, "A text to be shown has the character \(name) at position \(position).", position: position)
    }
}

extension Unicode.Scalar {
    fileprivate var isCombining: Bool {
        switch properties.generalCategory {
        case .nonspacingMark, .enclosingMark: true
        default: false
        }
    }

    /// Whether a terminal does something for it, or shows what is beside it in another order.
    fileprivate var actsOnTerminal: Bool {
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        default: properties.isBidiControl
        }
    }

    fileprivate var mayBeShown: Bool {
        switch properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: return false
        default: break
        }
        return !properties.isDefaultIgnorableCodePoint && !properties.isBidiControl && !isInvisible && !isOverlay
    }

    /// Whether nothing, or next to nothing, is to be seen of it though it counts as a letter, a symbol or a space: the
    /// blank Braille pattern, the musical note without a head, the blanks between hieroglyphs, what stands for an
    /// object, and spaces of other widths than those with which people write numbers and texts.
    private var isInvisible: Bool {
        switch value {
        case 0x2800, 0x1D159, 0x13441, 0x13442, 0xFFFC, 0x1680, 0x2000...0x200A, 0x205F: true
        default: false
        }
    }

    /// Whether it strikes out, or surrounds, the character before it: an amount could be shown as if it did not count.
    private var isOverlay: Bool {
        properties.canonicalCombiningClass == .overlay || properties.generalCategory == .enclosingMark
    }
}
