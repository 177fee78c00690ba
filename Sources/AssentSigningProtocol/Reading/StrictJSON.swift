package import AssentCore

/// JSON as every message of the protocol has it (TSP/1 "Bytes and texts").
package enum StrictJSON {
    /// The greatest number: 2^53−1.
    package static let maximumInteger = (1 << 53) - 1

    /// Reads a JSON object.
    ///
    /// - Throws: ``SigningProtocolError`` with `tooLarge` or `malformed`: also for members that occur twice, `null`,
    ///   more than 16 levels or 10,000 values, and numbers that are not plain integers up to 2^53−1.
    package static func object(_ bytes: [UInt8], limit: Int) throws(SigningProtocolError) -> JSONObject {
        guard bytes.count <= limit else {
            throw SigningProtocolError(.tooLarge, "The message has more than \(limit) bytes.")
        }
        let value: JSONValue
        do {
            value = try JSONValue.parse(bytes, limits: JSONLimits(bytes: limit, depth: 16, values: 10_000))
        } catch {
            throw SigningProtocolError(.malformed, "The message is not acceptable JSON. \(error.detail)")
        }
        guard let object = value.object else {
            throw SigningProtocolError(.malformed, "The message is not a JSON object.")
        }
        try check(value)
        return object
    }

    private static func check(_ value: JSONValue) throws(SigningProtocolError) {
        switch value {
        case .null: throw SigningProtocolError(.malformed, "The message has a null: what is absent is left out.")
        case .number(let number):
            guard integer(number) != nil else {
                throw SigningProtocolError(.malformed, "A number of the message is not an integer from 0 to 2^53−1.")
            }
        case .array(let elements): for element in elements { try check(element) }
        case .object(let object): for member in object.members { try check(member.value) }
        case .bool, .string: return
        }
    }

    static func integer(_ number: JSONNumber) -> Int? {
        guard number.description.utf8.first != UInt8(ascii: "-"), let value = number.integer, value <= maximumInteger
        else { return nil }
        return Int(value)
    }

    /// Whether two texts have the same bytes. Swift's `==` also takes canonical equivalents for equal.
    package static func same(_ one: String, _ other: String) -> Bool { one.hasSameBytes(as: other) }
}
