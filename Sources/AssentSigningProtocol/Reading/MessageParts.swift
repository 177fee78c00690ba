package import AssentCore

/// A part of a message, or the content of a request: an object whose members are all known.
package protocol MessagePart: Sendable {
    /// Takes the members from `reader`, checking all bounds.
    init(reading reader: inout MemberReader) throws(SigningProtocolError)

    /// The members, in the order of the specification's example.
    var members: JSONObject { get }
}

extension MessagePart {
    /// Reads the plaintext of a request's body.
    ///
    /// - Throws: ``SigningProtocolError``.
    package init(plaintext: [UInt8]) throws(SigningProtocolError) {
        var reader = MemberReader(try StrictJSON.object(plaintext, limit: MessageType.maximumBody))
        try self.init(reading: &reader)
        try reader.finish()
    }

    /// The JSON.
    package var json: JSONValue { .object(members) }

    /// The JSON's bytes: what is signed or encrypted.
    package func encoded() -> [UInt8] { json.serializedBytes() }
}

/// The content of a signed message.
package protocol SignedContent: MessagePart {
    /// The message's `typ`.
    static var type: MessageType { get }
}

/// A message that is verified with a key in itself; its thumbprint must be the header's `kid`.
package protocol SelfSignedContent: SignedContent {
    /// The key that signed it.
    var signer: ProtocolKey { get }
}

/// A reply of the server to one request of one device.
package protocol ReplyContent: ServerContent {
    /// What each reply has.
    var head: SigningReplyHead { get }
}

/// The members that every reply to a device has.
package struct SigningReplyHead: Hashable, Sendable {
    /// `iss`: the issuer.
    package let issuer: String
    /// `aud`: the container's `did`; of an offer, the thumbprint of the device key.
    package let audience: String
    /// `iat`: when it was made.
    package let issuedAt: Int
    /// `rqh`: the hash of the request that it answers.
    package let request: SigningHash

    /// The head of a reply.
    package init(issuer: String, audience: String, issuedAt: Int, request: SigningHash) {
        self.issuer = issuer
        self.audience = audience
        self.issuedAt = issuedAt
        self.request = request
    }

    init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        try reader.version()
        issuer = try reader.issuer("iss")
        audience = try reader.ascii("aud", 22...43)
        issuedAt = try reader.integer("iat")
        request = try reader.fixed("rqh")
    }

    func with(_ members: KeyValuePairs<String, JSONValue?>) -> JSONObject {
        let head: JSONObject = [
            "v": 1, "iss": .string(issuer), "aud": .string(audience), "iat": .integer(issuedAt), "rqh": request.json,
        ]
        return JSONObject(head.members + JSONObject(omittingNil: members).members)
    }
}

extension FixedBytes {
    var json: JSONValue { .string(text) }
}

extension RawRepresentable<String> {
    var json: JSONValue { .string(rawValue) }
}

extension Sequence {
    func jsonArray(_ value: (Element) -> JSONValue) -> JSONValue { .array(map(value)) }
}

extension JSONValue {
    static func texts(_ texts: [String: String], order: [String]? = nil) -> JSONValue {
        .object(
            JSONObject(
                (order ?? texts.keys.sorted()).compactMap { name in
                    texts[name].map { JSONObject.Member(name: name, value: .string($0)) }
                }))
    }
}
