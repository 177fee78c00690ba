import AssentCore
import AssentSigningProtocol

/// What all documents of a transaction have in common. The rest is known when a device fetches one: its keys.
struct DocumentDraft: ShapedPart {
    /// A status whose keys are named by their labels.
    struct Status: ShapedPart {
        let name: String
        let label: String
        let effect: DecisionEffect
        let keys: [String]
        let reason: ReasonRule

        static let shape = MessageShape<Self>(Self.init) {
            Member("name", \.name, .label)
            Member("label", \.label, .shown(1...40))
            Member("effect", \.effect)
            Member("keys", \.keys, .keyLabels)
            Member("reason", \.reason)
        }
    }

    /// How many bytes a draft may have, so that the document stays within 16 KiB with its keys.
    static let limit = 12 << 10

    let body: DocumentBody
    let statuses: [Status]

    static let shape = MessageShape<Self>(Self.init) {
        Member(embedded: \.body)
        Member("statuses", \.statuses, .objects(2...8))
    }

    func check(in reader: MemberReader) throws(SigningProtocolError) {
        guard Set(statuses.map { Array($0.label.utf8) }).count == statuses.count else {
            throw SigningProtocolError(.invalidMember, "Two statuses have the same label.", member: "statuses")
        }
    }
}

extension DocumentDraft {
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

    /// Makes a draft of fields, or of a message in the place of the template's text.
    init(
        _ template: SigningTemplate, fields: [DocumentField] = [], relyingParty: RelyingParty, locale: String = "en",
        origin: DocumentOrigin? = nil, message: String? = nil
    ) throws(SigningRefusal) {
        self.init(
            body: DocumentBody(
                relyingParty: relyingParty, locale: locale, title: template.title.text(locale),
                text: message ?? template.text.map { SigningTemplate.filled($0.text(locale), fields) },
                warning: template.warning.map { SigningTemplate.filled($0.text(locale), fields) }, origin: origin,
                fields: fields),
            statuses: template.statuses.map { status in
                Status(
                    name: status.name, label: status.label.text(locale), effect: status.effect, keys: status.keys,
                    reason: status.reason)
            })
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
        // The node that has made the transaction may be ahead of this one: an hour of it would be too long for devices.
        let issuedAt = max(now, transaction.createdAt)
        return TransactionDocument(
            issuer: issuer, did: container.did, issuedAt: Int(issuedAt), expiresAt: Int(transaction.expiresAt),
            txn: transaction.txn, sub: transaction.userID, kind: transaction.kind, body: body,
            statuses: statuses, request: transaction.req, nonce: nonce,
            match: transaction.matchNumber == nil ? nil : NumberMatch(mode: .number, digits: 2))
    }
}

extension MemberRule<[String]> {
    /// Labels of keys, as the template has them: the document names the keys by their thumbprints.
    fileprivate static var keyLabels: Self {
        Self(json: { .array($0.map(JSONValue.string)) }) { json, _ in json.array?.compactMap(\.string) ?? [] }
    }
}
