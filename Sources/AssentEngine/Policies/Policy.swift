package import AssentCore
package import AssentSigningProtocol
import Crypto

/// The policies that a gateway or another enforcement point asks about under one name (AM's "application").
package struct PolicySet: Sendable, Hashable {
    /// Its name.
    package let name: String

    /// Its realm, for example `/alpha`.
    package let realm: String

    /// The actions that its policies may speak of.
    package let actions: [String]

    /// Its policies.
    package let policies: [Policy]

    /// Whether users may ask about their own access over REST; otherwise only the roles `pep` and `admin` may.
    package let selfEvaluation: Bool

    /// The actions of AM's own resource type for URLs.
    package static let defaultActions = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"]

    /// A policy set.
    package init(
        name: String, realm: String, actions: [String] = defaultActions, policies: [Policy],
        selfEvaluation: Bool = true
    ) {
        self.selfEvaluation = selfEvaluation
        self.name = name
        self.realm = realm
        self.actions = actions
        self.policies = policies
    }
}

/// Which access is granted to whom under which condition.
package struct Policy: Sendable, Hashable {
    /// Its name, unique in its set.
    package let name: String

    /// Whether it is in force.
    package let isActive: Bool

    /// Which resources it is about.
    package let resources: [ResourcePattern]

    /// What it says of each action: granted or denied. Of an action that is not named it says nothing.
    package let actionValues: [String: Bool]

    /// Whom it is for.
    package let subject: PolicySubject

    /// Under which circumstances.
    package let condition: PolicyCondition?

    /// What a transaction is bound to besides the resource's URL without query, the subject and the session.
    package let bind: Set<BoundField>

    /// What the user is shown of the request's body and query.
    package let display: [DisplayRule]

    /// What the user is not shown, as written: places in the body (`/reference`) and parameters of the query (`?page`).
    /// Whatever is neither here nor in ``display`` is refused, if something is displayed.
    package let notShown: [String]

    /// What a decision tells the enforcement point besides.
    package let attributes: [PolicyAttribute]

    /// The digest of all of the above: a transaction made under another revision grants nothing.
    package let revision: String

    /// All of that as JSON, in AM's names where AM has them.
    let definition: JSONObject

    /// A policy.
    package init(
        name: String, isActive: Bool = true, resources: [ResourcePattern], actionValues: [String: Bool],
        subject: PolicySubject, condition: PolicyCondition? = nil, bind: Set<BoundField> = [],
        display: [DisplayRule] = [], notShown: [String] = [], attributes: [PolicyAttribute] = []
    ) {
        self.name = name
        self.isActive = isActive
        self.resources = resources
        self.actionValues = actionValues
        self.subject = subject
        self.condition = condition
        self.bind = bind
        self.display = display
        self.notShown = notShown
        self.attributes = attributes
        let definition: JSONObject = [
            "name": .string(name), "active": .bool(isActive),
            "resources": .array(resources.map { .string($0.text) }),
            "actionValues": .object(
                JSONObject(actionValues.sorted { $0.key < $1.key }.map { .init(name: $0.key, value: .bool($0.value)) })),
            "subject": subject.json, "condition": condition?.json ?? .null,
            "bind": .array(bind.map(\.rawValue).sorted().map { .string($0) }),
            "display": .array(display.map(\.json)), "notShown": .array(notShown.map { .string($0) }),
            "attributes": .array(attributes.map(\.json)),
        ]
        self.definition = definition
        revision = Base64URL.encode(Array(SHA256.hash(data: JSONValue.object(definition).serializedBytes())))
    }

    /// The places of ``notShown``.
    package var leftOut: [ContentPointer] { notShown.compactMap(ContentPointer.init(leftOut:)) }

    /// Whether the policy is about a resource.
    package func covers(_ resource: CanonicalResource) -> Bool {
        resources.contains { $0.matches(resource) }
    }
}

/// A part of the request that a transaction may be bound to.
package enum BoundField: String, Sendable, Hashable, CaseIterable {
    /// The HTTP method.
    case method
    /// The query, its parameters sorted by name.
    case query
    /// The media type and the SHA-256 of the body.
    case body
}

/// One line of what the user is shown: a label, and a member of the request's body, which must be JSON or a form, or a
/// parameter of its query.
package struct DisplayRule: Sendable, Hashable {
    /// What the line is called, for example `Amount`.
    package let label: LocalizedText

    /// Where the value stands: a JSON Pointer (RFC 6901), the name of a member of the outermost object or of a form's
    /// field, or a question mark and the name of a parameter of the query. With ``each`` it begins at the element, and
    /// the empty text is the element itself.
    package let field: String

    /// Where a second value stands that is written behind the first: a currency or a unit.
    package let suffix: String?

    /// What kind of value it must be; `nil` for any single value.
    package let type: FieldType?

    /// The list with a line for each of its elements: a JSON Pointer, `/` for a body that is a list, or a question mark
    /// and the name of a parameter that may come several times. Rules in a row with the same list are shown together
    /// for each element.
    package let each: String?

    /// A rule.
    package init(
        label: LocalizedText, field: String, suffix: String? = nil, type: FieldType? = nil, each: String? = nil
    ) {
        self.label = label
        self.field = field
        self.suffix = suffix
        self.type = type
        self.each = each
    }

    var json: JSONValue {
        var object: JSONObject = [
            "label": label.json, "field": .string(field), "suffix": suffix.map { .string($0) } ?? .null,
        ]
        object["type"] = type.map { .string($0.rawValue) }
        object["each"] = each.map { .string($0) }
        return .object(object)
    }
}

/// What a decision tells the enforcement point besides grants.
package enum PolicyAttribute: Sendable, Hashable {
    /// Always the same values.
    case fixed(name: String, values: [String])
    /// An attribute of the user.
    case user(name: String)

    var json: JSONValue {
        switch self {
        case .fixed(let name, let values):
            [
                "type": "Static", "propertyName": .string(name),
                "propertyValues": .array(values.map { .string($0) }),
            ]
        case .user(let name): ["type": "User", "propertyName": .string(name)]
        }
    }
}
