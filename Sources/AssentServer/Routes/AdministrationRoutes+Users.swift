import AssentCore
import AssentEngine
import AssentOTP
import Hummingbird

extension AdministrationRoutes {
    /// Answers an action on the realm's users.
    func respond(aboutUsers action: String, _ body: JSONObject, by session: LiveSession) async throws -> Response {
        switch action {
        case "createUser":
            let new = try Self.newUser(body)
            if new.withSecondFactor { try Self.checkName(new.username) }
            let totp = try await users.add(new, by: session)
            return .json(200, try Self.enrolment(totp, of: new.username))
        case "listUsers":
            let limit = body["limit"]?.integer ?? 100
            guard (1...1000).contains(limit) else { throw AMError(400, "limit is from 1 to 1000") }
            let listed = try await users.list(after: body["after"]?.string ?? "", limit: Int(limit), by: session)
            return .json(
                200, ["result": .array(listed.map(\.json)), "resultCount": .integer(Int64(listed.count))])
        case "setPassword":
            let username = try Self.username(body)
            try await users.setPassword(try Self.password(body), of: username, by: session)
            return .json(200, [:])
        case "listSessions":
            let listed = try await users.sessions(of: try Self.username(body), by: session)
            return .json(
                200, ["result": .array(listed.map(\.json)), "resultCount": .integer(Int64(listed.count))])
        case "endSession":
            guard let id = body["session"]?.string else { throw AMError(400, "session must be given") }
            try await users.endSession(id, of: try Self.username(body), by: session)
            return .json(200, [:])
        default:
            let username = try Self.username(body)
            try Self.checkName(username)
            let totp = try await users.renewSecondFactor(of: username, by: session)
            return .json(200, try Self.enrolment(totp, of: username))
        }
    }

    private static func newUser(_ body: JSONObject) throws -> UserAdministration.NewUser {
        let roles = (body["roles"] ?? .array([])).strings?.map { Role(rawValue: $0) }
        guard let roles, !roles.contains(nil), let withSecondFactor = (body["secondFactor"] ?? false).bool,
            let attributes = (body["attributes"] ?? .object(JSONObject())).object
        else {
            throw AMError(
                400, "roles (admin, auditor, pep), secondFactor (true, false) and attributes (an object) may be given")
        }
        return UserAdministration.NewUser(
            try username(body), password: try password(body), roles: Set(roles.compactMap(\.self)),
            attributes: attributes, withSecondFactor: withSecondFactor)
    }

    private static func username(_ body: JSONObject) throws -> String {
        guard let username = body["username"]?.string else { throw AMError(400, "username must be given") }
        return username
    }

    /// `null` is a user without a password.
    private static func password(_ body: JSONObject) throws -> Secret? {
        switch body["password"] {
        case .string(let text)?: return Secret(text)
        case .null?: return nil
        default: throw AMError(400, "password must be given: a text, or null for none")
        }
    }

    private static let issuer = "Assent"

    /// Refuses a name that no authenticator can be told, before anything is made that only its URI could tell of.
    private static func checkName(_ username: String) throws {
        let probe = Secret(bytes: [UInt8](repeating: 0, count: 20))
        do { _ = try OTPAuthURI(issuer: issuer, account: username, secret: probe).uri() } catch {
            throw AMError(400, "An authenticator cannot be told this username. \(error.detail)")
        }
    }

    /// What an authenticator needs. It is told this once.
    private static func enrolment(_ totp: TOTP?, of username: String) throws -> JSONValue {
        guard let totp else { return [:] }
        let uri = try OTPAuthURI(issuer: issuer, account: username, secret: totp.hotp.secret).uri()
        return ["otpauth": .string(uri.reveal())]
    }
}

extension UserAdministration.ListedSession {
    /// The session as an administrator sees it; times are in seconds since 1970.
    fileprivate var json: JSONValue {
        var object: JSONObject = [
            "session": .string(auditID), "createdAt": .integer(createdAt), "latestAccess": .integer(latestAccess),
            "idleExpiresAt": .integer(idleExpiresAt), "expiresAt": .integer(expiresAt),
            "authLevel": .integer(Int64(authLevel)), "kind": .string(kind.rawValue), "token": .bool(hasToken),
            "bound": .bool(isBound),
            "clients": .array(clients.map(JSONValue.string)),
        ]
        object["acr"] = acr.map(JSONValue.string)
        if !amr.isEmpty { object["amr"] = .array(amr.map(JSONValue.string)) }
        return .object(object)
    }
}

extension UserAdministration.Listed {
    /// The user as an administrator sees one; `createdAt` is in seconds since 1970.
    fileprivate var json: JSONValue {
        [
            "id": .string(user.id), "username": .string(user.username), "active": .bool(user.isActive),
            "roles": .array(user.roles.map(\.rawValue).sorted().map(JSONValue.string)),
            "password": .bool(hasPassword), "secondFactor": .bool(hasSecondFactor), "createdAt": .integer(createdAt),
        ]
    }
}
