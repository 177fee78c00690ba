extension JSONValue {
    /// The shortest JSON text: members in their order, no white space, nothing escaped but what must be.
    public func serialized() -> String {
        String(decoding: serializedBytes(), as: UTF8.self)
    }

    /// The shortest JSON text as UTF-8.
    public func serializedBytes() -> [UInt8] {
        var text: [UInt8] = []
        // What most have room in: claims, headers, answers.
        text.reserveCapacity(256)
        append(to: &text)
        return text
    }

    /// Appends the shortest JSON text as UTF-8.
    package func append(to text: inout [UInt8]) {
        switch self {
        case .null: text += "null".utf8
        case .bool(let value): text += (value ? "true" : "false").utf8
        case .number(let number): text += number.description.utf8
        case .string(let string): Self.append(string, to: &text)
        case .array(let elements):
            text.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { text.append(UInt8(ascii: ",")) }
                element.append(to: &text)
            }
            text.append(UInt8(ascii: "]"))
        case .object(let object):
            text.append(UInt8(ascii: "{"))
            for (index, member) in object.members.enumerated() {
                if index > 0 { text.append(UInt8(ascii: ",")) }
                Self.append(member.name, to: &text)
                text.append(UInt8(ascii: ":"))
                member.value.append(to: &text)
            }
            text.append(UInt8(ascii: "}"))
        }
    }

    /// Appends a text as a JSON string: in its quotes, with what must be escaped.
    package static func append(_ string: String, to text: inout [UInt8]) {
        text.append(UInt8(ascii: "\""))
        // Nearly every text is written as it is, and lies in one piece.
        let isWritten = string.utf8.withContiguousStorageIfAvailable { bytes in
            if bytes.contains(where: mustBeEscaped) { return false }
            text += bytes
            return true
        }
        if isWritten == true {
            text.append(UInt8(ascii: "\""))
            return
        }
        for byte in string.utf8 {
            switch byte {
            case UInt8(ascii: "\""): text += #"\""#.utf8
            case UInt8(ascii: "\\"): text += #"\\"#.utf8
            case 0x0A: text += #"\n"#.utf8
            case 0x0D: text += #"\r"#.utf8
            case 0x09: text += #"\t"#.utf8
            case 0..<0x20: text += Array("\\u00\(Hex.encode([byte]))".utf8)
            default: text.append(byte)
            }
        }
        text.append(UInt8(ascii: "\""))
    }

    private static func mustBeEscaped(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
    }
}

extension JSONValue: CustomStringConvertible {
    /// What kind of value this is. Not its content: that may hold secrets, and descriptions reach logs.
    public var description: String {
        switch self {
        case .null: "JSON null"
        case .bool: "JSON boolean"
        case .number: "JSON number"
        case .string: "JSON string"
        case .array(let elements): "JSON array of \(elements.count)"
        case .object(let object): "JSON object of \(object.members.count)"
        }
    }
}
