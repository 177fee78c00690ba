package import AssentCore

/// What a document is about.
public enum DocumentKind: String, Hashable, Sendable, CaseIterable {
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
public enum ReasonRule: String, Hashable, Sendable, CaseIterable {
    /// There is none.
    case none
    /// The user may.
    case optional
    /// The user must.
    case required
}

/// Who asks.
package struct RelyingParty: MessagePart {
    /// The client's id.
    package let id: String
    /// The name that it is registered with.
    package let name: String

    /// The content with these members; the reader checks their bounds.
    package init(
        id: String, name: String
    ) {
        self.id = id
        self.name = name
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        id = try reader.ascii("id", 1...64)
        name = try reader.shown("name", 1...64)
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "id": .string(id), "name": .string(name),
        ])
    }
}

/// Where a request began.
package struct DocumentOrigin: MessagePart {
    /// The place, if it is known.
    package let place: String?
    /// The network address.
    package let address: String

    /// The content with these members; the reader checks their bounds.
    package init(
        place: String?, address: String
    ) {
        self.place = place
        self.address = address
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        place = reader.has("place") ? try reader.shown("place", 1...64) : nil
        address = try reader.shown("address", 1...64)
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "place": place.map(JSONValue.string), "address": .string(address),
        ])
    }
}

/// An answer that the user may give.
package struct DocumentStatus: MessagePart {
    /// Its name.
    package let name: String
    /// What the user sees.
    package let label: String
    /// What it does.
    package let effect: DecisionEffect
    /// The keys that may sign it.
    package let keys: [KeyThumbprint]
    /// Whether the user gives a reason.
    package let reason: ReasonRule

    /// The content with these members; the reader checks their bounds.
    package init(
        name: String, label: String, effect: DecisionEffect, keys: [KeyThumbprint], reason: ReasonRule
    ) {
        self.name = name
        self.label = label
        self.effect = effect
        self.keys = keys
        self.reason = reason
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        name = try reader.label("name")
        label = try reader.shown("label", 1...40)
        effect = try reader.choice("effect")
        keys = try reader.thumbprints("kids", 1...5)
        reason = try reader.choice("reason")
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "name": .string(name), "label": .string(label), "effect": effect.json, "kids": keys.jsonArray(\.json),
            "reason": reason.json,
        ])
    }
}

/// A number must be typed to approve.
package struct NumberMatch: MessagePart {
    /// Always `number`.
    package let mode: MatchMode
    /// How many digits it has.
    package let digits: Int

    /// The content with these members; the reader checks their bounds.
    package init(
        mode: MatchMode, digits: Int
    ) {
        self.mode = mode
        self.digits = digits
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        mode = try reader.choice("mode")
        digits = try reader.integer("digits", 2...2)
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "mode": mode.json, "digits": .integer(digits),
        ])
    }
}

/// How a number is matched.
package enum MatchMode: String, Hashable, Sendable, CaseIterable {
    /// The user types it.
    case number
}

/// A typed value of a document, and the text that is shown.
package struct DocumentField: MessagePart {
    /// Its name.
    package let id: String
    /// What the user sees before the value.
    package let label: String
    /// The value.
    package let value: FieldValue
    /// What the user sees.
    package let display: String

    /// A field that shows `value` as the protocol says.
    package init(id: String, label: String, value: FieldValue) {
        self.id = id
        self.label = label
        self.value = value
        display = value.display
    }

    /// Reads the members and checks their bounds, and that what is shown is the value: someone who has a server's
    /// online key could otherwise show another amount than the one that is signed.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        id = try reader.label("id")
        label = try reader.shown("label", 1...40)
        let type: FieldType = try reader.choice("type")
        value = try FieldValue(try reader.value("value"), type: type, at: reader.path("value"))
        display = try reader.shown("display", 1...FieldValue.displayLimit)
        guard StrictJSON.same(display, value.display) else {
            throw .invalid(reader.path("display"), "is not what the value reads as")
        }
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        [
            "id": .string(id), "label": .string(label), "type": value.type.json, "value": value.json,
            "display": .string(display),
        ]
    }
}

