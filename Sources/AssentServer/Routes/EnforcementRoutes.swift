import AssentCore
import AssentEnforcement
import AssentEngine
import HTTPTypes
import Hummingbird
import Logging

/// What answers below `/enforcement`: the questions of gateways elsewhere (docs/enforcement-wire.md).
struct EnforcementRoutes: Sendable {
    /// Decides on a request that a gateway got.
    func decide(_ call: RouteCall<EnforcementDesk>) async throws -> Response {
        let party = try call.party
        guard let group = call.service.group(of: party) else { throw EnforcementRefusal.noGroup }
        let limit = EnforcementBounds.question(bodyBytes: group.maxBodyBytes)
        let bytes = try await call.request.bytes(upTo: limit)
        let question = try EnforcementQuestion(json: try Self.json(bytes, of: call.request, limit: limit))
        if case .whole(let body) = question.content, body.count > group.maxBodyBytes {
            throw RequestError(413, "The body is larger than \(group.maxBodyBytes) bytes.")
        }
        let attempt = question.transaction.map { _ in
            TransactionAttempt(question.attempt, client: party.id, question: bytes)
        }
        let inquiry = try RemoteInquiry(question, realm: call.realm, group: group, attempt: attempt)
        let answer: EnforcementAnswer
        do {
            answer = EnforcementAnswer(
                try await call.service.access.decide(inquiry), to: question, limit: group.maxBodyBytes)
        } catch let error as EngineError where error.code == .payloadEncryptionRequired {
            answer = .denied(.init(.request, code: error.code.rawValue, detail: error.detail))
        }
        // No answer: the same question, asked again, tells.
        if case .denied(let denial) = answer, denial.reason == .outcomeUnknown { throw EngineError.outcomeUnknown }
        return .json(200, answer.json(to: question.attempt))
    }

    /// Records what became of a request.
    func outcome(_ call: RouteCall<EnforcementDesk>) async throws -> Response {
        let party = try call.party
        guard call.service.group(of: party) != nil else { throw EnforcementRefusal.noGroup }
        let limit = OutcomeStatement.maximumBytes
        let statement = try OutcomeStatement(
            json: try Self.json(try await call.request.bytes(upTo: limit), of: call.request, limit: limit))
        let reception = try await call.service.access.conclude(
            transaction: statement.transaction, attempt: statement.attempt, client: party.id, realm: call.realm,
            UpstreamOutcome(statement.outcome))
        switch reception {
        case .recorded: return .json(200, [:])
        case .contradicted: throw EnforcementRefusal.otherOutcome
        case .unknown: throw EnforcementRefusal.noTransaction
        }
    }

    private static func json(_ bytes: [UInt8], of request: Request, limit: Int) throws -> JSONValue {
        guard request.headers[.contentType].map(Request.isJSON) ?? false else {
            throw RequestError(415, "The request's media type must be application/json.")
        }
        do {
            return try JSONValue.parse(bytes, limits: JSONLimits(bytes: limit, depth: 8, values: 2000))
        } catch {
            throw RequestError(400, "The request is not JSON that the server accepts. \(error.detail)")
        }
    }
}

/// Why a gateway elsewhere is not answered what it asked.
struct EnforcementRefusal: Error, Hashable {
    let status: Int
    let detail: String
    var code: String?

    static let noGroup = EnforcementRefusal(status: 403, detail: "The client is in no group of gateways.")
    static let noTransaction = EnforcementRefusal(
        status: 404, detail: "The client has taken no such transaction by this attempt.")
    static let otherOutcome = EnforcementRefusal(status: 409, detail: "Another outcome is on record, and stays.")

    init(status: Int, detail: String, code: String? = nil) {
        self.status = status
        self.detail = detail
        self.code = code
    }

    init(_ fault: EnforcementGroup.Fault) {
        switch fault {
        case .policySet:
            self.init(status: 403, detail: "The group may not ask this policy set.", code: "enforcementPolicySet")
        case .origin:
            self.init(status: 403, detail: "The group may not speak for this origin.", code: "enforcementOrigin")
        }
    }
}

/// How `/enforcement` answers: refusals are problem documents, as the gateway's own.
struct EnforcementWire: RouteWire {
    typealias Service = EnforcementDesk

    static let readsRealmParameter = false

    let logger: Logger

    func trusted(_ origins: WebOrigins, realm: String) -> TrustedOrigins? { origins.json(realm: realm) }

    func response(refusing error: any Error, to request: Request, of rule: RouteRule?, realm: String?) -> Response {
        switch error {
        case let error as RequestError: return .problem(error.status, error.message)
        case let error as WireError:
            return .problem(error.code == .tooLarge ? 413 : 400, "The question: \(error.detail).")
        case let refusal as EnforcementRefusal:
            return .problem(
                refusal.status, refusal.detail, members: refusal.code.map { ["code": .string($0)] } ?? [:])
        case let fault as EnforcementGroup.Fault:
            return self.response(refusing: EnforcementRefusal(fault), to: request, of: rule, realm: realm)
        case let refusal as RouteRefusal: return Self.response(refusal, of: rule)
        case let error as EngineError: return .problem(error)
        default:
            logger.error("a question of a gateway failed", metadata: ["error": "\(error)"])
            return .problem(503, "The server cannot decide now. Nothing was granted.")
        }
    }

    private static func response(_ refusal: RouteRefusal, of rule: RouteRule?) -> Response {
        switch refusal {
        case .noRoute: return .problem(404, "There is no such path.")
        case .unknownRealm: return .problem(404, "This realm does not exist, or serves no gateways elsewhere.")
        case .method: return .problem(405, "Use \(rule?.allow ?? "").")
        case .forgery(let reason): return .problem(403, reason)
        case .foreignSession: return .problem(403, "The session is one of another realm.")
        case .kind: return .problem(EngineError(.tokenKind))
        case .sessionRequired, .tokenRequired:
            return .problem(401, "An access token is missing.", headers: [.wwwAuthenticate: "Bearer"])
        case .tokenRefused(let refusal):
            let isScope = refusal.reason == .insufficientScope
            var response = Response.problem(isScope ? 403 : 401, refusal.detail)
            response.headers[.wwwAuthenticate] =
                try? TokenChallenge(refusal, scopes: [EnforcementDesk.scope]).fieldValue()
            response.give(nonce: refusal.nonce)
            return response
        }
    }
}
