import AssentCore
import AssentJourney

/// What AM allows a user to do with a resource, as it answers directly.
public struct ResourceDecision: Hashable, Sendable {
    /// The resource, as it was asked about.
    public let resource: String

    /// What was decided of each action, for example `GET`. An action that is not named is denied.
    public let actions: [String: Bool]

    /// What the policies say of the user, by name.
    public let attributes: [String: [String]]

    /// Until when the decision may be kept, in milliseconds since 1970 as AM says it; 0 for one that a transaction
    /// allowed, which is for one access.
    public let timeToLive: Int64

    /// Whether an action is allowed.
    public func allows(_ action: String) -> Bool { actions[action] == true }

    let advice: Advice?

    /// Reads one element of AM's answer.
    ///
    /// - Throws: ``/AssentJourney/JourneyFailure`` with code `malformedReply` when it is about another resource, or has
    ///   another shape.
    init(_ json: JSONObject, of resource: String) throws {
        guard json["resource"]?.string == resource else { throw Self.malformed("it is about another resource") }
        self.resource = resource
        var actions: [String: Bool] = [:]
        for member in try Self.members(json["actions"]) {
            guard let value = member.value.bool else { throw Self.malformed("an action is neither true nor false") }
            actions[member.name] = value
        }
        self.actions = actions
        var attributes: [String: [String]] = [:]
        for member in try Self.members(json["attributes"]) {
            guard let values = member.value.strings else { throw Self.malformed("an attribute is not a list of texts") }
            attributes[member.name] = values
        }
        self.attributes = attributes
        guard let time = json["ttl"].map(\.integer) ?? 0 else { throw Self.malformed("its ttl is not a number") }
        timeToLive = time
        let advices = try Self.members(json["advices"])
        do throws(WireError) {
            advice = advices.isEmpty ? nil : try Advice(json: .object(JSONObject(advices)))
        } catch {
            throw Self.malformed(error.detail)
        }
    }

    private static func members(_ json: JSONValue?) throws -> [JSONObject.Member] {
        guard let json else { return [] }
        guard let object = json.object, object.duplicateNames.isEmpty else { throw malformed("a part has no members") }
        return object.members
    }

    private static func malformed(_ what: String) -> JourneyFailure {
        JourneyFailure(.malformedReply, "The server's policy decision cannot be used: \(what).")
    }
}
