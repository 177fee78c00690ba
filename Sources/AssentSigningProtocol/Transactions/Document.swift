package import AssentCore

/// What a document is about.
public enum DocumentKind: String, Hashable, MemberValue, CaseIterable {
    /// An action, for example a payment.
    case transaction
    /// A sign-in.
    case authentication
    /// A text that the device itself sent; it completes nothing.
    case record

    /// The usage of the keys that may approve it.
    package var approvingUsage: SigningKeyUsage { self == .authentication ? .auth : .sign }
}

/// Whether a user gives a reason.
public enum ReasonRule: String, Hashable, MemberValue, CaseIterable {
    /// There is none.
    case none
    /// The user may.
    case optional
    /// The user must.
    case required
}

/// Who asks.
package struct RelyingParty: ShapedPart {
    /// The client's id.
    package let id: String
    /// The name that it is registered with.
    package let name: String

    package init(id: String, name: String) { (self.id, self.name) = (id, name) }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("id", \.id, .ascii(1...64))
        Member("name", \.name, .shown(1...64))
    }
}

/// Where a request began.
package struct DocumentOrigin: ShapedPart {
    package let place: String?
    package let address: String

    package init(place: String?, address: String) { (self.place, self.address) = (place, address) }

    package static let shape = MessageShape<Self>(Self.init) {
        Member(optional: "place", \.place, .shown(1...64))
        Member("address", \.address, .shown(1...64))
    }
}

/// An answer that the user may give.
package struct DocumentStatus: ShapedPart {
    package let name: String
    package let label: String
    package let effect: DecisionEffect
    /// The keys that may sign it.
    package let keys: [KeyThumbprint]
    package let reason: ReasonRule

    package init(name: String, label: String, effect: DecisionEffect, keys: [KeyThumbprint], reason: ReasonRule) {
        (self.name, self.label, self.effect, self.keys, self.reason) = (name, label, effect, keys, reason)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("name", \.name, .label)
        Member("label", \.label, .shown(1...40))
        Member("effect", \.effect)
        Member("kids", \.keys, .thumbprints(1...5))
        Member("reason", \.reason)
    }
}

/// A number must be typed to approve.
package struct NumberMatch: ShapedPart {
    package let mode: MatchMode
    package let digits: Int

    package init(mode: MatchMode, digits: Int) { (self.mode, self.digits) = (mode, digits) }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("mode", \.mode)
        Member("digits", \.digits, .integer(2...2))
    }
}

/// How a number is matched.
package enum MatchMode: String, Hashable, MemberValue, CaseIterable {
    case number
}

/// A typed value of a document, and the text that is shown.
package struct DocumentField: MessagePart {
    package let id: String
    /// What the user sees before the value.
    package let label: String
    package let value: FieldValue
    package let display: String

    /// A field that shows `value` as the protocol says.
    package init(id: String, label: String, value: FieldValue) {
        (self.id, self.label, self.value) = (id, label, value)
        display = value.display
    }

    /// Checks also that what is shown is the value: someone who has a server's
    /// online key could otherwise show another amount than the one that is signed.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        id = try reader.read("id", .label)
        label = try reader.read("label", .shown(1...40))
        let type: FieldType = try reader.read("type")
        value = try FieldValue(try reader.value("value"), type: type, at: reader.path("value"))
        display = try reader.read("display", .shown(1...FieldValue.displayLimit))
        guard StrictJSON.same(display, value.display) else {
            throw .invalid(reader.path("display"), "is not what the value reads as")
        }
    }

    package var members: JSONObject {
        [
            "id": .string(id), "label": .string(label), "type": value.type.json, "value": value.json,
            "display": .string(display),
        ]
    }
}

/// What all documents of a transaction show besides the answers.
package struct DocumentBody: ShapedPart {
    package let relyingParty: RelyingParty
    /// The language of the texts (BCP 47).
    package let locale: String
    package let title: String
    package let text: String?
    package let warning: String?
    package let origin: DocumentOrigin?
    package let fields: [DocumentField]

    package init(
        relyingParty: RelyingParty, locale: String, title: String, text: String?, warning: String?,
        origin: DocumentOrigin?, fields: [DocumentField]
    ) {
        (self.relyingParty, self.locale, self.title, self.text) = (relyingParty, locale, title, text)
        (self.warning, self.origin, self.fields) = (warning, origin, fields)
    }

    package static let shape = MessageShape<Self>(Self.init) {
        Member("rp", \.relyingParty)
        Member("locale", \.locale, .locale)
        Member("title", \.title, .shown(1...100))
        Member(optional: "text", \.text, .shown(1...1000))
        Member(optional: "warning", \.warning, .shown(1...200))
        Member(optional: "origin", \.origin)
        Member("fields", \.fields, .objects(0...16))
    }
}

/// What one device shows, and what its user's decision is about.
package struct TransactionDocument: SignedContent {
    package static let type = MessageType.document
    package let issuer: String
    package let did: SigningID
    package let issuedAt: Int
    package let expiresAt: Int
    package let txn: SigningID
    package let sub: String
    package let kind: DocumentKind
    package let body: DocumentBody
    package let statuses: [DocumentStatus]
    package let request: SigningHash
    package let nonce: SigningID
    /// Whether a number must be typed.
    package let match: NumberMatch?

    package init(
        issuer: String, did: SigningID, issuedAt: Int, expiresAt: Int, txn: SigningID, sub: String, kind: DocumentKind,
        body: DocumentBody, statuses: [DocumentStatus], request: SigningHash, nonce: SigningID,
        match: NumberMatch? = nil
    ) {
        (self.issuer, self.did, self.issuedAt, self.expiresAt, self.txn) = (issuer, did, issuedAt, expiresAt, txn)
        (self.sub, self.kind, self.body, self.statuses) = (sub, kind, body, statuses)
        (self.request, self.nonce, self.match) = (request, nonce, match)
    }

    package static let shape = MessageShape<Self>(versioned: true, Self.init) {
        Member("iss", \.issuer, .issuer)
        Member("aud", \.did)
        Member("iat", \.issuedAt)
        Member("exp", \.expiresAt)
        Member("txn", \.txn)
        Member("sub", \.sub, .ascii(1...64))
        Member("kind", \.kind)
        Member(embedded: \.body)
        Member("statuses", \.statuses, .objects(2...8))
        Member("req", \.request)
        Member("nonce", \.nonce)
        Member(optional: "match", \.match)
    }

    package func check(in reader: MemberReader) throws(SigningProtocolError) {
        guard (1...3600).contains(expiresAt - issuedAt) else { throw .invalid("exp", "is not within 1 hour after iat") }
        guard Set(body.fields.map(\.id)).count == body.fields.count else { throw .invalid("fields", "has an id twice") }
        guard Set(statuses.map(\.name)).count == statuses.count,
            Set(statuses.map { Array($0.label.utf8) }).count == statuses.count
        else { throw .invalid("statuses", "has a name or a label twice") }
    }

    /// The status with this name.
    package func status(named name: String) -> DocumentStatus? {
        statuses.first { StrictJSON.same($0.name, name) }
    }
}