/// What one device shows, and what its user's decision is about.
package struct TransactionDocument: SignedContent {
    /// `tsp-txd+jwt`.
    package static let type = MessageType.document

    /// The issuer.
    package let issuer: String
    /// The container.
    package let did: SigningID
    /// When this document was made.
    package let issuedAt: Int
    /// Until when it is open.
    package let expiresAt: Int
    /// The transaction.
    package let txn: SigningID
    /// The user's id.
    package let sub: String
    /// What it is about.
    package let kind: DocumentKind
    /// Who asks.
    package let relyingParty: RelyingParty
    /// The language of the texts (BCP 47).
    package let locale: String
    /// The title.
    package let title: String
    /// The text.
    package let text: String?
    /// A warning.
    package let warning: String?
    /// Where the request began.
    package let origin: DocumentOrigin?
    /// The details.
    package let fields: [DocumentField]
    /// The answers that the user may give.
    package let statuses: [DocumentStatus]
    /// What was asked.
    package let request: SigningHash
    /// Of this document.
    package let nonce: SigningID
    /// Whether a number must be typed.
    package let match: NumberMatch?

    /// The content with these members; the reader checks their bounds.
    package init(
        issuer: String, did: SigningID, issuedAt: Int, expiresAt: Int, txn: SigningID, sub: String,
        kind: DocumentKind, relyingParty: RelyingParty, locale: String, title: String, text: String? = nil,
        warning: String? = nil, origin: DocumentOrigin? = nil, fields: [DocumentField], statuses: [DocumentStatus],
        request: SigningHash, nonce: SigningID, match: NumberMatch? = nil
    ) {
        self.issuer = issuer
        self.did = did
        self.issuedAt = issuedAt
        self.expiresAt = expiresAt
        self.txn = txn
        self.sub = sub
        self.kind = kind
        self.relyingParty = relyingParty
        self.locale = locale
        self.title = title
        self.text = text
        self.warning = warning
        self.origin = origin
        self.fields = fields
        self.statuses = statuses
        self.request = request
        self.nonce = nonce
        self.match = match
    }

    /// Reads the members and checks their bounds.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        try reader.version()
        issuer = try reader.issuer("iss")
        did = try reader.fixed("aud")
        issuedAt = try reader.integer("iat")
        expiresAt = try reader.integer("exp")
        txn = try reader.fixed("txn")
        sub = try reader.ascii("sub", 1...64)
        kind = try reader.choice("kind")
        relyingParty = try reader.object("rp")
        locale = try reader.locale("locale")
        title = try reader.shown("title", 1...100)
        text = reader.has("text") ? try reader.shown("text", 1...1000) : nil
        warning = reader.has("warning") ? try reader.shown("warning", 1...200) : nil
        origin = reader.has("origin") ? try reader.object("origin") : nil
        fields = try reader.objects("fields", 0...16)
        statuses = try reader.objects("statuses", 2...8)
        request = try reader.fixed("req")
        nonce = try reader.fixed("nonce")
        match = reader.has("match") ? try reader.object("match") : nil
        guard (1...3600).contains(expiresAt - issuedAt) else { throw .invalid("exp", "is not within 1 hour after iat") }
        guard Set(fields.map(\.id)).count == fields.count else { throw .invalid("fields", "has an id twice") }
        guard Set(statuses.map(\.name)).count == statuses.count,
            Set(statuses.map { Array($0.label.utf8) }).count == statuses.count
        else { throw .invalid("statuses", "has a name or a label twice") }
    }

    /// The members, in the order of the specification's example.
    package var members: JSONObject {
        JSONObject(omittingNil: [
            "v": 1, "iss": .string(issuer), "aud": did.json, "iat": .integer(issuedAt), "exp": .integer(expiresAt),
            "txn": txn.json, "sub": .string(sub), "kind": kind.json, "rp": relyingParty.json,
            "locale": .string(locale), "title": .string(title), "text": text.map { .string($0) },
            "warning": warning.map { .string($0) }, "origin": origin.map { $0.json },
            "fields": fields.jsonArray(\.json), "statuses": statuses.jsonArray(\.json), "req": request.json,
            "nonce": nonce.json, "match": match.map { $0.json },
        ])
    }

    /// The status with this name.
    package func status(named name: String) -> DocumentStatus? {
        statuses.first { StrictJSON.same($0.name, name) }
    }
}
