import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

/// `/json/…/policies?_action=evaluate`: policy decisions over REST (am-server reference, policies).
struct PolicyRoutes: Sendable {
    /// AM's name of the policy set that is meant when none is named.
    private static let defaultPolicySet = "iPlanetAMWebAgentService"

    let sessions: Sessions
    let access: AccessSettlement
    let cookie: SessionCookie

    /// Answers an action of a realm.
    func respond(to request: Request, realm: String) async throws -> Response {
        guard let token = cookie.token(request.headers), let caller = try await sessions.live(token: token) else {
            return .crest(401, "Access Denied")
        }
        guard request.method == .post else { return .crest(405, "Use POST with _action.") }
        let action = try request.query("_action") ?? ""
        guard action == "evaluate" else {
            return .crest(501, "Action \(action.prefix(64)) not implemented for this resource")
        }
        let body = try await request.jsonObject()
        guard let resources = body["resources"]?.strings else { return .crest(400, "Invalid value resources") }
        let subject = try await subject(body["subject"], caller: caller)
        let explain = try request.flag("_explain") && caller.user.roles.contains(.admin)
        let answers = try await access.settle(
            EvaluateRequest(
                realm: realm, policySet: body["application"]?.string ?? Self.defaultPolicySet, resources: resources,
                subject: subject, environment: try environment(body["environment"])), caller: caller)
        return .json(200, .array(answers.map { $0.json(explained: explain) }))
    }

    private func subject(_ json: JSONValue?, caller: LiveSession) async throws -> DecisionSubject {
        guard let json else { return .session(PresentedSession(caller)) }
        guard let object = json.object else { throw RequestError(400, "Invalid value subject") }
        if let token = object["ssoToken"]?.string {
            guard Self.mayBeSessionToken(token) else { throw RequestError(400, "Invalid value subject") }
            guard let session = try await sessions.live(token: Secret(token)) else { return .anonymous }
            return .session(PresentedSession(session))
        }
        guard object["jwt"] != nil || object["claims"] != nil else {
            throw RequestError(400, "Invalid value subject")
        }
        return .claims(object["claims"]?.object ?? JSONObject())
    }

    /// Whether a text has the form of a session token. AM refuses what has not, an OAuth access token above all: whose access
    /// that is, its claims would say, not a session.
    private static func mayBeSessionToken(_ text: String) -> Bool {
        let dots = text.utf8.count { $0 == UInt8(ascii: ".") }
        return !text.isEmpty && text.utf8.count <= SessionCookie.maxLength && dots != 2
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"):
                    true
                default: "-_.*=+/".utf8.contains(byte)
                }
            }
    }

    private func environment(_ json: JSONValue?) throws -> [String: [String]] {
        guard let json else { return [:] }
        guard let object = json.object else { throw RequestError(400, "Invalid value environment") }
        var environment: [String: [String]] = [:]
        for member in object.members {
            guard let values = member.value.strings else { throw RequestError(400, "Invalid value environment") }
            environment[member.name] = values
        }
        return environment
    }
}
