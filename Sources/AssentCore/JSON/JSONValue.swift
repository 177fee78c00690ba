/// Any JSON value (RFC 8259), kept as it came: members in their order, numbers as their text.
///
/// Foundation's JSON types lose both, and with them what a signature or a digest was made of.
public enum JSONValue: Hashable, Sendable {
    /// `null`
    case null
    /// `true` or `false`
    case bool(Bool)
    /// A number, as its text.
    case number(JSONNumber)
    /// A string.
    case string(String)
    /// An array.
    indirect case array([JSONValue])
    /// An object.
    indirect case object(JSONObject)
}

extension JSONValue {
    /// Whether both are the same JSON: strings by their code points (Swift's own comparison would also take texts for
    /// equal that only normalise alike, which a signature tells apart), numbers by their text, members in the same
    /// order.
    public static func == (left: JSONValue, right: JSONValue) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.bool(let one), .bool(let other)): one == other
        case (.number(let one), .number(let other)): one == other
        case (.string(let one), .string(let other)): one.utf8.elementsEqual(other.utf8)
        case (.array(let one), .array(let other)): one == other
        case (.object(let one), .object(let other)): one == other
        default: false
        }
    }

    /// Hashes what `==` compares.
    public func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .bool(let value): hasher.combine(value)
        case .number(let number): hasher.combine(number)
        case .string(let text): hasher.combine(Array(text.utf8))
        case .array(let elements): hasher.combine(elements)
        case .object(let object): hasher.combine(object)
        }
    }
}

extension JSONValue {
    /// The text, when this is a string.
    public var string: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// The truth value, when this is one.
    public var bool: Bool? {
        if case .bool(let value) = self { value } else { nil }
    }

    /// The number, when this is one.
    public var number: JSONNumber? {
        if case .number(let value) = self { value } else { nil }
    }

    /// The value as a whole number, when this is a number that has one of 64 bits, written without fraction or
    /// exponent.
    public var integer: Int64? { number?.integer }

    /// The elements, when this is an array.
    public var array: [JSONValue]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    /// The object, when this is one.
    public var object: JSONObject? {
        if case .object(let object) = self { object } else { nil }
    }

    /// The strings, when this is an array of nothing but strings.
    public var strings: [String]? {
        guard let array else { return nil }
        var strings: [String] = []
        for element in array {
            guard let string = element.string else { return nil }
            strings.append(string)
        }
        return strings
    }

    /// The member called `name`, when this is an object that has it.
    public subscript(name: String) -> JSONValue? { object?[name] }

    /// A whole number.
    public static func integer(_ value: some BinaryInteger) -> JSONValue { .number(JSONNumber(value)) }
}

/// A JSON number by its text, so that `1.10`, `1e400` and 20-digit integers survive.
public struct JSONNumber: Hashable, Sendable, CustomStringConvertible {
    /// The number as RFC 8259 §6 writes it.
    public let description: String

    /// A whole number.
    public init(_ value: some BinaryInteger) {
        // The generic way to write a number is slow, and most numbers are times.
        description = Int64(exactly: value)?.description ?? String(value)
    }

    /// A floating-point number; `nil` for infinities and NaN, which JSON has no text for.
    public init?(_ value: Double) {
        guard value.isFinite else { return nil }
        description = "\(value)"
    }

    init(validated text: String) { description = text }

    /// The value, when the text is a whole number of 64 bits without fraction or exponent.
    public var integer: Int64? { Int64(description) }

    /// The nearest floating-point value; may be infinite.
    public var double: Double {
        // Most are whole, as times are, and are read faster so. Zero may have a sign.
        if let whole = integer, whole != 0 { return Double(whole) }
        return Double(description) ?? .nan
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
    /// A string.
    public init(stringLiteral value: String) { self = .string(value) }
    /// A truth value.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// A whole number.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// An array.
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    /// An object, its members in the order written.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        self = .object(JSONObject(elements.map { JSONObject.Member(name: $0.0, value: $0.1) }))
    }
    /// `null`
    public init(nilLiteral: ()) { self = .null }
}
