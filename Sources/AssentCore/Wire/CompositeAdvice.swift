/// The XML in which an advice travels as `authIndexValue` of `authIndexType=composite_advice`.
///
/// The grammar is fixed, so the reader is our own: no document type, comments, processing instructions, CDATA or
/// namespaces, and only the five predefined and numeric character references.
public enum CompositeAdvice {
    /// The most bytes of XML, after decoding.
    public static let byteLimit = 8 << 10

    /// The XML of `advice`, without white space between the tags.
    public static func xml(_ advice: Advice) -> String {
        var xml = "<Advices>"
        for entry in advice.entries {
            xml += "<AttributeValuePair><Attribute name=\"\(escape(entry.name.rawValue))\"/>"
            for value in entry.values { xml += "<Value>\(escape(value))</Value>" }
            xml += "</AttributeValuePair>"
        }
        return xml + "</Advices>"
    }

    /// The XML of `advice` as unpadded base64url, as newer gateways send it.
    public static func base64URL(_ advice: Advice) -> String {
        Base64URL.encode(Array(xml(advice).utf8))
    }

    /// Reads an `authIndexValue`: XML, percent-encoded XML (which some gateways encode twice) or the base64url of XML.
    ///
    /// - Throws: ``WireError`` with code `malformed` or `tooLarge`, or as ``Advice/init(_:)``.
    public static func parse(_ text: String) throws(WireError) -> Advice {
        guard text.utf8.count <= byteLimit * 3 else { throw tooLarge }
        var xml = text
        if text.utf8.first == UInt8(ascii: "%") {
            guard let decoded = PercentEncoding.decode(text) else {
                throw WireError(.malformed, "an advice has a broken percent-escape")
            }
            xml = decoded
        } else if let bytes = Base64URL.decode(withoutPadding(text)) {
            guard let decoded = String(validating: bytes, as: UTF8.self) else {
                throw WireError(.malformed, "an advice is not UTF-8")
            }
            xml = decoded
        }
        guard xml.utf8.count <= byteLimit else { throw tooLarge }
        var parser = CompositeAdviceParser(scanner: ByteScanner(xml))
        return try Advice(try parser.document())
    }

    static func withoutPadding(_ text: String) -> Substring {
        var rest = text[...]
        for _ in 0..<2 where rest.utf8.last == UInt8(ascii: "=") { rest = rest.dropLast() }
        return rest
    }

    private static let tooLarge = WireError(.tooLarge, "an advice has more than \(byteLimit) bytes")

    private static func escape(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&apos;"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}

private struct CompositeAdviceParser {
    var scanner: ByteScanner

    mutating func document() throws(WireError) -> [Advice.Entry] {
        skipWhiteSpace()
        try open("Advices")
        var entries: [Advice.Entry] = []
        while true {
            skipWhiteSpace()
            if scanner.skip("</Advices") { break }
            guard entries.count < Advice.entryLimit else {
                throw WireError(.tooMany, "more than \(Advice.entryLimit) conditions in an advice")
            }
            entries.append(try pair())
        }
        try endOfTag()
        skipWhiteSpace()
        guard scanner.isAtEnd else { throw scanner.malformed }
        return entries
    }

    private mutating func pair() throws(WireError) -> Advice.Entry {
        try open("AttributeValuePair")
        skipWhiteSpace()
        let name = try attribute()
        var values: [String] = []
        while true {
            skipWhiteSpace()
            if scanner.skip("</AttributeValuePair") { break }
            guard values.count < Advice.valueLimit else {
                throw WireError(.tooMany, "a condition has more than \(Advice.valueLimit) values")
            }
            try open("Value")
            values.append(trimmed(try text(until: UInt8(ascii: "<"))))
            guard scanner.skip("</Value") else { throw scanner.malformed }
            try endOfTag()
        }
        try endOfTag()
        return Advice.Entry(Advice.Name(rawValue: name), values)
    }

    private mutating func attribute() throws(WireError) -> String {
        guard scanner.skip("<Attribute"), skipWhiteSpace(), scanner.skip("name") else { throw scanner.malformed }
        skipWhiteSpace()
        guard scanner.skip(UInt8(ascii: "=")) else { throw scanner.malformed }
        skipWhiteSpace()
        guard let quote = scanner.current, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
            throw scanner.malformed
        }
        scanner.offset += 1
        let name = try text(until: quote)
        scanner.offset += 1
        skipWhiteSpace()
        if scanner.skip("/>") { return name }
        guard scanner.skip("></Attribute") else { throw scanner.malformed }
        try endOfTag()
        return name
    }

    private mutating func open(_ name: String) throws(WireError) {
        guard scanner.skip(UInt8(ascii: "<")) else { throw scanner.malformed }
        for byte in name.utf8 {
            guard scanner.skip(byte) else { throw scanner.malformed }
        }
        try endOfTag()
    }

    private mutating func endOfTag() throws(WireError) {
        skipWhiteSpace()
        guard scanner.skip(UInt8(ascii: ">")) else { throw scanner.malformed }
    }

    @discardableResult
    private mutating func skipWhiteSpace() -> Bool {
        !scanner.skip { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }.isEmpty
    }

    /// Text up to `end`, which is left to be read, its references replaced.
    private mutating func text(until end: UInt8) throws(WireError) -> String {
        var text: [UInt8] = []
        while let byte = scanner.current {
            switch byte {
            case end:
                guard let string = String(validating: text, as: UTF8.self), !MarksInARow.areTooMany(in: string) else {
                    throw scanner.malformed
                }
                return string
            case UInt8(ascii: "<"): throw scanner.malformed
            case UInt8(ascii: "&"): text += try reference()
            default:
                text.append(byte)
                scanner.offset += 1
            }
        }
        throw scanner.malformed
    }

    private mutating func reference() throws(WireError) -> [UInt8] {
        scanner.offset += 1
        let start = scanner.offset
        let name = scanner.skip { $0.isASCIIAlphanumeric || $0 == UInt8(ascii: "#") }
        guard name.count <= 8, scanner.skip(UInt8(ascii: ";")) else {
            throw WireError(.malformed, "a character reference does not end, at offset \(start)")
        }
        let text = String(decoding: name, as: UTF8.self)
        switch text {
        case "amp": return [UInt8(ascii: "&")]
        case "lt": return [UInt8(ascii: "<")]
        case "gt": return [UInt8(ascii: ">")]
        case "quot": return [UInt8(ascii: "\"")]
        case "apos": return [UInt8(ascii: "'")]
        default: break
        }
        let isHexadecimal = text.hasPrefix("#x")
        let digits = text.dropFirst(isHexadecimal ? 2 : 1)
        guard text.hasPrefix("#"), digits.utf8.allSatisfy(\.isASCIIAlphanumeric),
            let code = UInt32(digits, radix: isHexadecimal ? 16 : 10), let scalar = Unicode.Scalar(code)
        else { throw WireError(.malformed, "an unknown character reference at offset \(start)") }
        return Array(String(Character(scalar)).utf8)
    }

    private func trimmed(_ text: String) -> String {
        let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }
        let bytes = text.utf8.drop(while: isBlank)
        guard let end = bytes.lastIndex(where: { !isBlank($0) }) else { return "" }
        return String(text[bytes.startIndex...end])
    }
}
