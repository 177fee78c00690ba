/// One challenge of a `WWW-Authenticate` or `Proxy-Authenticate` field (RFC 9110 §11.3).
public struct Challenge: Hashable, Sendable {
    /// The most bytes of a field value that are read.
    public static let byteLimit = 16 << 10

    /// The most challenges in one field value.
    public static let challengeLimit = 16

    /// The most parameters in one field value, over all of its challenges.
    public static let parameterLimit = 64

    /// A parameter: its name in lower case and its value without quotes and escapes.
    public struct Parameter: Hashable, Sendable {
        /// The name in lower case.
        public let name: String
        /// The value as it is meant, not as it is quoted.
        public let value: String

        /// A parameter; the name is put into lower case.
        public init(name: String, value: String) {
            self.name = name.asciiLowercased
            self.value = value
        }
    }

    /// The scheme as it was sent. Compare with ``isScheme(_:)``: its case does not matter.
    public let scheme: String

    /// The credentials-like text that some schemes have instead of parameters.
    public let token68: String?

    /// The parameters in their order; each name once.
    public let parameters: [Parameter]

    /// A challenge.
    public init(scheme: String, token68: String? = nil, parameters: [Parameter] = []) {
        self.scheme = scheme
        self.token68 = token68
        self.parameters = parameters
    }

    /// The value of the parameter called `name`, whatever its case.
    public subscript(name: String) -> String? {
        parameters.first { $0.name.equalsIgnoringASCIICase(name) }?.value
    }

    /// Whether the scheme is `name`, whatever the case.
    public func isScheme(_ name: String) -> Bool { scheme.equalsIgnoringASCIICase(name) }

    /// Reads all challenges of a field value (RFC 9110 §11.6.1): several may be joined by commas.
    ///
    /// - Throws: ``WireError``: `tooLarge`, `tooMany`, `malformed`, or `duplicate` for a name that occurs twice in one
    ///   challenge.
    public static func parse(_ fieldValue: String) throws(WireError) -> [Challenge] {
        guard fieldValue.utf8.count <= byteLimit else {
            throw WireError(.tooLarge, "a challenge field has more than \(byteLimit) bytes")
        }
        var parser = ChallengeParser(scanner: ByteScanner(fieldValue))
        return try parser.challenges()
    }
}

private struct ChallengeParser {
    var scanner: ByteScanner
    var parameterCount = 0

    mutating func challenges() throws(WireError) -> [Challenge] {
        var challenges: [Challenge] = []
        skipEmptyElements()
        while !scanner.isAtEnd {
            guard challenges.count < Challenge.challengeLimit else {
                throw WireError(.tooMany, "more than \(Challenge.challengeLimit) challenges")
            }
            challenges.append(try challenge())
        }
        return challenges
    }

    private mutating func challenge() throws(WireError) -> Challenge {
        let scheme = try token()
        let separated = scanner.skipBlanks()
        if scanner.isAtEnd || scanner.current == UInt8(ascii: ",") {
            skipEmptyElements()
            return Challenge(scheme: scheme)
        }
        guard separated else { throw scanner.malformed }
        if let token68 = token68() {
            skipEmptyElements()
            return Challenge(scheme: scheme, token68: token68)
        }
        var parameters: [Challenge.Parameter] = []
        repeat {
            let start = scanner.offset
            let parameter = try parameter()
            guard !parameters.contains(where: { $0.name == parameter.name }) else {
                throw WireError(.duplicate, "a parameter occurs twice, at offset \(start)")
            }
            parameters.append(parameter)
            scanner.skipBlanks()
            guard scanner.isAtEnd || scanner.current == UInt8(ascii: ",") else { throw scanner.malformed }
            skipEmptyElements()
        } while isParameter()
        return Challenge(scheme: scheme, parameters: parameters)
    }

    /// Lists may have empty elements (RFC 9110 §5.6.1).
    private mutating func skipEmptyElements() {
        _ = scanner.skip { $0 == UInt8(ascii: ",") || $0 == 0x20 || $0 == 0x09 }
    }

    private mutating func token() throws(WireError) -> String {
        let token = scanner.skip(while: \.isHTTPToken)
        guard !token.isEmpty else { throw scanner.malformed }
        return String(decoding: token, as: UTF8.self)
    }

