package import AssentCore

/// Policies and policy sets as AM's REST interface shows them. What only AM's store knows (who made them and when) is
/// not there: they are in the server's file.
extension PolicySet {
    /// The id of AM's own resource type for URLs.
    private static let urlTypeID = "76656a38-5f8e-401b-83aa-4ccb74ce88d2"

    /// AM's one way to combine policies: what one of them denies is denied.
    private static let combiner = "DenyOverride"

    /// AM's type of policy sets for URLs.
    private static let applicationType = "iPlanetAMWebAgentService"

    private var hasDefaultActions: Bool { Set(actions) == Set(Self.defaultActions) }

    /// The id of the type of its resources: AM's own, or the set's where that names other actions.
    package var resourceTypeID: String { hasDefaultActions ? Self.urlTypeID : name }

    /// The set as AM's "application".
    package var object: JSONObject {
        [
            "_id": .string(name), "name": .string(name), "displayName": .string(name), "realm": .string(realm),
            "applicationType": .string(Self.applicationType), "entitlementCombiner": .string(Self.combiner),
            "resourceTypeUuids": [.string(resourceTypeID)],
            "conditions": .array(PolicyType.conditions.map { .string($0.name) }),
            "subjects": .array(PolicyType.subjects.map { .string($0.name) }), "attributeNames": [], "editable": false,
        ]
    }

    /// The type of its resources.
    package var resourceType: JSONObject {
        [
            "_id": .string(resourceTypeID), "uuid": .string(resourceTypeID),
            "name": .string(hasDefaultActions ? "URL" : name), "patterns": ["*://*:*/*", "*://*:*/*?*"],
            "actions": .object(JSONObject(actions.sorted().map { .init(name: $0, value: true) })),
        ]
    }

    /// A policy of the set, with our members beside AM's.
    package func object(of policy: Policy) -> JSONObject {
        var object: JSONObject = [
            "_id": .string(policy.name), "_rev": .string(policy.revision), "name": .string(policy.name),
            "active": .bool(policy.isActive), "applicationName": .string(name),
            "resourceTypeUuid": .string(resourceTypeID),
        ]
        for member in policy.definition.members where object[member.name] == nil && member.value != .null {
            object[member.name == "attributes" ? "resourceAttributes" : member.name] = member.value
        }
        return object
    }
}
