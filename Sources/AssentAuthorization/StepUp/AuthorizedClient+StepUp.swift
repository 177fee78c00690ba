import AssentCore
import AssentJourney
import AssentTokens
import Foundation

/// An advice that could not be followed any more when its turn came. The call had no effect.
struct OutdatedAdvice: Error {}

extension AuthorizedClient {
    /// Runs the journey that an advice asks for, on top of the user's session; one at a time.
    ///
    /// - Returns: what the server said that it was for.
    /// - Throws: ``OutdatedAdvice`` when the server had forgotten it before the user was asked.
    func stepUp(
        _ advice: Advice, for request: RepeatableRequest, _ terms: CallTerms,
        _ approve: (inout Approval, Date?) async throws -> StepAction
    ) async throws -> ApprovalBinding {
        do {
            let binding = try await inTurn(advice, for: request, terms, approve)
            try checkUser(terms)
            return binding
        } catch is CancellationError where Task.isCancelled {
            throw AuthorizationError(.cancelled, "The task was cancelled before anything was approved.")
        }
    }

    private func inTurn(
        _ advice: Advice, for request: RepeatableRequest, _ terms: CallTerms,
        _ approve: (inout Approval, Date?) async throws -> StepAction
    ) async throws -> ApprovalBinding {
        // A journey serves all calls of one sign-in that need it, an approval only requests that are this one, whatever
        // the server says. What came of another user's question is nothing to them.
        var key = advice.json.serialized()
        if let signIn = terms.signIn { key += " \(ObjectIdentifier(signIn))" }
        if case .transaction = advice.kind { key += " \(request.method) \(request.url) \(request.bodySHA256)" }
        guard !OpenQuestion.isAsked(by: coordinator) else {
            throw AuthorizationError(
                .nestedApproval, "A call from the handler of an approval wants an approval itself.")
        }
        let deadline = { [clock] in terms.policy.map { clock.time(after: $0.patience) } }
        switch await coordinator.enter(key, until: deadline(), clock: clock) {
        case .follow(let result): return try result.get()
        case .lead(let turn):
            do {
                try checkUser(terms)
            } catch {
                await coordinator.finish(turn, nil)
                throw error
            }
            do {
                let binding = try await lead(advice, for: request, terms, turn, until: deadline(), approve)
                await coordinator.finish(turn, .success(binding))
                return binding
            } catch {
                let isOwn = Task.isCancelled || (error as? AuthorizationError)?.code == .timedOut
                await coordinator.finish(turn, isOwn ? nil : .failure(error))
                throw error
            }
        }
    }

    private func lead(
        _ advice: Advice, for request: RepeatableRequest, _ terms: CallTerms, _ turn: StepUpCoordinator.Turn,
        until deadline: Date?, _ approve: (inout Approval, Date?) async throws -> StepAction
    ) async throws -> ApprovalBinding {
        guard let user = source.user else {
            throw AuthorizationError(.noSession, "Only a user's call can be approved. This one has no session.")
        }
        let session = try await user.session()
        var questions = Questions(advice: advice, request: request, requiresBinding: terms.requiresBinding)
        if questions.isTransaction, session == nil {
            throw AuthorizationError(.noSession, "There is no session that could approve this.")
        }
        let result: Session
        do {
            result = try await journeys.run(advice: advice, session: session) { step in
                var approval = try questions.next(step)
                try checkTime(deadline)
                let action = try await OpenQuestion.whileAsking(coordinator) {
                    try await approve(&approval, deadline)
                }
                try checkTime(deadline)
                step = approval.step
                return action
            }
        } catch let failure as JourneyFailure where failure.code == .declined {
            throw AuthorizationError(.declined, "The user declined.")
        } catch let error as JourneyError where error.code == .declined {
            throw AuthorizationError(.declined, error.detail, suggestion: error.suggestion)
        } catch is JourneyError where questions.isTransaction && questions.isFirst && turn.hasWaited {
            throw OutdatedAdvice()
        } catch let error as JourneyError
            where Self.lateCodes.contains(error.code) && questions.hasExpired(at: clock.now)
        {
            throw AuthorizationError(.expired, "The approval came too late, and nothing was approved.")
        }
        if questions.isTransaction, questions.isFirst, terms.requiresBinding { try request.requireBinding([]) }
        guard !result.token.isEmpty, result.token != session?.token else {
            try Task.checkCancellation()
            return questions.binding
        }
        if questions.isTransaction {
            throw AuthorizationError(
                .sessionChanged, "The journey ended with another session, so the approval is not this session's.")
        }
        guard try await StepUpSessions(user).install(result, inPlaceOf: session) else {
            throw AuthorizationError.signedOutMeanwhile
        }
        try Task.checkCancellation()
        return questions.binding
    }

    /// A call is that of the user who was signed in when it began: nobody else is asked about it, and it does not go
    /// out in anybody else's name.
    func checkUser(_ terms: CallTerms) throws(AuthorizationError) {
        guard source.signIn === terms.signIn else { throw .userChanged }
    }

    /// What a server says of an approval that it has forgotten.
    private static let lateCodes: Set<JourneyError.Code> = [.sessionTimedOut, .transactionUnknown]

    private func checkTime(_ deadline: Date?) throws(AuthorizationError) {
        if let deadline, clock.now >= deadline { throw .tookTooLong }
    }
}

extension AuthorizationError {
    /// The user of a call may be another one now.
    static let userChanged = AuthorizationError(
        .sessionChanged, "Somebody has signed out, or in, since the call began, so it is not sent any more.",
        suggestion: "Send the request again if the user is still the same.")

    /// The session from which a journey went on is not there any more, so that of its end is nobody's.
    package static let signedOutMeanwhile = AuthorizationError(
        .sessionChanged, "Somebody has signed out, or in, while the journey was under way. Its session is not kept.",
        suggestion: "Send the request again if the user is still the same.")
}

/// What the steps of one approval said so far.
private struct Questions {
    private let advice: Advice
    private let request: RepeatableRequest
    private let requiresBinding: Bool
    private var stated: (parts: Set<ApprovalBinding.Part>, statement: TransactionStatement)?
    /// Whether no step has been seen.
    private(set) var isFirst = true

    init(advice: Advice, request: RepeatableRequest, requiresBinding: Bool) {
        self.advice = advice
        self.request = request
        self.requiresBinding = requiresBinding
    }

    var isTransaction: Bool { if case .transaction = advice.kind { true } else { false } }

    var binding: ApprovalBinding { stated.map { .stated($0.parts) } ?? .notStated }

    /// Whether it is too late to approve, by what the server said.
    func hasExpired(at time: Date) -> Bool { stated?.statement.expiresAt.map { $0 <= time } ?? false }

    /// What to ask with a step.
    ///
    /// - Throws: ``AuthorizationError`` when the server asks to approve another request, or does not say enough.
    mutating func next(_ step: JourneyStep) throws -> Approval {
        if case .transaction(let id) = advice.kind {
            if let statement = try TransactionStatement(step) {
                stated = (try statement.compare(with: request, transactionID: id), statement)
            }
            if requiresBinding { try request.requireBinding(stated?.parts ?? []) }
        }
        defer { isFirst = false }
        return Approval(
            advice: advice, method: request.method, url: request.url, display: stated?.statement.display ?? [],
            binding: binding, expiresAt: stated?.statement.expiresAt, isFirstStep: isFirst, step: step)
    }
}
