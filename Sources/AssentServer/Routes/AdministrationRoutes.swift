import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

/// `/json/…/administration` and `/json/…/audit`: ours, not AM's.
struct AdministrationRoutes: Sendable {
    let administration: Administration
    let keys: ServerKeys
    let sessions: Sessions
    let cookie: SessionCookie

    /// Answers a request of a realm.
    func respond(to request: Request, realm: String, endpoint: String) async throws -> Response {
        guard let token = cookie.token(request.headers), let session = try await sessions.live(token: token),
            session.realm == realm
        else { return .crest(401, "Access Denied") }
        if endpoint == "audit" { return try await audit(request, session: session) }
        guard request.method == .post else { return .crest(405, "Use POST with _action.") }
        let body = try await request.jsonObject(upTo: 16 << 10)
        switch try request.query("_action") {
        case "bootstrap":
            guard let token = body["token"]?.string else { return .crest(400, "Invalid value token") }
            try await administration.bootstrap(Secret(token), session: session)
        case "setRoles":
            let roles = body["roles"]?.strings?.map { Role(rawValue: $0) }
            guard let username = body["username"]?.string, let roles, !roles.contains(nil) else {
                return .crest(400, "username and roles (admin, auditor, pep) must be given")
            }
            try await administration.setRoles(Set(roles.compactMap(\.self)), of: username, by: session)
        case "setActive":
            guard let username = body["username"]?.string, let active = body["active"]?.bool else {
                return .crest(400, "username and active must be given")
            }
            try await administration.setActive(active, of: username, by: session)
        case "rotateKeys":
            guard let purposes = Self.purposes(body["purpose"]), let discardingOld = Self.flag(body["discardOld"])
            else { return .crest(400, "purpose is id_token or access_token, discardOld is true or false") }
            try await administration.rotate(purposes, of: keys, discardingOld: discardingOld, by: session)
        case let action?:
            return .crest(501, "Action \(action.prefix(64)) not implemented for this resource")
        case nil: return .crest(400, "The parameter _action is missing.")
        }
        return .json(200, [:])
    }

    /// The purposes that are meant; all of them when none is named.
    private static func purposes(_ json: JSONValue?) -> [ServerKeys.Purpose]? {
        guard let json else { return ServerKeys.Purpose.allCases }
        return json.string.flatMap(ServerKeys.Purpose.init).map { [$0] }
    }

    private static func flag(_ json: JSONValue?) -> Bool? {
        guard let json else { return false }
        return json.bool
    }

    private func audit(_ request: Request, session: LiveSession) async throws -> Response {
        guard request.method == .get else { return .crest(405, "Use GET.") }
        let records = try await administration.auditRecords(
            transactionID: try request.query("transaction"),
            limit: try request.query("limit").flatMap(Int.init) ?? 100, by: session)
        return .json(200, ["result": .array(records.map(\.json)), "resultCount": .integer(records.count)])
    }
}
