import AssentCore
import AssentSigningProtocol

/// What all documents of a transaction have in common. The rest is known when a device fetches one: its keys.
struct DocumentDraft: MessagePart {
    /// A status whose keys are named by their labels.
    struct Status: MessagePart {
        let name: String
        let label: String
        let effect: DecisionEffect
        let keys: [String]
        let reason: ReasonRule

        init(_ status: SigningTemplate.Status, locale: String) {
            name = status.name
            label = status.label.text(locale)
            effect = status.effect
            keys = status.keys
            reason = status.reason
        }

        init(reading reader: inout MemberReader) throws(SigningProtocolError) {
            name = try reader.read("name", .label)
            label = try reader.read("label", .shown(1...40))
            effect = try reader.read("effect")
            keys = try reader.value("keys").array?.compactMap(\.string) ?? []
            reason = try reader.read("reason")
        }

        var members: JSONObject {
            [
                "name": .string(name), "label": .string(label), "effect": .string(effect.rawValue),
                "keys": .array(keys.map(JSONValue.string)), "reason": .string(reason.rawValue),
            ]
        }
    }

    /// How many bytes a draft may have, so that the document stays within 16 KiB with its keys.
    static let limit = 12 << 10

    let relyingParty: RelyingParty
    let locale: String
    let title: String
    let text: String?
    let warning: String?
    let origin: DocumentOrigin?
    let fields: [DocumentField]
    let statuses: [Status]

    /// Makes a draft by a template.
    ///
    /// - Throws: ``SigningRefusal`` `invalid_request` when a value is missing, of another type, or cannot be shown, and
    ///   when `details` has a member that the user would not see.
    init(
        _ template: SigningTemplate, details: JSONValue, relyingParty: RelyingParty, locale: String,
        origin: DocumentOrigin?
    ) throws(SigningRefusal) {
        var fields: [DocumentField] = []
        let content = ShownContent(details: details)
        let shown = template.fields.map { ContentPointer(json: $0.pointer) }
        for (field, pointer) in zip(template.fields, shown) {
            guard let value = content.value(at: pointer) else {
                throw SigningRefusal(.invalidRequest, "\(field.pointer) is missing in what is asked for.")
            }
            do {
                let value = try FieldValue(value, type: field.type, at: field.pointer)
                try value.checkReading(at: field.pointer)
                fields.append(DocumentField(id: field.id, label: field.label.text(locale), value: value))
            } catch {
                throw SigningRefusal(.invalidRequest, error.detail)
            }
        }
        if let place = content.firstUnseen(shown: shown, leftOut: template.leftOut) {
            throw SigningRefusal(
                .invalidRequest, "\(place) is neither shown to the user nor left out by name in the template.")
        }
        try self.init(template, fields: fields, relyingParty: relyingParty, locale: locale, origin: origin)
    }

    /// Makes a draft of a message that a device wants to sign.
    init(_ template: SigningTemplate, message: String, relyingParty: RelyingParty) throws(SigningRefusal) {
        try self.init(
            template, fields: [], relyingParty: relyingParty, locale: "en", origin: nil, message: message)
    }

    /// Makes a draft of the lines that a policy shows.
    init(
        _ template: SigningTemplate, lines: [DisplayField], locale: String, relyingParty: RelyingParty,
        origin: DocumentOrigin?
    ) throws(SigningRefusal) {
        var fields: [DocumentField] = []
        for (index, line) in lines.enumerated() {
            fields.append(DocumentField(id: "line-\(index + 1)", label: line.label, value: .text(line.value)))
        }
        try self.init(template, fields: fields, relyingParty: relyingParty, locale: locale, origin: origin)
    }

    private init(
        _ template: SigningTemplate, fields: [DocumentField], relyingParty: RelyingParty, locale: String,
        origin: DocumentOrigin?, message: String? = nil
    ) throws(SigningRefusal) {
        self.relyingParty = relyingParty
        self.locale = locale
        title = template.title.text(locale)
        text = message ?? template.text.map { SigningTemplate.filled($0.text(locale), fields) }
        warning = template.warning.map { SigningTemplate.filled($0.text(locale), fields) }
        self.origin = origin
        self.fields = fields
        statuses = template.statuses.map { Status($0, locale: locale) }
        guard encoded().count <= Self.limit else {
            throw SigningRefusal(.invalidRequest, "The request is too long to be shown.")
        }
        do {
            // Reading it checks all bounds, before the user is asked.
            _ = try DocumentDraft(plaintext: encoded())
        } catch {
            throw SigningRefusal(.invalidRequest, error.detail)
        }
    }

    /// Reads a stored draft.
    init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        relyingParty = try reader.read("rp")
        locale = try reader.read("locale", .locale)
        title = try reader.read("title", .shown(1...100))
        text = reader.has("text") ? try reader.read("text", .shown(1...1000)) : nil
        warning = reader.has("warning") ? try reader.read("warning", .shown(1...200)) : nil
        origin = reader.has("origin") ? try reader.read("origin") : nil
        fields = try reader.read("fields", .objects(0...16))
        statuses = try reader.read("statuses", .objects(2...8))
        guard Set(statuses.map { Array($0.label.utf8) }).count == statuses.count else {
            throw SigningProtocolError(.invalidMember, "Two statuses have the same label.", member: "statuses")
        }
    }

    /// The members.
    var members: JSONObject {
        JSONObject(omittingNil: [
            "rp": relyingParty.json, "locale": .string(locale), "title": .string(title),
            "text": text.map(JSONValue.string), "warning": warning.map(JSONValue.string), "origin": origin?.json,
            "fields": .array(fields.map(\.json)), "statuses": .array(statuses.map(\.json)),
        ])
    }

    /// The statuses with the keys of a container; `nil` when it has none for one of them.
    func statuses(
        of transaction: SigningTransactionRecord, for container: SigningContainerRecord, keys: [SigningKeyRow]
    ) -> [DocumentStatus]? {
        var statuses: [DocumentStatus] = []
        for status in self.statuses {
            var kids = [container.deviceKeyID]
            if status.effect == .approve {
                let usable = keys.filter { $0.approves(transaction.kind.approvingUsage, labels: status.keys) }
                kids = usable.prefix(5).map(\.kid)
            }
            guard !kids.isEmpty else { return nil }
            statuses.append(
                DocumentStatus(
                    name: status.name, label: status.label, effect: status.effect, keys: kids,
                    reason: status.reason))
        }
        return statuses
    }

    /// The document of a container; `nil` when it has no key that may approve.
    func document(
        of transaction: SigningTransactionRecord, for container: SigningContainerRecord, keys: [SigningKeyRow],
        issuer: String, nonce: SigningID, at now: Int64
    ) -> TransactionDocument? {
        guard let statuses = statuses(of: transaction, for: container, keys: keys) else { return nil }
        return TransactionDocument(
            issuer: issuer, did: container.did, issuedAt: Int(now), expiresAt: Int(transaction.expiresAt),
            txn: transaction.txn, sub: transaction.userID, kind: transaction.kind, relyingParty: relyingParty,
            locale: locale, title: title, text: text,
            warning: warning, origin: origin, fields: fields, statuses: statuses, request: transaction.req,
            nonce: nonce,
            match: transaction.matchNumber == nil ? nil : NumberMatch(mode: .number, digits: 2))
    }
}
