public import AssentCore
public import AssentJourney
public import AssentTokens
import Foundation
import HTTPTypes
public import Logging

/// Calls protected resources: when the server wants the user's approval, asks for it once and repeats the call as it
/// was.
///
/// ```swift
/// let call = try HTTPCall(
///     .post, url: "https://api.bank.example/transfers", headerFields: [.contentType: "application/json"],
///     body: HTTPBody(#"{"to":"Bob","amount":"200.00"}"#))
/// let reply = try await client.send(call) { approval in
///     if approval.isFirstStep {
///         guard await screen.confirm(approval.display) else { return .decline }
///     }
///     if let waiting = approval.waiting { await screen.show(waiting.text) }
///     approval.agree()
///     return .next
/// }
/// ```
///
/// The user is asked one question at a time: calls that want something else meanwhile wait in order, and those of the
/// same sign-in that want the same share the answer.
///
/// It is the outermost layer. Credentials are attached below it by ``/AssentTokens/AuthenticatingTransport``. As a
/// transport it serves code that knows nothing of approvals: ``AuthorizationPolicy`` says who answers then.
public struct AuthorizedClient: HTTPTransport {
    private struct Parts: Sendable {
        let configuration: AuthorizationConfiguration
        let journeys: JourneyClient
        let source: any AccessTokenSource
        let transport: AuthenticatingTransport
        let policies: PolicyTable
        let gate: AdviceGate
        let clock: any WallClock
        let random: any RandomSource
        let beginsAnywhere: Bool
        let coordinator = StepUpCoordinator()
        let origins = OriginMemory()
    }

    /// What all copies share: each call takes the client along, and the parts refer to dozens of things.
    private final class Shared: Sendable {
        let parts: Parts

        init(_ parts: Parts) { self.parts = parts }
    }

    private let shared: Shared

    /// Which origins are protected resources.
    public var configuration: AuthorizationConfiguration { shared.parts.configuration }

    /// Whether ``access(to:)`` may be asked; see ``AuthorizationConfiguration/settle``.
    package var isSettled: Bool { shared.parts.configuration.isSettled }

    /// Remembers where the request before went, for code that makes calls for this client.
    package var origins: OriginMemory { shared.parts.origins }

    /// Whether a call may begin on a thread on which nothing of the app's own may run; see `BeginsAnywhere`.
    package var beginsAnywhere: Bool { shared.parts.beginsAnywhere }

    /// The user's sign-in now; another one as soon as somebody signs out, or in.
    package var signIn: SignInMark? { source.signIn }

    package var clock: any WallClock { shared.parts.clock }
    var journeys: JourneyClient { shared.parts.journeys }
    var source: any AccessTokenSource { shared.parts.source }
    var coordinator: StepUpCoordinator { shared.parts.coordinator }
    private var gate: AdviceGate { shared.parts.gate }
    private var policies: PolicyTable { shared.parts.policies }
    private var transport: AuthenticatingTransport { shared.parts.transport }
    private var random: any RandomSource { shared.parts.random }

    /// A client.
    ///
    /// - Parameters:
    ///   - configuration: which origins are protected resources.
    ///   - journeys: runs the journeys of advices. Only advices that lead to its server are believed.
    ///   - source: has the tokens. Only the user's has a session on which advices are followed; for any other source an
    ///     advice is `approvalNeeded`, also where the app gives an `approve`.
    ///   - transport: carries the calls. Credentials are attached around it here.
    ///   - policies: how parts of the resources ask for approvals, and who answers.
    ///   - clock: measures the policies' patience.
    ///   - random: where idempotency keys come from.
    ///   - logger: is told what happens, never a secret.
    /// - Throws: ``AuthorizationError`` with code `invalidConfiguration`.
    public init(
        configuration: AuthorizationConfiguration, journeys: JourneyClient,
        source: any AccessTokenSource, transport: any HTTPTransport,
        policies: [AuthorizationPolicy] = [], clock: any WallClock = SystemClock(),
        random: any RandomSource = SystemRandom(), logger: Logger = Logger(label: "assent.authorization")
    ) throws(AuthorizationError) {
        shared = Shared(
            Parts(
                configuration: configuration, journeys: journeys, source: source,
                transport: AuthenticatingTransport(source, access: configuration.access(to:), over: transport),
                policies: try PolicyTable(policies, resources: configuration.resources),
                gate: try AdviceGate(server: journeys.configuration.server, logger: logger), clock: clock,
                random: random,
                beginsAnywhere: (source as? any BeginsAnywhere)?.beginsAnywhere == true
                    && (transport as? any BeginsAnywhere)?.beginsAnywhere == true))
    }

