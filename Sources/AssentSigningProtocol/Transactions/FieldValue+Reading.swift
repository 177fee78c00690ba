import AssentCore

/// What a server refuses when it makes a document, though devices take it: values that people read wrongly.
extension FieldValue {
    /// Checks that a person reads the value in one way.
    ///
    /// - Throws: ``SigningProtocolError`` with `invalidMember`.
    package func checkReading(at place: String) throws(SigningProtocolError) {
        switch self {
        case .text(let text), .party(let text), .otherAccount(let text): try Self.checkBlanks(text, at: place)
        case .iban(let iban):
            guard Self.hasRightCheckDigits(iban) else { throw .invalid(place, "is not an IBAN: a digit is wrong") }
        case .date(let date):
            guard Self.isInCalendar(date) else { throw .invalid(place, "is not a day of the calendar") }
        case .list(let texts):
            for text in texts {
                try Self.checkBlanks(text, at: place)
                guard !Self.readsAsSeveral(text) else {
                    throw .invalid(place, "has a text with a comma and a blank, which looks like two texts")
                }
            }
        case .amount, .maxAmount: break
        }
    }

    private static func checkBlanks(_ text: String, at place: String) throws(SigningProtocolError) {
        guard !DisplayText.isBlankOrSpread(text) else {
            throw .invalid(place, "has nothing but blanks, or more than three in a row")
        }
    }

    /// A comma, and what fonts draw like one or people read as one.
    private static let commas: Set<Unicode.Scalar> = [
        ",", "\u{B8}", "\u{60C}", "\u{66B}", "\u{201A}", "\u{3001}", "\u{A4F9}", "\u{FE50}", "\u{FF0C}", "\u{FF64}",
    ]

    /// Whether a text of a list reads as two, or as a part of its neighbour: a comma and a blank are shown between
    /// them. Blanks of other widths look like that one, and with an accent on it a comma is still read as a comma.
    private static func readsAsSeveral(_ text: String) -> Bool {
        let scalars = text.unicodeScalars.filter { $0.properties.generalCategory != .nonspacingMark }
        func isBlank(_ scalar: Unicode.Scalar) -> Bool { scalar.properties.isWhitespace }
        return scalars.first.map(isBlank) ?? false || scalars.last.map(commas.contains) ?? false
            || zip(scalars, scalars.dropFirst()).contains { commas.contains($0) && isBlank($1) }
    }

    /// ISO 13616: the first four characters behind the others, letters as 10 to 35, modulo 97 is 1.
    private static func hasRightCheckDigits(_ iban: String) -> Bool {
        let bytes = Array(iban.utf8)
        guard bytes.count >= 5, bytes.prefix(2).allSatisfy(\.isASCIILetter), bytes[2...3].allSatisfy(\.isASCIIDigit)
        else {
            return false
        }
        let remainder = (bytes[4...] + bytes[..<4]).reduce(0) { remainder, byte in
            byte.isASCIIDigit
                ? (remainder * 10 + Int(byte - UInt8(ascii: "0"))) % 97
                : (remainder * 100 + Int(byte - UInt8(ascii: "A")) + 10) % 97
        }
        return remainder == 1
    }

    private static func isInCalendar(_ date: String) -> Bool {
        let numbers = date.split(separator: "-").compactMap { Int($0) }
        guard numbers.count == 3 else { return false }
        let (year, month, day) = (numbers[0], numbers[1], numbers[2])
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let days =
            switch month {
            case 2: isLeap ? 29 : 28
            case 4, 6, 9, 11: 30
            case 1...12: 31
            default: 0
            }
        return day >= 1 && day <= days
    }
}
