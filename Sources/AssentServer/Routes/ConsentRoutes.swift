import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

/// `/json/…/consents`: what the caller has agreed to, and how to take it back. Ours, not AM's.
enum ConsentRoutes {
    /// Answers with the caller's consents, or takes one back.
    static func respond(to call: RouteCall<OAuthProvider>) async throws -> Response {
        let session = try call.session
        let provider = call.service
        guard call.request.method == .post else {
            let consents = try await provider.consents(of: session)
            let told = consents.map { json($0, provider) }
            return .json(200, ["result": .array(told), "resultCount": .integer(told.count)])
        }
        let body = try await call.jsonObject()
        switch try call.action() {
        case "withdraw":
            guard let client = body["clientId"]?.string else { throw AMError(400, "Invalid value clientId") }
            guard try await provider.withdrawConsent(to: client, by: session) else {
                throw EngineError(.notFound, "The user has no consent for that client.")
            }
            return .json(200, [:])
        case let action?: throw AMError.unknownAction(action)
        case nil: throw AMError.missingAction
        }
    }

    private static func json(_ consent: Consent, _ provider: OAuthProvider) -> JSONValue {
        var object = JSONObject()
        object["clientId"] = .string(consent.clientID)
        object["clientName"] = provider.configuration.definition(of: consent.clientID)?.name.map(JSONValue.string)
        object["scopes"] = .array(consent.scopes.map(JSONValue.string))
        object["grantedAt"] = .integer(consent.grantedAt)
        object["usedAt"] = .integer(consent.usedAt)
        object["expiresAt"] = .integer(consent.expiresAt)
        return .object(object)
    }
}
