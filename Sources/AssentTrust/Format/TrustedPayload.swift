import AssentCore
import AssentPayload
package import AssentSigningProtocol

/// How calls are sealed inside of TLS (`docs/payload-encryption.md`).
package struct TrustedPayload: ShapedPart, Hashable {
    package let suite: PayloadSuite
    package let mode: PayloadMode
    package let keys: [TrustedPayloadKey]
    /// Whose calls are sealed.
    package let origins: [String]

    package static let shape = MessageShape<Self>(Self.init) {
        Member("suite", \.suite)
        Member("mode", \.mode)
        Member("keys", \.keys, .objects(2...8))
        Member("origins", \.origins, .payloadOrigins)
    }

    package func check(in reader: MemberReader) throws(SigningProtocolError) {
        guard Set(keys.map(\.kid)).count == keys.count else {
            throw .invalid(reader.path("keys"), "has a key twice")
        }
    }
}

/// The one suite that there is.
package enum PayloadSuite: String, MemberValue, Hashable { case pe1 }

/// Who decides whether calls are sealed.
package enum PayloadMode: String, MemberValue, Hashable {
    /// The device configuration.
    case server
    /// Nobody: they always are.
    case always
}

/// A server's static key.
package struct TrustedPayloadKey: ShapedPart, Hashable {
    package let kid: KeyThumbprint
    /// The X25519 public key.
    package let x: [UInt8]
    /// The first second in which it is not used any more.
    package let notAfter: Int

    package static let shape = MessageShape<Self>(Self.init) {
        Member("kid", \.kid)
        Member("x", \.x, .bytes(32))
        Member("notAfter", \.notAfter)
    }

    package func check(in reader: MemberReader) throws(SigningProtocolError) {
        guard let key = try? PayloadKey(x), key.kid == kid.text else {
            throw .invalid(reader.path("kid"), "is not the thumbprint of x")
        }
    }
}

extension MemberRule<[String]> {
    /// Different https origins.
    fileprivate static var payloadOrigins: Self {
        Self(json: { .array($0.map(JSONValue.string)) }) { json, place throws(SigningProtocolError) in
            guard let origins = json.strings, (1...64).contains(origins.count), Set(origins).count == origins.count,
                origins.allSatisfy({ text in
                    guard let origin = try? Origin(headerValue: text) else { return false }
                    return origin.isSecure && origin.description == text
                })
            else { throw .invalid(place, "is not a list of 1 to 64 different https origins") }
            return origins
        }
    }
}
