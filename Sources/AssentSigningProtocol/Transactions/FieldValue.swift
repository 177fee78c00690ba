package import AssentCore

/// What kind of value a document's field has.
package enum FieldType: String, Hashable, MemberValue, CaseIterable {
    case text
    case amount
    /// The most that may be taken.
    case maxAmount
    case account
    case party
    case date
    case list
}

/// The typed value of a field. The server makes the text to show from it; a device shows that text and formats nothing.
package enum FieldValue: Hashable, Sendable {
    case text(String)
    /// An amount of money: digits, and three capital letters.
    case amount(String, currency: String)
    /// The most that may be taken.
    case maxAmount(String, currency: String)
    /// An International Bank Account Number, without blanks.
    case iban(String)
    case otherAccount(String)
    case party(String)
    /// `YYYY-MM-DD`.
    case date(String)
    case list([String])

    package static let displayLimit = 2000

    package var type: FieldType {
        switch self {
        case .text: .text
        case .amount: .amount
        case .maxAmount: .maxAmount
        case .iban, .otherAccount: .account
        case .party: .party
        case .date: .date
        case .list: .list
        }
    }

    /// The text that the server puts into `display`.
    package var display: String {
        switch self {
        case .text(let text), .party(let text), .otherAccount(let text), .date(let text): text
        case .amount(let amount, let currency), .maxAmount(let amount, let currency): "\(amount) \(currency)"
        case .iban(let iban):
            stride(from: 0, to: iban.utf8.count, by: 4)
                .map { String(decoding: iban.utf8.dropFirst($0).prefix(4), as: UTF8.self) }.joined(separator: " ")
        case .list(let texts): texts.joined(separator: ", ")
        }
    }

    /// Reads a value of this type, as it stands in a document or in what a relying party sends.
    ///
    /// - Throws: ``SigningProtocolError`` with `invalidMember`.
    package init(_ value: JSONValue, type: FieldType, at place: String = "value") throws(SigningProtocolError) {
        switch type {
        case .text: self = .text(try Self.text(value, 1...200, at: place))
        case .party: self = .party(try Self.text(value, 1...200, at: place))
        case .amount, .maxAmount:
            let money = try Money(value, at: place)
            self =
                type == .amount
                ? .amount(money.amount, currency: money.currency) : .maxAmount(money.amount, currency: money.currency)
        case .account:
            self = try Account(value, at: place).value
        case .date:
            let text = try Self.text(value, 10...10, at: place)
            guard Self.isDate(text) else { throw .invalid(place, "is not a date YYYY-MM-DD") }
            self = .date(text)
        case .list:
            guard let elements = value.array, (1...100).contains(elements.count) else {
                throw .invalid(place, "is not an array of 1 to 100 texts")
            }
            var texts: [String] = []
            for element in elements { texts.append(try Self.text(element, 1...200, at: place)) }
            guard texts.joined(separator: ", ").unicodeScalars.count <= Self.displayLimit else {
                throw .invalid(place, "is too long to be shown")
            }
            self = .list(texts)
        }
    }

    package var json: JSONValue {
        switch self {
        case .text(let text), .party(let text), .date(let text): .string(text)
        case .amount(let amount, let currency), .maxAmount(let amount, let currency):
            ["amount": .string(amount), "currency": .string(currency)]
        case .iban(let iban): ["iban": .string(iban)]
        case .otherAccount(let account): ["other": .string(account)]
        case .list(let texts): .array(texts.map(JSONValue.string))
        }
    }

    private static func text(
        _ value: JSONValue, _ count: ClosedRange<Int>, at place: String
    ) throws(SigningProtocolError) -> String {
        guard let text = value.string else { throw .invalid(place, "is not a text") }
        try ShownText.check(text, count, at: place)
        return text
    }

    private static func isDate(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard bytes.count == 10, bytes[4] == 0x2D, bytes[7] == 0x2D else { return false }
        func number(_ range: Range<Int>) -> Int? {
            bytes[range].allSatisfy(\.isASCIIDigit) ? Int(String(decoding: bytes[range], as: UTF8.self)) : nil
        }
        guard number(0..<4) != nil, let month = number(5..<7), let day = number(8..<10) else { return false }
        return (1...12).contains(month) && (1...31).contains(day)
    }
}

private struct Money: ShapedPart {
    let amount: String
    let currency: String

    static let shape = MessageShape<Self>(Self.init) {
        Member("amount", \.amount, .ascii(1...32))
        Member("currency", \.currency, .ascii(3...3))
    }

    func check(in reader: MemberReader) throws(SigningProtocolError) {
        guard currency.utf8.allSatisfy({ $0.isASCIILetter && $0 != $0.asciiLowercased }) else {
            throw .invalid(reader.path("currency"), "is not three capital letters")
        }
        let parts = amount.utf8.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        let isNumber = parts.allSatisfy { !$0.isEmpty && $0.allSatisfy(\.isASCIIDigit) }
        guard isNumber, let whole = parts.first, whole.count <= 18,
            whole.count == 1 || whole.first != UInt8(ascii: "0"),
            parts.count == 1 || parts.last.map({ $0.count <= 6 }) ?? false
        else { throw .invalid(reader.path("amount"), "is not an amount") }
    }
}

private struct Account: MessagePart {
    let value: FieldValue

    init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        guard reader.has("iban") else {
            value = .otherAccount(try reader.read("other", .shown(4...34)))
            return
        }
        let iban = try reader.read("iban", .ascii(4...34))
        guard iban.utf8.allSatisfy({ $0.isASCIIDigit || ($0.isASCIILetter && $0 != $0.asciiLowercased) }) else {
            throw .invalid(reader.path("iban"), "has characters other than A–Z and 0–9")
        }
        value = .iban(iban)
    }

    var members: JSONObject { value.json.object ?? JSONObject() }
}