    /// Sends a call. When the server wants the user's approval, `approve` is called, in the caller's isolation, with
    /// each step of the journey that gets it; then the same call, with the same body and the same `Idempotency-Key`, is
    /// sent once more.
    ///
    /// - Returns: the reply to the last sending, whatever its status, but for 401 with
    ///   `error="insufficient_user_authentication"` and no advice, which is an error.
    /// - Throws: ``AuthorizationError``; ``/AssentTokens/TokenError`` when there is no token to send;
    ///   ``/AssentJourney/JourneyError`` and ``/AssentJourney/JourneyFailure`` of the approving journey;
    ///   `HTTPTransportError` of the first sending; what `approve` throws.
    public func send(
        _ call: HTTPCall, approve: (inout Approval) async throws -> StepAction
    ) async throws -> HTTPReply {
        try await send(call, of: signIn, approve: approve)
    }

    /// Sends a call that began in a sign-in, as ``send(_:approve:)`` does, for code that waits before it sends.
    package func send(
        _ call: HTTPCall, of signIn: SignInMark?, approve: (inout Approval) async throws -> StepAction
    ) async throws -> HTTPReply {
        var refused = RefusedReply(isWanted: false)
        let (terms, original) = try await settled(call, of: signIn)
        return try await send(original, terms, asks: true, &refused) { approval, _ in try await approve(&approval) }
    }

    /// Sends a call that brings no handler: the one of its policy answers, see ``AuthorizationPolicy/approve``. See
    /// ``send(_:approve:)``.
    ///
    /// - Returns: the reply.
    /// - Throws: ``AuthorizationError`` with code `approvalNeeded` when the server wants the user's approval, and the
    ///   call has no policy that answers.
    @concurrent public func send(_ call: HTTPCall) async throws -> HTTPReply {
        try await send(call, of: signIn)
    }

    /// Sends a call that began in a sign-in, as ``send(_:)-(HTTPCall)`` does, for code that sends it in several parts.
    @concurrent package func send(_ call: HTTPCall, of signIn: SignInMark?) async throws -> HTTPReply {
        var refused = RefusedReply(isWanted: false)
        return try await send(call, of: signIn, &refused)
    }

    /// Sends a call as ``send(_:)-(HTTPCall)`` does, for code that knows replies and nothing of approvals: where the
    /// user declines, does not answer in time, or the journey fails, it gets the reply that asked for the approval, as
    /// it came. The call had no effect then.
    @concurrent package func sendKeepingRefusal(_ call: HTTPCall) async throws -> HTTPReply {
        var refused = RefusedReply(isWanted: true)
        do {
            return try await send(call, of: signIn, &refused)
        } catch {
            guard let reply = refused.reply(after: error) else { throw error }
            return reply
        }
    }

    private func send(
        _ whole: HTTPCall, of signIn: SignInMark?, _ refused: inout RefusedReply
    ) async throws -> HTTPReply {
        let (terms, call) = try await settled(whole, of: signIn)
        guard let approve = terms?.policy?.approve else {
            return try await send(call, terms, asks: false, &refused) { _, _ in .decline }
        }
        return try await send(call, terms, asks: true, &refused) { [clock] approval, deadline in
            guard let deadline else { return try await approve(&approval) }
            let asked = approval
            let answer: (Approval, StepAction)
            do {
                answer = try await TimeLimit.run(until: deadline, clock: clock) {
                    var approval = asked
                    let action = try await approve(&approval)
                    return (approval, action)
                }
            } catch is TimeLimit.Passed {
                throw AuthorizationError.tookTooLong
            }
            approval = answer.0
            return answer.1
        }
    }

    /// Sends a call whose approval was used, or can be: to learn what became of it, or because it never left.
    ///
    /// The user is not asked. The Assent gateway answers 409 with the recorded outcome when the request was let through
    /// before, and lets it through now when it was not. A server that knows neither is told apart by what it answers.
    /// - Parameters:
    ///   - call: the call as it was.
    ///   - pending: from the error.
    /// - Returns: the reply.
    /// - Throws: ``AuthorizationError``: `refused` when the server knows nothing of the approval any more,
    ///   `sessionChanged` when somebody has signed out, or in, since the request was sent, `outcomeUnknown`, `notSent`.
    public func ask(_ call: HTTPCall, about pending: PendingRequest) async throws -> HTTPReply {
        // It would be sent as another user's, and where that one needs no approval it would be let through.
        let signIn = self.signIn
        guard pending.signIn == nil || pending.signIn === signIn else {
            throw AuthorizationError(
                .sessionChanged, "Somebody has signed out, or in, since the request was sent. Nothing was asked.",
                suggestion: "Ask the service itself what became of it.", pending: pending)
        }
        guard let terms = try await terms(of: call, signIn) else {
            throw AuthorizationError(.invalidRequest, "The origin of the request is not in the configuration.")
        }
        var call = stamped(try await terms.policy?.repeatable(call) ?? call, isOurs: true)
        if let key = pending.idempotencyKey { call.request.headerFields[.idempotencyKey] = key }
        return try await sendApproved(
            call, as: try terms.approved(call, pending.transactionID), pending, terms, isQuestion: true)
    }

