import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

/// `/json/…/administration` and `/json/…/audit`: ours, not AM's.
struct AdministrationRoutes: Sendable {
    let administration: Administration
    let users: UserAdministration
    let registrations: RegistrationAdministration
    let keys: ServerKeys
    let payloadKeys: PayloadKeyAdministration

    /// Answers an action of a realm.
    func respond(to call: RouteCall<OAuthProvider>) async throws -> Response {
        let session = try call.session
        let body = try await call.jsonObject()
        switch try call.action() {
        case "bootstrap":
            guard let token = body["token"]?.string else { throw AMError(400, "Invalid value token") }
            try await administration.bootstrap(Secret(token), session: session)
        case "setRoles":
            let roles = body["roles"]?.strings?.map { Role(rawValue: $0) }
            guard let username = body["username"]?.string, let roles, !roles.contains(nil) else {
                throw AMError(400, "username and roles (admin, auditor, pep) must be given")
            }
            try await administration.setRoles(Set(roles.compactMap(\.self)), of: username, by: session)
        case "setActive":
            guard let username = body["username"]?.string, let active = body["active"]?.bool else {
                throw AMError(400, "username and active must be given")
            }
            try await administration.setActive(active, of: username, by: session)
        case "rotateKeys":
            let named = body["purpose"]?.string.flatMap(ServerKeys.Purpose.init)
            guard body["purpose"] == nil || named != nil, let discardingOld = Self.flag(body["discardOld"]) else {
                let purposes = ServerKeys.Purpose.allCases.map(\.rawValue).joined(separator: ", ")
                throw AMError(400, "purpose is one of \(purposes), discardOld is true or false")
            }
            let purposes: [ServerKeys.Purpose]
            if let named { purposes = [named] } else { purposes = try await keys.purposesInUse() }
            try await administration.rotate(purposes, of: keys, discardingOld: discardingOld, by: session)
        case "createUser", "listUsers", "setPassword", "renewSecondFactor", "listSessions", "endSession":
            return try await respond(aboutUsers: try call.action() ?? "", body, by: session)
        case "createRegistrationToken", "listRegistrations", "endRegistration", "endRegistrations":
            return try await respond(
                aboutRegistrations: try call.action() ?? "", body, of: call.service.configuration, by: session)
        case "listPayloadKeys", "addPayloadKey", "withdrawPayloadKey":
            return try await respond(aboutPayloadKeys: try call.action() ?? "", body, by: session)
        case let action?: throw AMError.unknownAction(action)
        case nil: throw AMError.missingAction
        }
        return .json(200, [:])
    }

    private static func flag(_ json: JSONValue?) -> Bool? {
        guard let json else { return false }
        return json.bool
    }

    /// Answers with audit records of all realms.
    func audit(_ call: RouteCall<OAuthProvider>) async throws -> Response {
        let limit = try call.request.query("limit").flatMap(Int.init) ?? 100
        var filter = AuditFilter(
            user: try call.request.query("user"), event: try call.request.query("event"))
        if let since = try call.request.query("since") {
            // Not `abs`, which traps for the least number that there is.
            guard let seconds = Int64(since), seconds.magnitude < 1 << 40 else {
                throw AMError(400, "Invalid value since")
            }
            filter.since = seconds
        }
        let query: AuditQuery
        if let transaction = try call.request.query("transaction") {
            query = .transaction(transaction)
        } else if let after = try call.request.query("after") {
            guard let position = Int64(after) else { throw AMError(400, "Invalid value after") }
            query = .after(position: position, limit: limit, filter: filter)
        } else {
            query = .newest(limit: limit, filter: filter)
        }
        let records = try await administration.auditRecords(query, by: try call.session)
        return .json(200, ["result": .array(records.map(\.json)), "resultCount": .integer(records.count)])
    }
}
