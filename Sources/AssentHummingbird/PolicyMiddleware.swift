import AssentCore
public import AssentEnforcement
import HTTPTypes
public import Hummingbird
import Logging
import NIOCore

/// Protects routes by the policies of a server: lets a request through to its handler where they allow it, once where
/// they ask for a transaction, and answers as Assent's gateway does where they do not.
///
/// ```swift
/// let protected = try PolicyMiddleware<BasicEnforcedContext>(
///     policies, origin: "https://pay.bank.example", binding: .json)
/// router.group("transfers").add(middleware: protected).post { _, context in
///     let access = try context.allowed()
///     return "\(access.user.name) pays, by \(access.transactionID ?? "nothing")"
/// }
/// ```
///
/// Users come by their session, in the field of its cookie's name; no cookie is read, so that no page of another site
/// can send a request in a user's name.
public struct PolicyMiddleware<Context: EnforcedContext>: RouterMiddleware {
    private let policies: PolicyClient
    private let origin: Origin
    private let binding: BoundContent?
    private let reporting: OutcomeReporting

    /// A middleware.
    ///
    /// - Parameters:
    ///   - policies: whom to ask.
    ///   - origin: scheme, host and port under which clients know the service, and policies name it. What a request
    ///     says of its host is not believed.
    ///   - binding: the content that the policies bind; `nil` where they bind none. A policy that does denies then.
    ///   - reporting: tells the server again what became of requests, where it has not heard it; one of the
    ///     middleware's own by default.
    /// - Throws: `EnforcementError` `invalidConfiguration` when `origin` is none.
    public init(
        _ policies: PolicyClient, origin: String, binding: BoundContent? = nil, reporting: OutcomeReporting? = nil
    ) throws(EnforcementError) {
        do throws(WireError) {
            self.origin = try Origin(origin)
        } catch {
            throw EnforcementError(.invalidConfiguration, "The service's origin cannot be used: \(error.detail).")
        }
        self.policies = policies
        self.binding = binding
        self.reporting = reporting ?? OutcomeReporting(logger: policies.logger)
    }

    /// Asks the policies, and hands the request to its handler where they allow it.
    public func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        var (request, context) = (request, context)
        let access: EnforcedAccess
        do {
            access = try await allowed(&request)
        } catch let refusal as Refusal {
            return refusal.response
        } catch let error as EnforcementError {
            return answer(to: error).response
        }
        context.access = access
        guard let id = access.transactionID else { return try await next(request, context) }
        let (passed, carrying) = (request, context)
        return try await carryOut(id) { try await next(passed, carrying) }
    }

    /// What the policies allow of a request, whose content is in memory afterwards where they bind it.
    private func allowed(_ request: inout Request) async throws -> EnforcedAccess {
        let received = try ReceivedRequest(request, origin: origin, sessionField: policies.server.sessionField)
        let (user, session) = try await caller(received)
        var question = EnforcedRequest(
            request.method.rawValue, received.resource.url, subject: .session(session),
            transactionID: received.transactionID)
        question.idempotencyKey = received.idempotencyKey
        if let binding {
            let bytes = try await binding.read(request)
            request.body = RequestBody(buffer: ByteBuffer(bytes: bytes))
            question.contentType = request.headers[.contentType]
            question.body = bytes
        }
        let permit = try await permit(question)
        return EnforcedAccess(user: user, claims: permit.attributes, transactionID: permit.transactionID)
    }

    /// Who calls, before anything of a transaction is touched.
    private func caller(_ received: ReceivedRequest) async throws -> (EnforcedUser, Secret) {
        guard let session = received.session, let user = try await policies.user(of: session) else {
            throw Refusal.signInFirst(policies.server.url, realm: policies.server.realm)
        }
        return (user, session)
    }

    private func permit(_ question: EnforcedRequest) async throws -> EnforcementPermit {
        switch try await policies.decide(question) {
        case .permitted(let permit): return permit
        case .used(let id, let outcome): throw Refusal.used(id, outcome: outcome?.json ?? .null)
        case .advised(let advice):
            // Who names a transaction and is told another one would be asked again and again.
            guard question.transactionID == nil || advice.transactionID == nil else { throw Refusal.denied }
            throw Refusal(
                401, "The user must do something first: see WWW-Authenticate.",
                fields: [
                    .wwwAuthenticate: try advice.challengeFieldValue(
                        server: policies.server.url, realm: policies.server.realm)
                ])
        case .denied: throw Refusal.denied
        }
    }

    /// Runs the handler of a request whose transaction is used up, and tells the server what became of it.
    private func carryOut(_ id: String, _ handler: () async throws -> Response) async throws -> Response {
        do {
            let response = try await handler()
            await report(.answered(status: response.status.code), of: id)
            return response
        } catch let error as any HTTPResponseError {
            await report(.answered(status: error.status.code), of: id)
            throw error
        } catch {
            policies.logger.error(
                "a handler failed after its request was approved",
                metadata: ["transaction": "\(id)", "error": "\(type(of: error))"])
            await report(.unknown, of: id)
            return Refusal.unanswered(id).response
        }
    }

    /// Also when the client has gone away meanwhile. The client waits for the first try alone.
    private func report(_ outcome: EnforcementOutcome, of id: String) async {
        guard policies.reportsOutcomes else { return }
        await Task { [policies, reporting] in
            await reporting.tell(
                .init(id) { () async throws(EnforcementError) in
                    try await policies.report(outcome, ofTransaction: id)
                })
        }.value
    }

    /// What a client is told when there is no decision. What is wrong with the service is for its log.
    private func answer(to error: EnforcementError) -> Refusal {
        if error.code == .refused, let status = error.status { return Refusal(status, error.detail) }
        policies.logger.error("the policies could not be asked", metadata: ["error": "\(error)"])
        return error.code == .outcomeUnknown ? .outcomeUnknown : .undecided
    }
}
