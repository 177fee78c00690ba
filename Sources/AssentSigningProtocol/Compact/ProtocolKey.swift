package import AssentCore
package import AssentJOSE

/// A public key on P-256 with its thumbprint: every key of the protocol.
package struct ProtocolKey: Hashable, Sendable {
    package let jwk: JWK

    /// The RFC 7638 SHA-256 thumbprint: the key's `kid`.
    package let thumbprint: KeyThumbprint

    private init(at place: String, _ jwk: () throws -> JWK) throws(SigningProtocolError) {
        guard let jwk = try? jwk(), jwk.verifies(.es256), let thumbprint = KeyThumbprint(text: jwk.thumbprint) else {
            throw .invalid(place, "is not a key on P-256")
        }
        (self.jwk, self.thumbprint) = (jwk, thumbprint)
    }

    /// Reads exactly `crv`, `kty`, `x` and `y`.
    ///
    /// - Throws: ``SigningProtocolError`` with `invalidMember`: also for other members, other curves, and points off
    ///   the curve.
    package init(_ json: JSONValue, at place: String = "jwk") throws(SigningProtocolError) {
        guard let object = json.object, object.members.count == 4,
            ["crv", "kty", "x", "y"].allSatisfy({ object[$0]?.string != nil }), object["crv"] == "P-256",
            object["kty"] == "EC"
        else { throw .invalid(place, "is not a key on P-256 with exactly crv, kty, x and y") }
        try self.init(at: place) { try JWK(json) }
    }

    /// The public part of a key that signs.
    package init(_ key: any SigningKey) throws(SigningProtocolError) {
        try self.init(at: "key") { try JWK(publicKeyInfo: key.publicKeyInfo) }
    }

    /// The public part of a key that decrypts.
    package init(_ key: any KeyAgreementKey) throws(SigningProtocolError) {
        try self.init(at: "key") { try JWK(publicPoint: key.publicPoint, use: nil) }
    }

    package var json: JSONValue {
        let object = jwk.json.object ?? JSONObject()
        return JSONValue(omittingNil: ["crv": object["crv"], "kty": "EC", "x": object["x"], "y": object["y"]])
    }

    /// Keys are equal when their thumbprints are.
    package static func == (one: ProtocolKey, other: ProtocolKey) -> Bool { one.thumbprint == other.thumbprint }

    /// Hashes the thumbprint.
    package func hash(into hasher: inout Hasher) { hasher.combine(thumbprint) }
}
