package import AssentCore

/// A transaction while its journey runs: what the user is asked to approve.
package struct PendingApproval: Sendable, Hashable {
    /// The transaction's id.
    package let id: String

    /// The journey that must succeed (`strategySpecifier`).
    package let journey: String

    /// The request's method, when it is bound.
    package let method: String?

    /// The resource's URL; with its query when that is bound.
    package let resource: String

    /// The media type of the request's body, when the body is bound and has one.
    package let contentType: String?

    /// The body's SHA-256, when it is bound and there is one.
    package let bodySHA256: String?

    /// What the user is shown, in order.
    package let display: [DisplayField]

    /// When the transaction expires, in seconds since 1970.
    package let expiresAt: Int64

    /// The OAuth client whose access token came with the request; `nil` when none did.
    package var clientID: String?

    /// The language in which it is shown.
    package var language = "en"

    /// What is said of a body that is bound and of which nothing is shown: a label and a value.
    static let unshownBody = [
        LocalizedText("Content", byLanguage: ["en": "Content", "de": "Inhalt"]),
        LocalizedText("not shown here", byLanguage: ["en": "not shown here", "de": "wird hier nicht angezeigt"]),
    ]

    private static let emptyBody = Base64URL.encode(SHA2.sha256([]))

    /// What a user reads: ``display``, or that there is a body of which nothing is shown.
    package var lines: [DisplayField] {
        guard display.isEmpty, let bodySHA256, bodySHA256 != Self.emptyBody else { return display }
        let texts = Self.unshownBody.map { $0.text(language) }
        return [DisplayField(label: texts[0], value: texts[1])]
    }

    /// An approval that is pending.
    package init(
        id: String, journey: String, method: String?, resource: String, contentType: String?, bodySHA256: String?,
        display: [DisplayField], expiresAt: Int64
    ) {
        self.id = id
        self.journey = journey
        self.method = method
        self.resource = resource
        self.contentType = contentType
        self.bodySHA256 = bodySHA256
        self.display = display
        self.expiresAt = expiresAt
    }
}

extension PendingApproval {
    /// The approval as it is stored between two pages.
    var stored: JSONValue {
        var object: JSONObject = [
            "id": .string(id), "journey": .string(journey), "resource": .string(resource),
            "display": .array(display.map(\.json)), "expiresAt": .integer(expiresAt),
        ]
        object["method"] = method.map(JSONValue.string)
        if language != "en" { object["language"] = .string(language) }
        object["client"] = clientID.map(JSONValue.string)
        object["contentType"] = contentType.map(JSONValue.string)
        object["bodySHA256"] = bodySHA256.map(JSONValue.string)
        return .object(object)
    }

    /// Reads what ``stored`` has written; `nil` for anything else.
    init?(stored json: JSONValue) {
        guard let id = json["id"]?.string, let journey = json["journey"]?.string,
            let resource = json["resource"]?.string, let display = json["display"]?.array,
            let expiresAt = json["expiresAt"]?.integer
        else { return nil }
        self.init(
            id: id, journey: journey, method: json["method"]?.string, resource: resource,
            contentType: json["contentType"]?.string, bodySHA256: json["bodySHA256"]?.string,
            display: display.map {
                DisplayField(label: $0["label"]?.string ?? "", value: $0["value"]?.string ?? "")
            }, expiresAt: expiresAt)
        clientID = json["client"]?.string
        language = json["language"]?.string ?? "en"
    }
}
