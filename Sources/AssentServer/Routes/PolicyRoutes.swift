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

    /// What shows the policies themselves.
    var objects: PolicyObjectRoutes { PolicyObjectRoutes(decisions: access.decisions) }

    /// Answers an action of a realm.
    func respond(to call: RouteCall<OAuthProvider>) async throws -> Response {
        let caller = try call.session
        let action = try call.action() ?? ""
        guard action != "create" else { throw AMError(405, "Use evaluate as _action. " + PolicyObjectRoutes.place) }
        if action == "report" { return try await report(call, caller: caller) }
        guard action == "evaluate" else { throw AMError.unknownAction(action) }
        let body = try await call.jsonObject()
        guard let resources = body["resources"]?.strings else { throw EngineError(.invalidResources) }
        let subject = try await subject(body["subject"], caller: caller, provider: call.service)
        let explain = try call.request.flag("_explain") && AccessSettlement.isEnforcementPoint(caller)
        let answers = try await access.settle(
            EvaluateRequest(
                realm: call.realm, policySet: body["application"]?.string ?? Self.defaultPolicySet,
                resources: resources, subject: subject, environment: try environment(body["environment"])),
            caller: caller)
        return .json(200, .array(answers.map { $0.json(explained: explain) }))
    }

    /// What became of a request whose transaction the caller took: ours, AM has no such action.
    private func report(_ call: RouteCall<OAuthProvider>, caller: LiveSession) async throws -> Response {
        let body = try await call.jsonObject()
        guard let id = body["transaction"]?.string else { throw RequestError(400, "Invalid value transaction") }
        guard let outcome = UpstreamOutcome(report: body["outcome"]) else {
            throw RequestError(400, "Invalid value outcome")
        }
        guard try await access.report(outcome, of: id, caller: caller, realm: call.realm) else {
            throw RequestError(404, "The caller has taken no such transaction.")
        }
        return .json(200, [:])
    }

    private func subject(
        _ json: JSONValue?, caller: LiveSession, provider: OAuthProvider
    ) async throws -> DecisionSubject {
        guard let json else { return .session(PresentedSession(caller)) }
        guard let object = json.object else { throw RequestError(400, "Invalid value subject") }
        if let token = object["ssoToken"]?.string {
            guard Self.mayBeSessionToken(token) else { throw RequestError(400, "Invalid value subject") }
            // Who asks about a session that belongs to a key cannot prove that key, unless the session is their own.
            guard let session = try await sessions.live(token: Secret(token)),
                session.sender == nil || session.id == caller.id, Door.policySubject.admits(session)
            else { return .anonymous }
            return .session(PresentedSession(session))
        }
        guard object["jwt"] != nil || object["claims"] != nil else {
            throw RequestError(400, "Invalid value subject")
        }
        if let token = object["jwt"]?.string,
            let claims = try await provider.claims(ofIDToken: Secret(token), mayHaveExpired: false)
        {
            return .verifiedClaims(claims)
        }
        return .claims(object["claims"]?.object ?? JSONObject())
    }

    /// Whether a text has the form of a session token. AM refuses other texts, above all OAuth access tokens. Those say
    /// in their claims whose access they are for; no session says it.
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
