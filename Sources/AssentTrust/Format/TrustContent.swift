import AssentCore
package import AssentSigningProtocol

/// What a trust file says (`docs/trust-file.md`, "Members"). Times are seconds since 1970.
package struct TrustContent: ShapedPart, Hashable {
    /// `app/platform/environment`.
    package let audience: String
    package let version: Int
    package let issuedAt: Int
    /// From when on nothing in it is valid any more; `nil` when only its pins end.
    package let expires: Int?
    /// The keys that may sign the next version.
    package let keys: [ProtocolKey]
    package let hosts: [TrustedHost]
    /// The OAuth issuer.
    package let issuer: String
    /// The signing identity key.
    package let identity: KeyThumbprint
    package let payload: TrustedPayload?
    /// The keys that sign the device configuration.
    package let config: [ProtocolKey]
    package let controls: TrustControls
    /// Where the next version is asked for.
    package let source: [String]
    /// Whether probes may be replaced.
    package let development: Bool

    package static let shape = MessageShape<Self>(versioned: true, Self.init) {
        Member("aud", \.audience, .appAudience)
        Member("version", \.version, .integer(versions))
        Member("iat", \.issuedAt)
        Member(optional: "exp", \.expires)
        Member("keys", \.keys, .keys(2...8))
        Member("hosts", \.hosts, .objects(1...64))
        Member("issuer", \.issuer, .issuer)
        Member("identity", \.identity)
        Member(optional: "payload", \.payload)
        Member("config", \.config, .keys(1...4))
        Member("controls", \.controls)
        Member("source", \.source, .trustSources)
        Member(flag: "development", \.development)
    }

    /// The versions that there may be.
    package static let versions = 1...(1 << 31)

    package func check(in reader: MemberReader) throws(SigningProtocolError) {
        guard Set(hosts.map(\.host)).count == hosts.count else {
            throw .invalid(reader.path("hosts"), "names a host twice")
        }
        if let expires, expires <= issuedAt { throw .invalid(reader.path("exp"), "is not later than iat") }
    }
}

extension MemberRule<[String]> {
    /// At most three different https URLs without query, fragment and slash at the end.
    fileprivate static var trustSources: Self {
        Self(json: { .array($0.map(JSONValue.string)) }) { json, place throws(SigningProtocolError) in
            guard let sources = json.strings, sources.count <= 3, Set(sources).count == sources.count,
                sources.allSatisfy({ IssuerName.isValid($0) && (try? Origin($0)) != nil })
            else {
                throw .invalid(
                    place, "is not a list of at most 3 different https URLs without query and slash at the end")
            }
            return sources
        }
    }
}
