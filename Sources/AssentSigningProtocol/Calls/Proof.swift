import AssentCore

/// A device's proof of one call, in the header field `TSP-Proof`.
package struct CallProof: SignedContent {
    package static let type = MessageType.proof
    package let issuer: String
    package let did: SigningID
    package let method: String
    /// The request's URL without query and fragment.
    package let url: String
    /// The SHA-256 of the body.
    package let bodyHash: SigningHash
    package let nonce: String
    package let jti: SigningID

    package init(
        issuer: String, did: SigningID, method: String, url: String, bodyHash: SigningHash, nonce: String,
        jti: SigningID
    ) {
        (self.issuer, self.did, self.method, self.url, self.bodyHash) = (issuer, did, method, url, bodyHash)
        (self.nonce, self.jti) = (nonce, jti)
    }

    package static let shape = MessageShape<Self>(versioned: true, Self.init) {
        Member("aud", \.issuer, .issuer)
        Member("did", \.did)
        Member("htm", \.method, .ascii(1...16))
        Member("htu", \.url, .ascii(1...1024))
        Member("bh", \.bodyHash)
        Member("nonce", \.nonce, .nonce)
        Member("jti", \.jti)
    }
}

/// The content of a body that says nothing.
package struct EmptyBody: ShapedPart {
    package init() {}

    package static let shape = MessageShape<Self>(Self.init) {}
}

/// The content of `update`'s body.
package struct UpdateBody: ShapedPart {
    package let name: String?
    /// Where push messages go; empty: nowhere.
    package let pushId: String?
    package let properties: [String: String]?

    package init(name: String? = nil, pushId: String? = nil, properties: [String: String]? = nil) {
        (self.name, self.pushId, self.properties) = (name, pushId, properties)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member(optional: "name", \.name, .shown(1...128))
        Member(optional: "pushId", \.pushId, .ascii(0...1024))
        Member(optional: "properties", \.properties, .shownTexts(limit: 16, names: Self.isPropertyName, count: 0...256))
    }

    /// Whether a property may have this name: 1 to 32 printable ASCII characters.
    package static func isPropertyName(_ name: String) -> Bool {
        (1...32).contains(name.utf8.count) && name.utf8.allSatisfy(\.isASCIIPrintable)
    }
}

/// The content of `delete`'s body.
package struct DeleteBody: ShapedPart {
    /// For the audit log.
    package let reason: String?

    package init(reason: String? = nil) { self.reason = reason }

    package static let shape = MessageShape<Self>(Self.init) { Member(optional: "reason", \.reason, .shown(1...1000)) }
}
