package import AssentCore

/// A value whose type says how it is read and written.
package protocol MemberValue: Sendable {
    /// Reads a value and checks its bounds; `place` is where it stands, for errors.
    init(_ json: JSONValue, at place: String) throws(SigningProtocolError)

    var json: JSONValue { get }
}

extension Int: MemberValue {
    /// An integer from 0 to 2^53−1, such as a time in seconds since 1970.
    package init(_ json: JSONValue, at place: String) throws(SigningProtocolError) {
        self = try MemberRule.integer(0...StrictJSON.maximumInteger).read(json, place)
    }

    package var json: JSONValue { .integer(self) }
}

extension Bool: MemberValue {
    package init(_ json: JSONValue, at place: String) throws(SigningProtocolError) {
        guard let value = json.bool else { throw .invalid(place, "is not true or false") }
        self = value
    }

    package var json: JSONValue { .bool(self) }
}

extension MemberValue where Self: RawRepresentable<String> {
    /// A value out of a fixed list.
    package init(_ json: JSONValue, at place: String) throws(SigningProtocolError) {
        guard let value = Self(rawValue: try MemberRule.ascii(1...64).read(json, place)) else {
            throw .invalid(place, "has a value that is not known")
        }
        self = value
    }

    package var json: JSONValue { .string(rawValue) }
}

extension FixedBytes: MemberValue {
    package init(_ json: JSONValue, at place: String) throws(SigningProtocolError) {
        guard let text = json.string, let value = Self(text: text) else {
            throw .invalid(place, "is not base64url of \(Size.byteCount) bytes")
        }
        self = value
    }

    package var json: JSONValue { .string(text) }
}

extension ProtocolKey: MemberValue {}

extension InviteCode: MemberValue {
    /// The canonical form of a code.
    package init(_ json: JSONValue, at place: String) throws(SigningProtocolError) {
        guard let text = json.string, let code = InviteCode(canonical: text) else {
            throw .invalid(place, "is not a code")
        }
        self = code
    }

    package var json: JSONValue { .string(canonical.reveal()) }
}
