package import AssentCore

/// A device's proof of one call, in the header field `TSP-Proof`.
package struct CallProof: SignedContent {
    /// `tsp-proof+jwt`.
    package static let type = MessageType.proof

    /// The issuer.
    package let issuer: String
    /// The container.
    package let did: SigningID
    /// The request's method.
    package let method: String
    /// The request's URL without query and fragment.
    package let url: String
    /// The SHA-256 of the body.
    package let bodyHash: SigningHash
    /// A nonce of the server.
    package let nonce: String
    /// The proof's id.
    package let jti: SigningID

    /// The content with these members; the reader checks their bounds.
    package init(
        issuer: String, did: SigningID, method: String, url: String, bodyHash: SigningHash, nonce: String,
        jti: SigningID
    ) {
        self.issuer = issuer
        self.did = did
        self.method = method
        self.url = url
        self.bodyHash = bodyHash
        self.nonce = nonce
        self.jti = jti
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        try reader.version()
        issuer = try reader.issuer("aud")
        did = try reader.fixed("did")
        method = try reader.ascii("htm", 1...16)
        url = try reader.ascii("htu", 1...1024)
        bodyHash = try reader.fixed("bh")
        nonce = try reader.nonce("nonce")
        jti = try reader.fixed("jti")
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "v": 1, "aud": .string(issuer), "did": did.json, "htm": .string(method), "htu": .string(url),
            "bh": bodyHash.json, "nonce": .string(nonce), "jti": jti.json,
        ])
    }
}

/// The content of a body that says nothing.
package struct EmptyBody: MessagePart {

    /// The content with these members; the reader checks their bounds.
    package init() {
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [:])
    }
}

/// The content of `update`'s body.
package struct UpdateBody: MessagePart {
    /// What the container is to be called.
    package let name: String?
    /// Where push messages go; empty: nowhere.
    package let pushId: String?
    /// Texts of the app's own.
    package let properties: [String: String]?

    /// The content with these members; the reader checks their bounds.
    package init(
        name: String? = nil, pushId: String? = nil, properties: [String: String]? = nil
    ) {
        self.name = name
        self.pushId = pushId
        self.properties = properties
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        name = reader.has("name") ? try reader.shown("name", 1...128) : nil
        pushId = reader.has("pushId") ? try reader.ascii("pushId", 0...1024) : nil
        properties =
            reader.has("properties")
            ? try reader.shownTexts("properties", limit: 16, names: Self.isPropertyName, count: 0...256) : nil
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "name": name.map { .string($0) }, "pushId": pushId.map { .string($0) },
            "properties": properties.map { .texts($0) },
        ])
    }

    /// Whether a property may have this name: 1 to 32 printable ASCII characters.
    package static func isPropertyName(_ name: String) -> Bool {
        (1...32).contains(name.utf8.count) && name.utf8.allSatisfy(\.isASCIIPrintable)
    }
}

/// The content of `delete`'s body.
package struct DeleteBody: MessagePart {
    /// For the audit log.
    package let reason: String?

    /// The content with these members; the reader checks their bounds.
    package init(
        reason: String? = nil
    ) {
        self.reason = reason
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        reason = reader.has("reason") ? try reader.shown("reason", 1...1000) : nil
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "reason": reason.map { .string($0) }
        ])
    }
}
