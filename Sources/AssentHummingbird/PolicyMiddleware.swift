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
/// Users come by their session, in the field of its cookie's name, and where the server is asked on Assent's own wire
/// also by access tokens (`Bearer`, and `DPoP` with a proof for the service's URL). No cookie is read, so that no page
/// of another site can send a request in a user's name.
public struct PolicyMiddleware<Context: EnforcedContext>: RouterMiddleware {
    private let decisions: Decisions
    private let origin: Origin
    private let binding: BoundContent?
    private let reporting: OutcomeReporting
    private let logger: Logger

    /// Who is asked.
    private enum Decisions: Sendable {
        case policies(PolicyDecisions, sessionField: HTTPField.Name)
        case engine(EngineDecisions, sessionField: HTTPField.Name)

        var sessionField: HTTPField.Name {
            switch self {
            case .policies(_, let field), .engine(_, let field): field
            }
        }
    }

    /// A middleware that asks AM's question, about sessions alone.
    ///
    /// - Parameters:
    ///   - policies: whom to ask.
    ///   - origin: scheme, host and port under which clients know the service, and policies name it. What a request
    ///     says of its host is not believed.
    ///   - binding: the content that the policies bind; `nil` where they bind none. A policy that does denies then.
    ///   - reporting: tells the server again what became of requests, where it has not heard it; one of the
    ///     middleware's own by default.
    /// - Throws: `EnforcementError` `invalidConfiguration` when `origin` is not an origin.
    public init(
        _ policies: PolicyClient, origin: String, binding: BoundContent? = nil, reporting: OutcomeReporting? = nil
    ) throws(EnforcementError) {
        self.origin = try Self.origin(origin)
        self.binding = binding
        self.reporting = reporting ?? OutcomeReporting(logger: policies.logger)
        logger = policies.logger
        decisions = .policies(
            PolicyDecisions(policies: policies), sessionField: policies.server.sessionField)
    }

    /// A middleware that asks on Assent's own wire, about sessions and access tokens. Only Assent's server has it.
    ///
    /// ```swift
    /// var route = EnforcedRoute(policySet: "payments", scopes: ["payments"])
    /// route.claims = ["email"]
    /// let protected = try PolicyMiddleware<BasicEnforcedContext>(
    ///     engine, route, origin: "https://pay.bank.example", binding: .json)
    /// router.group("transfers").add(middleware: protected).post { _, context in
    ///     let access = try context.allowed()
    ///     return "\(access.user.name) pays, with \(access.scopes ?? ["a session"])"
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - engine: whom to ask.
    ///   - route: which policies decide, and what access tokens must be.
    ///   - origin: scheme, host and port under which clients know the service; policies name it, and proofs are made
    ///     for it. What a request says of its host is not believed. The group of the service's client may speak for it.
    ///   - binding: the content that the policies bind; `nil` where they bind none. A policy that does denies then.
    ///   - reporting: tells the server again what became of requests, where it has not heard it; one of the
    ///     middleware's own by default.
    /// - Throws: `EnforcementError` `invalidConfiguration` when `origin` is not an origin.
    public init(
        _ engine: EnforcementClient, _ route: EnforcedRoute, origin: String, binding: BoundContent? = nil,
        reporting: OutcomeReporting? = nil
    ) throws(EnforcementError) {
        let known = try Self.origin(origin)
        let reporting = reporting ?? OutcomeReporting(clock: engine.clock, logger: engine.logger)
        self.origin = known
        self.binding = binding
        self.reporting = reporting
        logger = engine.logger
        decisions = .engine(
            EngineDecisions(
                engine: engine, route: route, requirement: route.requirement(origin: "\(known)"),
                reporting: reporting), sessionField: engine.server.sessionField)
    }

    private static func origin(_ text: String) throws(EnforcementError) -> Origin {
        do throws(WireError) {
            return try Origin(text)
        } catch {
            throw EnforcementError(.invalidConfiguration, "The service's origin cannot be used: \(error.detail).")
        }
    }

    /// Asks the policies, and hands the request to its handler where they allow it.
    public func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        var (request, context) = (request, context)
        let permission: Permission
        do {
            permission = try await allowed(&request)
        } catch let refusal as Refusal {
            return refusal.response(to: request.method)
        } catch let error as EnforcementError {
            return answer(to: error).response(to: request.method)
        }
        context.access = permission.access
        guard permission.access.transactionID != nil else {
            var response = try await next(request, context)
            response.headers.give(nonce: permission.newNonce)
            return response
        }
        let (passed, carrying) = (request, context)
        var response = try await carryOut(permission, of: request.method) { try await next(passed, carrying) }
        response.headers.give(nonce: permission.newNonce)
        return response
    }

    /// What is allowed of a request. Where the policies bind its content, that is in memory afterwards; the content of
    /// a request that names nobody is not read.
    private func allowed(_ request: inout Request) async throws -> Permission {
        let received = try ReceivedRequest(request, origin: origin, sessionField: decisions.sessionField)
        switch decisions {
        case .policies(let decisions, _):
            let caller = try await decisions.caller(received)
            let body = try await content(of: &request)
            return try await decisions.permission(received, caller, body: body)
        case .engine(let decisions, _):
            try decisions.check(received)
            let body = try await content(of: &request)
            return try await decisions.permission(received, body: body)
        }
    }

    private func content(of request: inout Request) async throws -> [UInt8]? {
        guard let binding else { return nil }
        let bytes = try await binding.read(request)
        request.body = RequestBody(buffer: ByteBuffer(bytes: bytes))
        return bytes
    }

    /// Runs the handler of a request whose transaction is used up, and tells the server what became of it.
    private func carryOut(
        _ permission: Permission, of method: HTTPRequest.Method, _ handler: () async throws -> Response
    ) async throws -> Response {
        do {
            let response = try await handler()
            await report(.answered(status: response.status.code), by: permission)
            return response
        } catch let error as any HTTPResponseError {
            await report(.answered(status: error.status.code), by: permission)
            throw error
        } catch {
            let id = permission.access.transactionID ?? ""
            logger.error(
                "a handler failed after its request was approved",
                metadata: ["transaction": "\(id)", "error": "\(type(of: error))"])
            await report(.unknown, by: permission)
            return Refusal.unanswered(id).response(to: method)
        }
    }

    /// Also when the client has gone away meanwhile. The client waits for the first try only.
    private func report(_ outcome: EnforcementOutcome, by permission: Permission) async {
        guard let report = permission.report else { return }
        await Task { [reporting] in await reporting.tell(report(outcome)) }.value
    }

    /// What a client is told when there is no decision. What is wrong with the service is for its log.
    private func answer(to error: EnforcementError) -> Refusal {
        if error.code == .refused, let status = error.status { return Refusal(status, error.detail) }
        logger.error("the policies could not be asked", metadata: ["error": "\(error)"])
        return error.code == .outcomeUnknown ? .outcomeUnknown : .undecided
    }
}