    /// What is configured for a call, and the call with the time that is left to it after waiting for that.
    private func settled(
        _ whole: HTTPCall, of signIn: SignInMark?
    ) async throws -> (terms: CallTerms?, call: HTTPCall) {
        let begun = clock.now
        let terms = try await terms(of: whole, signIn)
        return (terms, whole.afterWaiting(since: begun, clock))
    }

    private func send(
        _ original: HTTPCall, _ terms: CallTerms?, asks: Bool, _ refused: inout RefusedReply,
        _ approve: (inout Approval, Date?) async throws -> StepAction
    ) async throws -> HTTPReply {
        guard let terms else {
            var reply = try await transport.send(stamped(original, isOurs: false))
            reply.authorization = .notOurs
            return reply
        }
        let call: HTTPCall
        if !original.hasReplayableBody, source.user != nil, let policy = terms.policy {
            call = stamped(try await policy.repeatable(original), isOurs: true)
        } else {
            call = stamped(original, isOurs: true)
        }
        var passed = ReplyAuthorization.notAsked
        var hasBegunAgain = false
        while true {
            refused.forget()
            var reply = try await transmit(call, terms)
            guard let advice = try await advice(in: &reply, terms, limit: call.limits.replyBytes) else {
                if let wanted = InsufficientAuthentication(reply.response) { throw Self.strongerSignIn(wanted) }
                reply.authorization = passed
                return reply
            }
            await refused.drain(reply, limit: call.limits.replyBytes)
            try mayAsk(call, asks: asks)
            do {
                switch advice.kind {
                case .transaction(let id):
                    let approved = try terms.approved(call, id)
                    let request = try await RepeatableRequest(call)
                    let binding = try await stepUp(advice.nextToMeet, for: request, terms, approve)
                    let key = call.request.headerFields[.idempotencyKey]
                    let pending = PendingRequest(
                        transactionID: id, idempotencyKey: call.isSafe ? nil : key, of: terms.signIn)
                    refused.forget()
                    var last = try await sendApproved(
                        call, as: try await request.unchanged(approved), pending, terms, isQuestion: false)
                    last.authorization = .approved(transactionID: id, binding: binding)
                    return last
                case .service, .other(.authLevel, _):
                    guard passed == .notAsked else {
                        throw AuthorizationError(
                            .refused, "The server asks again for the journey that was just passed.")
                    }
                    let binding = try await stepUp(advice.nextToMeet, for: .init(call), terms, approve)
                    passed = .approved(transactionID: nil, binding: binding)
                case .other(let name, _):
                    throw AuthorizationError(
                        .unsupportedAdvice, "The server wants something that this library does not know: \(name).")
                }
            } catch is OutdatedAdvice {
                guard !hasBegunAgain else {
                    throw AuthorizationError(
                        .expired, "The transaction expired twice while the user was asked other things."
                    )
                }
                hasBegunAgain = true
            }
        }
    }

    /// Whether an advice for this call may be followed.
    private func mayAsk(_ call: HTTPCall, asks: Bool) throws(AuthorizationError) {
        guard source.user != nil else {
            throw AuthorizationError(
                .approvalNeeded, "The server wants the user's approval, and the call is not the user's.")
        }
        guard asks else {
            throw AuthorizationError(
                .approvalNeeded, "The server wants the user's approval, and there is nobody to ask.")
        }
        guard call.hasReplayableBody else {
            throw AuthorizationError(
                .bodyNotReplayable, "The request's content can be sent only once, so it cannot wait for an approval.")
        }
    }

    /// The advice of a reply: one that this library knows, or else one that the call's policy recognises.
    private func advice(in reply: inout HTTPReply, _ terms: CallTerms, limit: Int) async throws -> Advice? {
        // Most replies have none.
        if ReceivedAdvice.isPossible(reply.status, acceptsDecisions: terms.access.acceptsDecisions),
            let advice = try await gate.advice(in: &reply, access: terms.access, limit: limit)
        {
            return advice
        }
        guard terms.policy?.recognise != nil, let policy = terms.policy,
            let advice = try await policy.recognised(in: &reply, clock: clock, logger: gate.logger)
        else { return nil }
        try gate.check(advice)
        return advice
    }

    /// Whether an advice leads to the configured server, as far as it says.
    ///
    /// - Throws: ``AuthorizationError`` with code `untrustedAdvice`.
    package func check(_ advice: Advice) throws(AuthorizationError) { try gate.check(advice) }