    /// Whether a parameter of the current challenge comes next, rather than the next challenge's scheme.
    private func isParameter() -> Bool {
        var ahead = scanner
        guard !ahead.skip(while: \.isHTTPToken).isEmpty else { return false }
        ahead.skipBlanks()
        return ahead.current == UInt8(ascii: "=")
    }

    private mutating func token68() -> String? {
        var ahead = scanner
        let start = ahead.offset
        let body = ahead.skip { byte in
            byte.isASCIIAlphanumeric || "-._~+/".utf8.contains(byte)
        }
        guard !body.isEmpty else { return nil }
        _ = ahead.skip { $0 == UInt8(ascii: "=") }
        let text = ahead.bytes[start..<ahead.offset]
        ahead.skipBlanks()
        guard ahead.isAtEnd || ahead.current == UInt8(ascii: ",") else { return nil }
        scanner = ahead
        return String(decoding: text, as: UTF8.self)
    }

    private mutating func parameter() throws(WireError) -> Challenge.Parameter {
        parameterCount += 1
        guard parameterCount <= Challenge.parameterLimit else {
            throw WireError(.tooMany, "more than \(Challenge.parameterLimit) parameters")
        }
        let name = try token()
        scanner.skipBlanks()
        guard scanner.skip(UInt8(ascii: "=")) else { throw scanner.malformed }
        scanner.skipBlanks()
        let value = scanner.current == UInt8(ascii: "\"") ? try quotedString() : try token()
        return Challenge.Parameter(name: name, value: value)
    }

    private mutating func quotedString() throws(WireError) -> String {
        scanner.offset += 1
        var text: [UInt8] = []
        while let byte = scanner.current {
            switch byte {
            case UInt8(ascii: "\""):
                scanner.offset += 1
                let value = String(decoding: text, as: UTF8.self)
                // In the whole field, backslashes may have stood between them.
                guard !MarksInARow.areTooMany(in: value) else { throw scanner.malformed }
                return value
            case UInt8(ascii: "\\"):
                scanner.offset += 1
                guard let escaped = scanner.current, isText(escaped) else { throw scanner.malformed }
                text.append(escaped)
            default:
                guard isText(byte) else { throw scanner.malformed }
                text.append(byte)
            }
            scanner.offset += 1
        }
        throw scanner.malformed
    }

    private func isText(_ byte: UInt8) -> Bool { byte == 0x09 || byte >= 0x20 && byte != 0x7F }
}

extension Challenge {
    /// The field value: parameters quoted and joined by commas without white space after them.
    ///
    /// Vendor clients split on the comma and do not trim, so the space that RFC 9110 allows would hide a parameter from
    /// them.
    /// - Throws: ``WireError`` with code `malformed` when scheme, token68 or a name has characters that cannot stand
    ///   there, or a value has control characters.
    public func fieldValue() throws(WireError) -> String {
        guard scheme.isHTTPToken, parameters.allSatisfy({ $0.name.isHTTPToken }) else {
            throw WireError(.malformed, "a scheme or a parameter's name is not a token")
        }
        if let token68 {
            let isToken68 = !token68.isEmpty && token68.utf8.allSatisfy { $0.isHTTPToken || "/=".utf8.contains($0) }
            guard parameters.isEmpty, isToken68 else {
                throw WireError(.malformed, "a token68 has other characters or parameters beside it")
            }
            return "\(scheme) \(token68)"
        }
        var parts: [String] = []
        for parameter in parameters {
            guard parameter.value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
                throw WireError(.malformed, "a parameter's value has control characters")
            }
            var quoted = ""
            for scalar in parameter.value.unicodeScalars {
                if scalar == "\"" || scalar == "\\" { quoted.unicodeScalars.append("\\") }
                quoted.unicodeScalars.append(scalar)
            }
            parts.append("\(parameter.name)=\"\(quoted)\"")
        }
        return parts.isEmpty ? scheme : "\(scheme) \(parts.joined(separator: ","))"
    }
}

extension String {
    var isHTTPToken: Bool { !isEmpty && utf8.allSatisfy(\.isHTTPToken) }
}
