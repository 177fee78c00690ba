import AssentCore
import AssentEngine
import Hummingbird

extension AdministrationRoutes {
    /// Answers an action on the instances of the realm's apps.
    func respond(
        aboutRegistrations action: String, _ body: JSONObject, of configuration: OAuthProviderConfiguration,
        by session: LiveSession
    ) async throws -> Response {
        switch action {
        case "createRegistrationToken":
            let token = try await registrations.makeToken(
                for: try Self.text(body, "app"), count: try Self.number(body, "count", default: 1),
                days: try Self.number(body, "days", default: 7), configuration, by: session)
            return .json(200, ["token": .string(token.reveal())])
        case "listRegistrations":
            let limit = try Self.number(body, "limit", default: 100)
            guard (1...1000).contains(limit) else { throw AMError(400, "limit is from 1 to 1000") }
            let listed = try await registrations.list(
                of: body["app"] == nil ? nil : try Self.text(body, "app"), after: body["after"]?.string ?? "",
                limit: Int(limit), by: session)
            return .json(
                200, ["result": .array(listed.map(\.json)), "resultCount": .integer(Int64(listed.count))])
        case "endRegistration":
            try await registrations.end(try Self.text(body, "clientId"), by: session)
            return .json(200, [:])
        default:
            let ended = try await registrations.endSome(of: try Self.text(body, "app"), by: session)
            return .json(200, ["ended": .integer(Int64(ended))])
        }
    }

    private static func text(_ body: JSONObject, _ name: String) throws -> String {
        guard let text = body[name]?.string else { throw AMError(400, "\(name) must be given") }
        return text
    }

    private static func number(_ body: JSONObject, _ name: String, default usual: Int64) throws -> Int64 {
        guard let value = body[name] else { return usual }
        guard let number = value.integer else { throw AMError(400, "\(name) must be a whole number") }
        return number
    }
}

extension RegistrationAdministration.Listed {
    /// The instance as an administrator sees one; times are in seconds since 1970.
    fileprivate var json: JSONValue {
        JSONValue(omittingNil: [
            "clientId": .string(id), "app": .string(app), "name": name.map(JSONValue.string),
            "version": version.map(JSONValue.string), "platform": platform.map(JSONValue.string),
            "deviceName": deviceName.map(JSONValue.string), "keyThumbprint": .string(keyThumbprint),
            "createdAt": .integer(createdAt), "usedAt": .integer(usedAt), "containers": .integer(containers),
        ])
    }
}
