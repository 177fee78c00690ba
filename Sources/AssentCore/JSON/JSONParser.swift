/// How much JSON is accepted.
public struct JSONLimits: Hashable, Sendable {
    /// The bytes of the whole text.
    public var bytes: Int

    /// How deep arrays and objects may be nested; never more than ``maximumDepth``.
    public var depth: Int

    /// The values in the whole text, members and elements counted.
    public var values: Int

    /// The depth that fits every thread's stack, whatever ``depth`` says.
    public static let maximumDepth = 512

    /// Bounds; the defaults suit protocol messages.
    public init(bytes: Int = 1 << 20, depth: Int = 64, values: Int = 100_000) {
        self.bytes = bytes
        self.depth = depth
        self.values = values
    }
}

/// What to do with an object that names a member twice.
public enum JSONDuplicates: Hashable, Sendable {
    /// Refuse the text: two readers could see two different objects.
    case reject
    /// Refuse also names that differ only in their case, as Unicode knows it: many readers do not tell these apart (Go,
    /// .NET), and take the last one. And names that people cannot tell apart: by invisible characters, or blanks.
    case rejectAlike
    /// Keep all of them.
    case keep
}

extension JSONValue {
    /// Reads a JSON text (RFC 8259) that has nothing before or after its one value but white space.
    ///
    /// - Throws: ``JSONError``.
    public static func parse(
        _ bytes: [UInt8], limits: JSONLimits = JSONLimits(), duplicates: JSONDuplicates = .reject
    ) throws(JSONError) -> JSONValue {
        guard bytes.count <= limits.bytes else { throw .tooLarge(limit: limits.bytes) }
        var parser = JSONParser(bytes: bytes, limits: limits, duplicates: duplicates)
        return try parser.document()
    }

    /// Reads a JSON text.
    public static func parse(
        _ text: String, limits: JSONLimits = JSONLimits(), duplicates: JSONDuplicates = .reject
    ) throws(JSONError) -> JSONValue {
        try parse(Array(text.utf8), limits: limits, duplicates: duplicates)
    }
}

private struct JSONParser {
    let bytes: [UInt8]
    let limits: JSONLimits
    let duplicates: JSONDuplicates
    var offset = 0
    var values = 0

    init(bytes: [UInt8], limits: JSONLimits, duplicates: JSONDuplicates) {
        self.bytes = bytes
        self.limits = JSONLimits(
            bytes: limits.bytes, depth: min(limits.depth, JSONLimits.maximumDepth), values: limits.values)
        self.duplicates = duplicates
    }

    mutating func document() throws(JSONError) -> JSONValue {
        skipWhiteSpace()
        let value = try value(depth: 0)
        skipWhiteSpace()
        guard offset == bytes.count else { throw .unexpectedByte(offset: offset) }
        return value
    }

    private var current: UInt8? { offset < bytes.count ? bytes[offset] : nil }

    private mutating func skipWhiteSpace() {
        while let byte = current, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { offset += 1 }
    }

    private func unexpected() -> JSONError {
        offset < bytes.count ? .unexpectedByte(offset: offset) : .unexpectedEnd
    }

    private mutating func value(depth: Int) throws(JSONError) -> JSONValue {
        values += 1
        guard values <= limits.values else { throw .tooManyValues(limit: limits.values) }
        switch current {
        case UInt8(ascii: "{"): return try object(depth: depth + 1)
        case UInt8(ascii: "["): return try array(depth: depth + 1)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        default: return .number(try number())
        }
    }

    private mutating func literal(_ text: StaticString, _ value: JSONValue) throws(JSONError) -> JSONValue {
        for index in 0..<text.utf8CodeUnitCount {
            guard current == text.utf8Start[index] else { throw unexpected() }
            offset += 1
        }
        return value
    }

    private mutating func object(depth: Int) throws(JSONError) -> JSONValue {
        guard depth <= limits.depth else { throw .tooDeep(limit: limits.depth) }
        offset += 1
        var members: [JSONObject.Member] = []
        var seen = JSONNames()
        var folded: Set<String> = []
        skipWhiteSpace()
        if current == UInt8(ascii: "}") {
            offset += 1
            return .object(JSONObject())
        }
        // As many as the claims of most tokens and proofs: the list then grows once, and not four times.
        if depth == 1 { members.reserveCapacity(8) }
        while true {
            skipWhiteSpace()
            let start = offset
            guard current == UInt8(ascii: "\"") else { throw unexpected() }
            let name = try string()
            let isNew =
                switch duplicates {
                case .reject: seen.isNew(name, behind: members[...])
                case .rejectAlike: folded.insert(NameFolding.fold(name)).inserted
                case .keep: true
                }
            guard isNew else { throw .duplicateMember(offset: start) }
            skipWhiteSpace()
            guard current == UInt8(ascii: ":") else { throw unexpected() }
            offset += 1
            skipWhiteSpace()
            members.append(.init(name: name, value: try value(depth: depth)))
            skipWhiteSpace()
            switch current {
            case UInt8(ascii: ","): offset += 1
            case UInt8(ascii: "}"):
                offset += 1
                return .object(JSONObject(members))
            default: throw unexpected()
            }
        }
    }

