import AssentCore
import AssentEngine
import Hummingbird

extension AdministrationRoutes {
    /// Answers an action on the static keys of payload encryption.
    func respond(
        aboutPayloadKeys action: String, _ body: JSONObject, by session: LiveSession
    ) async throws -> Response {
        switch action {
        case "listPayloadKeys":
            let listed = try await payloadKeys.list(by: session)
            return .json(
                200, ["result": .array(listed.map(\.json)), "resultCount": .integer(Int64(listed.count))])
        case "addPayloadKey":
            guard let days = body["days"]?.integer else { throw AMError(400, "days must be a whole number") }
            return .json(200, try await payloadKeys.add(days: days, by: session).json)
        default:
            guard let kid = body["kid"]?.string else { throw AMError(400, "kid must be given") }
            try await payloadKeys.withdraw(kid, by: session)
            return .json(200, [:])
        }
    }
}

extension PayloadKeys.Listed {
    /// The key as an administrator sees one; times are in seconds since 1970.
    fileprivate var json: JSONValue {
        JSONValue(omittingNil: [
            "kid": .string(kid), "x": .string(publicKey), "notBefore": .integer(notBefore),
            "notAfter": .integer(notAfter), "createdAt": .integer(createdAt),
            "withdrawnAt": withdrawnAt.map { .integer($0) },
        ])
    }
}
