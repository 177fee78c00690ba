package import AssentCore

/// A part of a message, or the content of a request: an object whose members are all known.
///
/// Names are those of the specification: `did` the container, `pid` the invite, `sub` the user, `txn` the transaction,
/// `unl` an evaluation, `rid` and `jti` a request and a message, `kid` a key by its thumbprint, `nonceD` and `nonceS`
/// the nonces of device and server. Times are seconds since 1970. Initialisers check no bounds; the reader does.
package protocol MessagePart: MemberValue {
    /// Takes the members from `reader`, checking all bounds.
    init(reading reader: inout MemberReader) throws(SigningProtocolError)

    /// The members, in the order of the specification's example.
    var members: JSONObject { get }
}

extension MessagePart {
    /// Reads the plaintext of a request's body, or what was stored: JSON of at most `limit` bytes.
    ///
    /// - Throws: ``SigningProtocolError``.
    package init(
        plaintext: some Collection<UInt8>, limit: Int = MessageType.maximumBody
    ) throws(SigningProtocolError) {
        try self.init(StrictJSON.object(Array(plaintext), limit: limit), at: "")
    }

    /// Reads an object that stands at `place`, and refuses members that are not known.
    init(_ object: JSONObject, at place: String) throws(SigningProtocolError) {
        var reader = MemberReader(object, at: place)
        try self.init(reading: &reader)
        try reader.finish()
    }

    package init(_ json: JSONValue, at place: String) throws(SigningProtocolError) {
        guard let object = json.object else { throw .invalid(place, "is not an object") }
        try self.init(object, at: place)
    }

    package var json: JSONValue { .object(members) }

    /// The JSON's bytes: what is signed or encrypted.
    package func encoded() -> [UInt8] { json.serializedBytes() }
}

/// The content of a signed message.
package protocol SignedContent: ShapedPart {
    static var type: MessageType { get }
}

/// A message that is verified with a key in itself; its thumbprint must be the header's `kid`.
package protocol SelfSignedContent: SignedContent {
    var signer: ProtocolKey { get }
}

/// A reply of the server to one request of one device.
package protocol ReplyContent: ServerContent {
    var head: SigningReplyHead { get }
}

/// The members that every reply to a device has.
package struct SigningReplyHead: ShapedPart, Hashable {
    package let issuer: String
    /// The container's `did`; of an offer, the thumbprint of the device key.
    package let audience: String
    package let issuedAt: Int
    /// The hash of the request that it answers.
    package let request: SigningHash

    package init(issuer: String, audience: String, issuedAt: Int, request: SigningHash) {
        (self.issuer, self.audience, self.issuedAt, self.request) = (issuer, audience, issuedAt, request)
    }

    package static let shape = MessageShape<Self>(versioned: true, Self.init) {
        Member("iss", \.issuer, .issuer)
        Member("aud", \.audience, .ascii(22...43))
        Member("iat", \.issuedAt)
        Member("rqh", \.request)
    }
}