    private mutating func array(depth: Int) throws(JSONError) -> JSONValue {
        guard depth <= limits.depth else { throw .tooDeep(limit: limits.depth) }
        offset += 1
        var elements: [JSONValue] = []
        skipWhiteSpace()
        if current == UInt8(ascii: "]") {
            offset += 1
            return .array([])
        }
        while true {
            skipWhiteSpace()
            elements.append(try value(depth: depth))
            skipWhiteSpace()
            switch current {
            case UInt8(ascii: ","): offset += 1
            case UInt8(ascii: "]"):
                offset += 1
                return .array(elements)
            default: throw unexpected()
            }
        }
    }

    private mutating func number() throws(JSONError) -> JSONNumber {
        let start = offset
        if current == UInt8(ascii: "-") { offset += 1 }
        if current == UInt8(ascii: "0") { offset += 1 } else { try digits() }
        if current == UInt8(ascii: ".") {
            offset += 1
            try digits()
        }
        if current == UInt8(ascii: "e") || current == UInt8(ascii: "E") {
            offset += 1
            if current == UInt8(ascii: "+") || current == UInt8(ascii: "-") { offset += 1 }
            try digits()
        }
        return JSONNumber(validated: String(decoding: bytes[start..<offset], as: UTF8.self))
    }

    private mutating func digits() throws(JSONError) {
        let start = offset
        while let byte = current, byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") { offset += 1 }
        guard offset > start else { throw unexpected() }
    }

    private mutating func string() throws(JSONError) -> String {
        let start = offset
        offset += 1
        // Only a text with escapes is put together from pieces.
        var text: [UInt8] = []
        var plainStart = offset
        while true {
            guard let byte = current else { throw .unexpectedEnd }
            switch byte {
            case UInt8(ascii: "\""):
                let rest = bytes[plainStart..<offset]
                offset += 1
                let all = text.isEmpty ? rest : (text + rest)[...]
                guard let read = String(utf8: all), !MarksInARow.areTooMany(in: read) else {
                    throw .invalidText(offset: start)
                }
                return read
            case UInt8(ascii: "\\"):
                text += bytes[plainStart..<offset]
                offset += 1
                text += try escape()
                plainStart = offset
            case 0..<0x20: throw unexpected()
            default: skipPlainText()
            }
        }
    }

    /// Skips what stands for itself in a string: most of all that is read.
    private mutating func skipPlainText() {
        let bytes = bytes
        var end = offset
        while end < bytes.count, Self.isPlain(bytes[end]) { end += 1 }
        offset = end
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }

    private mutating func escape() throws(JSONError) -> [UInt8] {
        guard let byte = current else { throw .unexpectedEnd }
        let simple: UInt8
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): simple = byte
        case UInt8(ascii: "b"): simple = 0x08
        case UInt8(ascii: "f"): simple = 0x0C
        case UInt8(ascii: "n"): simple = 0x0A
        case UInt8(ascii: "r"): simple = 0x0D
        case UInt8(ascii: "t"): simple = 0x09
        case UInt8(ascii: "u"):
            offset += 1
            return try unicodeEscape()
        default: throw unexpected()
        }
        offset += 1
        return [simple]
    }

    private mutating func unicodeEscape() throws(JSONError) -> [UInt8] {
        let start = offset
        var code = UInt32(try fourDigits())
        if code >= 0xD800, code < 0xDC00 {
            guard current == UInt8(ascii: "\\") else { throw .invalidText(offset: start) }
            offset += 1
            guard current == UInt8(ascii: "u") else { throw .invalidText(offset: start) }
            offset += 1
            let low = UInt32(try fourDigits())
            guard low >= 0xDC00, low < 0xE000 else { throw .invalidText(offset: start) }
            code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(code) else { throw .invalidText(offset: start) }
        return Array(String(Character(scalar)).utf8)
    }

    private mutating func fourDigits() throws(JSONError) -> UInt16 {
        var code: UInt16 = 0
        for _ in 0..<4 {
            let digit: UInt8
            switch current {
            case .some(let byte) where byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9"):
                digit = byte - UInt8(ascii: "0")
            case .some(let byte) where byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "f"):
                digit = byte - UInt8(ascii: "a") + 10
            case .some(let byte) where byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "F"):
                digit = byte - UInt8(ascii: "A") + 10
            default: throw unexpected()
            }
            code = code << 4 | UInt16(digit)
            offset += 1
        }
        return code
    }
}
