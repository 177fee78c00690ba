import AssentCore

/// Takes the members of a handshake's JSON one by one, each by its rule; what is left over at the end is refused.
struct HandshakeMembers {
    private let object: JSONObject
    private var taken = 0

    /// - Throws: ``PayloadError/malformedHandshake(_:)``, also for a member that is there twice.
    init(_ bytes: [UInt8], limit: Int) throws(PayloadError) {
        let value: JSONValue
        do {
            value = try JSONValue.parse(bytes, limits: JSONLimits(bytes: limit, depth: 1, values: 16))
        } catch {
            throw .malformedHandshake("it is not acceptable JSON: \(error.detail)")
        }
        guard let object = value.object else { throw .malformedHandshake("it is not a JSON object") }
        self.object = object
        guard try integer("v", 1...1) == 1 else { throw .malformedHandshake("its version is not 1") }
    }

    func has(_ name: String) -> Bool { object[name] != nil }

    mutating func text(_ name: String) throws(PayloadError) -> String {
        guard let text = try value(name).string else { throw .malformedHandshake("\(name) is not a text") }
        try HandshakeText.check(text, name)
        return text
    }

    /// Base64url of so many bytes.
    mutating func bytes(_ name: String, count: Int) throws(PayloadError) -> [UInt8] {
        guard let bytes = try value(name).string.flatMap({ Base64URL.decode($0) }), bytes.count == count else {
            throw .malformedHandshake("\(name) is not base64url of \(count) bytes")
        }
        return bytes
    }

    mutating func integer(_ name: String, _ range: ClosedRange<Int64>) throws(PayloadError) -> Int64 {
        guard let value = try value(name).integer, range.contains(value) else {
            throw .malformedHandshake("\(name) is not an integer that is allowed")
        }
        return value
    }

    /// The parser has refused members that are there twice, so counting is enough.
    func finish() throws(PayloadError) {
        guard taken == object.members.count else { throw .malformedHandshake("it has a member that is not known") }
    }

    private mutating func value(_ name: String) throws(PayloadError) -> JSONValue {
        guard let value = object[name] else { throw .malformedHandshake("\(name) is missing") }
        taken += 1
        return value
    }
}

/// The texts by which both sides name the client.
enum HandshakeText {
    static let limit = 128

    static func check(_ text: String, _ name: String) throws(PayloadError) {
        guard 1...limit ~= text.utf8.count, text.utf8.allSatisfy({ 0x20...0x7E ~= $0 }) else {
            throw .malformedHandshake("\(name) does not have 1 to \(limit) printable ASCII characters")
        }
    }
}
