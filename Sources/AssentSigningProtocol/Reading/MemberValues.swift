package import AssentCore

extension Int: MemberValue {
    /// An integer from 0 to 2^53−1, such as a time in seconds since 1970.
    package static func take(
        _ name: String, from reader: inout MemberReader
    ) throws(SigningProtocolError) -> Int { try reader.integer(name) }

    package var json: JSONValue { .integer(self) }
}

extension Bool: MemberValue {
    /// `true` or `false`, never absent.
    package static func take(
        _ name: String, from reader: inout MemberReader
    ) throws(SigningProtocolError) -> Bool { try reader.bool(name) }

    package var json: JSONValue { .bool(self) }
}

extension MemberValue where Self: RawRepresentable<String> {
    /// A value out of a fixed list.
    package static func take(
        _ name: String, from reader: inout MemberReader
    ) throws(SigningProtocolError) -> Self { try reader.choice(name) }

    package var json: JSONValue { .string(rawValue) }
}

extension FixedBytes: MemberValue {
    /// Base64url of exactly so many bytes.
    package static func take(
        _ name: String, from reader: inout MemberReader
    ) throws(SigningProtocolError) -> Self { try reader.fixed(name) }

    package var json: JSONValue { .string(text) }
}

extension ProtocolKey: MemberValue {
    /// A P-256 key: exactly `crv`, `kty`, `x` and `y`.
    package static func take(
        _ name: String, from reader: inout MemberReader
    ) throws(SigningProtocolError) -> ProtocolKey { try reader.key(name) }
}

extension InviteCode: MemberValue {
    /// The canonical form of a code.
    package static func take(
        _ name: String, from reader: inout MemberReader
    ) throws(SigningProtocolError) -> InviteCode { try reader.inviteCode(name) }

    package var json: JSONValue { .string(canonical.reveal()) }
}
