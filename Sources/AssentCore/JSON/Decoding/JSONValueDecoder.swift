import Foundation

extension JSONValue {
    /// Reads the value as a type of the app's own, without a detour over text.
    ///
    /// ```swift
    /// struct Account: Decodable { let id: UInt64, balance: Decimal, openedAt: Date }
    /// let accounts = try json.decode([Account].self)
    /// ```
    ///
    /// Numbers are read from their digits: an integer beyond 2^53 or a `Decimal` keeps all of them, and one that does
    /// not fit is an error. A `Date` is a NumericDate, seconds since 1970 (RFC 7519 §2). A member that the type does
    /// not name is ignored.
    ///
    /// - Throws: ``JSONDecodingError``, which names the place; and what the type's own `init(from:)` throws.
    public func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        do {
            return try JSONValueDecoder(self, at: []).decoded(type)
        } catch let error as DecodingError {
            throw JSONDecodingError(.invalidValue, at: error.path, "The value is not acceptable.")
        }
    }
}

extension JSONObject {
    /// Reads the object as a type of the app's own; see ``JSONValue/decode(_:)``.
    ///
    /// - Throws: ``JSONDecodingError``, which names the place; and what the type's own `init(from:)` throws.
    public func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try JSONValue.object(self).decode(type)
    }
}

extension DecodingError {
    /// Where it happened. Its texts are not used: they may quote the value.
    fileprivate var path: [any CodingKey] {
        switch self {
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .keyNotFound(_, let context),
            .dataCorrupted(let context):
            context.codingPath
        @unknown default: []
        }
    }
}

/// Gives a `Decodable` type the parts of a value that it asks for.
struct JSONValueDecoder: Decoder {
    /// How deep types may be nested: a type that contains itself must not use up the stack.
    private static let depthLimit = 64

    let value: JSONValue
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(_ value: JSONValue, at path: [any CodingKey]) throws {
        guard path.count <= Self.depthLimit else {
            throw JSONDecodingError(.tooDeep, at: [], "The value is nested deeper than \(Self.depthLimit).")
        }
        self.value = value
        codingPath = path
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard let object = value.object else { throw mismatch("an object") }
        return KeyedDecodingContainer(JSONKeyedContainer<Key>(object: object, codingPath: codingPath))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard let elements = value.array else { throw mismatch("an array") }
        return JSONUnkeyedContainer(elements: elements, codingPath: codingPath)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    /// The value as `type`. Types whose own reading would lose something are read here.
    func decoded<Value: Decodable>(_ type: Value.Type) throws -> Value {
        let special: Any? =
            switch type {
            case is Date.Type: try date()
            case is Decimal.Type: try decimal()
            case is URL.Type: try url()
            default: nil
            }
        // Unwrapped first: `nil` would pass for the value of every optional type.
        if let special, let value = special as? Value { return value }
        return try type.init(from: self)
    }

    private func date() throws -> Date {
        let seconds = try double()
        guard abs(seconds) <= 253_402_300_799 else { throw outOfRange() }
        return Date(timeIntervalSince1970: seconds)
    }

    /// A `Decimal` has 38 digits.
    private func decimal() throws -> Decimal {
        let text = try number().description
        let digits = text.prefix { $0 != "e" && $0 != "E" }.utf8.filter(\.isASCIIDigit)
        guard digits.count <= 38, let value = Decimal(string: text, locale: Locale(identifier: "en_US_POSIX")),
            value.isFinite
        else { throw outOfRange() }
        return value
    }

    private func url() throws -> URL {
        guard let text = value.string else { throw mismatch("a string") }
        guard let url = URL(string: text) else {
            throw JSONDecodingError(.invalidValue, at: codingPath, "The text is not a URL.")
        }
        return url
    }

    func number() throws -> JSONNumber {
        guard let number = value.number else { throw mismatch("a number") }
        return number
    }

    func double() throws -> Double {
        let value = try number().double
        guard value.isFinite else { throw outOfRange() }
        return value
    }

    /// From the digits; `1.0` and `1e3` are whole numbers too, as long as a `Double` has them exactly.
    func integer<Integer: FixedWidthInteger>(_ type: Integer.Type) throws -> Integer {
        let number = try number()
        if let value = Integer(number.description) { return value }
        guard number.description.utf8.contains(where: { ".eE".utf8.contains($0) }), abs(number.double) < 0x1p53,
            let value = Integer(exactly: number.double)
        else { throw outOfRange() }
        return value
    }

    func mismatch(_ expected: String) -> JSONDecodingError {
        guard value != .null else { return JSONDecodingError(.missing, at: codingPath, "\(expected) is needed.") }
        return JSONDecodingError(.wrongType, at: codingPath, "\(expected) is needed, and this is \(value.kind).")
    }

    private func outOfRange() -> JSONDecodingError {
        JSONDecodingError(.outOfRange, at: codingPath, "The number does not fit.")
    }
}

extension JSONValue {
    /// What this is, for an error's text.
    fileprivate var kind: String {
        switch self {
        case .null: "null"
        case .bool: "true or false"
        case .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }
}
