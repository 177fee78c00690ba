import AssentCore

/// What an issuer says of itself at `/configuration`. It is not signed: everything in it is checked from the pinned
/// identity key on, see ``IssuerTrust``.
package struct IssuerConfiguration: Sendable {
    /// The versions of the protocol that it speaks.
    package let versions: [Int]
    package let issuer: String
    package let name: String
    package let identity: ProtocolKey
    /// Compact `tsp-next+jwt` messages, all that there ever were.
    package let next: [String]
    /// Compact `tsp-cert+jwt` messages.
    package let certificates: [String]

    /// The longest configuration in bytes.
    package static let limit = 256 << 10

    /// What an issuer says of itself.
    package init(
        issuer: String, name: String, identity: ProtocolKey, next: [String], certificates: [String]
    ) {
        versions = [1]
        (self.issuer, self.name, self.identity, self.next) = (issuer, name, identity, next)
        self.certificates = certificates
    }

    /// Reads a configuration. It may have members that are not known here.
    ///
    /// - Throws: ``SigningProtocolError``, with `versionUnsupported` when version 1 is not among its versions.
    package init(reading bytes: [UInt8]) throws(SigningProtocolError) {
        var reader = MemberReader(try StrictJSON.object(bytes, limit: Self.limit))
        versions = try MemberRule<[Int]>.elements(reader.value("v"), 1...16, at: "v").compactMap {
            $0.integer.map(Int.init)
        }
        guard versions.contains(1) else {
            throw SigningProtocolError(.versionUnsupported, "The server does not speak version 1.", member: "v")
        }
        issuer = try reader.read("iss", .issuer)
        name = try reader.read("name", .shown(1...64))
        identity = try reader.read("identity")
        next = try reader.read("next", .compacts(0...16))
        certificates = try reader.read("certs", .compacts(1...64))
    }

    /// The JSON's bytes.
    package func encoded() -> [UInt8] {
        let object: JSONObject = [
            "v": .array(versions.map { .integer($0) }), "iss": .string(issuer), "name": .string(name),
            "identity": identity.json, "next": .array(next.map(JSONValue.string)),
            "certs": .array(certificates.map(JSONValue.string)),
        ]
        return JSONValue.object(object).serializedBytes()
    }
}
