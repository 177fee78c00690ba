package import AssentCore

/// JSON that is approved. The user sees what this server reads, and the service does what its own parser reads: only a
/// body in which all parsers see the same is taken.
///
/// RFC 8259 leaves much to parsers. What they agree on is I-JSON (RFC 7493): names once, proper text, numbers that fit
/// a double. Beyond it stand here what programs are known to take for the same name, and U+0000, at which those in C
/// cut.
package enum BoundJSON {
    /// Reads a body.
    ///
    /// - Throws: ``EngineError`` `tooLarge`, and `invalidRequest` with the reason.
    package static func parse(
        _ bytes: [UInt8], limits: JSONLimits = JSONLimits()
    ) throws(EngineError) -> JSONValue {
        let value: JSONValue
        do {
            // Names that some program, or a person who reads them, takes for one are one name too.
            value = try JSONValue.parse(bytes, limits: limits, duplicates: .rejectAlike)
        } catch let error where error.code == .tooLarge {
            throw tooLarge
        } catch {
            throw refusal(error.detail)
        }
        try check(value)
        return value
    }

    private static func check(_ value: JSONValue) throws(EngineError) {
        switch value {
        case .object(let object):
            for member in object.members {
                guard !member.name.unicodeScalars.contains(where: isControl) else {
                    throw refusal("A member's name has a control character.")
                }
                try check(member.value)
            }
        case .array(let elements): for element in elements { try check(element) }
        case .string(let text):
            guard !text.utf8.contains(0) else { throw refusal("A string has the character U+0000.") }
        case .number(let number):
            // So many digits every program gets back out of a double.
            guard let written = Decimal(number.description), written.digits.count <= 15,
                written == Decimal("\(number.double)")
            else {
                throw refusal("A number is too large, or has more than 15 digits: send it as a string.")
            }
        case .bool, .null: break
        }
    }

    static let tooLarge = EngineError(.tooLarge, "The request's body is too large to be approved.")

    static func isControl(_ scalar: Unicode.Scalar) -> Bool { scalar.properties.generalCategory == .control }

    private static func refusal(_ detail: String) -> EngineError {
        .invalidRequest("The request's body cannot be shown for approval. \(detail)")
    }

    /// What a number's text says, however it is written.
    private struct Decimal: Equatable {
        private let isNegative: Bool
        /// Without zeros at its ends.
        let digits: [UInt8]
        private let exponent: Int

        /// `nil` for what is not a number, and for an exponent that nobody means.
        init?(_ text: String) {
            var digits: [UInt8] = []
            var exponent = 0
            var isFraction = false
            var rest = Array(text.utf8)[...]
            let hasSign = rest.first == UInt8(ascii: "-")
            if hasSign { rest = rest.dropFirst() }
            while let byte = rest.first {
                rest = rest.dropFirst()
                switch byte {
                case UInt8(ascii: "."): isFraction = true
                case UInt8(ascii: "e"), UInt8(ascii: "E"):
                    // Not `abs`, which traps for the least number that there is.
                    guard let written = Int(String(decoding: rest, as: UTF8.self)), written.magnitude < 1_000_000
                    else { return nil }
                    exponent += written
                    rest = []
                case UInt8(ascii: "0")...UInt8(ascii: "9"):
                    digits.append(byte)
                    if isFraction { exponent -= 1 }
                default: return nil
                }
            }
            while digits.last == UInt8(ascii: "0") {
                digits.removeLast()
                exponent += 1
            }
            digits = Array(digits.drop { $0 == UInt8(ascii: "0") })
            self.digits = digits
            // Zero is zero: with a sign, too.
            isNegative = hasSign && !digits.isEmpty
            self.exponent = digits.isEmpty ? 0 : exponent
        }
    }
}