    /// Sends a call with its transaction's id, once: below, only a proof that wants a nonce is made anew, since a
    /// resource that asks for one has used no approval. Whatever comes that is not a plain reply is final.
    private func sendApproved(
        _ call: HTTPCall, as approved: HTTPCall, _ pending: PendingRequest, _ terms: CallTerms, isQuestion: Bool
    ) async throws -> HTTPReply {
        let unknown = AuthorizationError(
            .outcomeUnknown, "Nobody can say whether the approved request had an effect.",
            pending: pending)
        // Since the user was asked, the content was read once more, which may take long.
        try checkUser(terms)
        var sent = approved
        sent.isSentOnce = true
        var reply: HTTPReply
        let advice: Advice?
        var hasReply = false
        do {
            reply = try await transmit(sent, terms)
            hasReply = true
            if !call.isSafe {
                reply.body = HTTPBody(try await reply.body.collect(upTo: call.limits.replyBytes))
            }
            advice = try await self.advice(in: &reply, terms, limit: call.limits.replyBytes)
        } catch {
            if !hasReply, (error as? AuthorizationError)?.code == .sessionChanged { throw error }
            let transportError = error as? HTTPTransportError
            if !hasReply, Self.saysUnsent(error) {
                throw AuthorizationError(
                    .notSent, "The approved request was not sent: \(error.explanationOrType)", pending: pending,
                    transportError: transportError)
            }
            guard !call.isSafe else { throw error }
            throw AuthorizationError(unknown.code, unknown.detail, pending: pending, transportError: transportError)
        }
        if advice != nil {
            if isQuestion || call.isSafe {
                throw AuthorizationError(.refused, "The server does not accept the approval.", pending: pending)
            }
            throw unknown
        }
        if reply.status == 504, !call.isSafe { throw unknown }
        // Token and proof are looked at before an approval is used. But a proof is refused also where something between
        // has sent the request a second time, and the first was carried out.
        if let refusal = ResourceRefusal(reply.response) {
            if refusal == .proof, !call.isSafe { throw unknown }
            let what = refusal == .token ? "The access token" : "The proof of the access token's key"
            throw AuthorizationError(
                .notSent, "\(what) was refused, so the approved request was not carried out.", pending: pending)
        }
        return reply
    }

    /// Sends a call, unless somebody has signed out, or in, since it began: its token may have been waited for.
    private func transmit(_ call: HTTPCall, _ terms: CallTerms) async throws -> HTTPReply {
        do {
            return try await transport.send(call, of: terms.signIn)
        } catch let error as TokenError where error.code == .sessionChanged {
            throw AuthorizationError.userChanged
        }
    }

    /// Whether an error says that its call had no effect: the transport says so, or there were no credentials for it.
    ///
    /// - Parameter error: what sending the call has thrown.
    /// - Returns: `false` where nobody has said it.
    package static func saysUnsent(_ error: any Error) -> Bool {
        if let error = error as? HTTPTransportError { return !error.mayHaveHadEffect }
        return error is TokenError
    }

    private static func strongerSignIn(_ wanted: InsufficientAuthentication) -> AuthorizationError {
        AuthorizationError(
            .strongerSignInNeeded,
            wanted.maxAge == nil
                ? "The resource wants a stronger sign-in than the user's."
                : "The resource wants another sign-in: the user's is too weak, or too long ago.",
            acrValues: wanted.acrValues, maxAge: wanted.maxAge)
    }

    /// What an origin gets now; `nil` for one that is not a protected resource.
    package func access(to origin: Origin) -> ResourceAccess? { shared.parts.configuration.access(to: origin) }

    /// What is configured for a call that began in a sign-in; `nil` when its origin is not a resource.
    ///
    /// - Throws: ``AuthorizationError`` with code `invalidRequest`; what settling the configuration throws.
    private func terms(of call: HTTPCall, _ signIn: SignInMark?) async throws -> CallTerms? {
        let origin: Origin
        do throws(WireError) {
            origin = try call.origin
        } catch {
            throw AuthorizationError(.invalidRequest, "The request's URL cannot be used: \(error.detail).")
        }
        try await shared.parts.configuration.settle?(call)
        guard let access = self.access(to: origin) else { return nil }
        let policy = try policies.policy(of: call, at: origin)
        return CallTerms(
            access: access, policy: policy,
            requiresBinding: shared.parts.configuration.requiresBinding || policy?.requiresBinding == true,
            signIn: signIn)
    }

    private func stamped(_ original: HTTPCall, isOurs: Bool) -> HTTPCall {
        var call = original
        if !call.isSafe, call.request.headerFields[.idempotencyKey] == nil {
            call.request.headerFields[.idempotencyKey] = random.uuid()
        }
        if isOurs { call.request.headerFields[.authenticateResponse] = "header" }
        return call
    }
}
