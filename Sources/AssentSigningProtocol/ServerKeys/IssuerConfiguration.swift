import AssentCore

/// What an issuer says of itself at `/configuration`. It is not signed: everything in it is checked from the pinned
/// identity key on, see ``IssuerTrust``.
package struct IssuerConfiguration: ShapedPart {
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

    package init(
        versions: [Int] = [1], issuer: String, name: String, identity: ProtocolKey, next: [String],
        certificates: [String]
    ) {
        (self.versions, self.issuer, self.name, self.identity) = (versions, issuer, name, identity)
        (self.next, self.certificates) = (next, certificates)
    }

    /// Reads a configuration. It may have members that are not known here.
    ///
    /// - Throws: ``SigningProtocolError``, with `versionUnsupported` when version 1 is not among its versions.
    package init(reading bytes: [UInt8]) throws(SigningProtocolError) {
        var reader = MemberReader(try StrictJSON.object(bytes, limit: Self.limit))
        try self.init(reading: &reader)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("v", \.versions, .versions)
        Member("iss", \.issuer, .issuer)
        Member("name", \.name, .shown(1...64))
        Member("identity", \.identity)
        Member("next", \.next, .compacts(0...16))
        Member("certs", \.certificates, .compacts(1...64))
    }
}

extension MemberRule<[Int]> {
    /// Versions of the protocol, with 1 among them.
    fileprivate static var versions: Self {
        Self(json: { .array($0.map(\.json)) }) { json, place throws(SigningProtocolError) in
            let versions = try elements(json, 1...16, at: place).compactMap { $0.integer.map(Int.init) }
            guard versions.contains(1) else {
                throw SigningProtocolError(.versionUnsupported, "The server does not speak version 1.", member: place)
            }
            return versions
        }
    }
}
