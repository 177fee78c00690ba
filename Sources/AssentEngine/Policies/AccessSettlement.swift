import AssentCore
import Logging

/// Decides on accesses and settles their transactions: takes the one that the request names, or creates the one that
/// the policies ask for.
package struct AccessSettlement: Sendable {
    let context: EngineContext

    /// What the policies grant.
    package let decisions: PolicyDecisionPoint

    /// Where transactions are taken and created.
    package let transactions: Transactions

    /// A settlement of what `decisions` says.
    package init(_ context: EngineContext, decisions: PolicyDecisionPoint, transactions: Transactions) {
        self.context = context
        self.decisions = decisions
        self.transactions = transactions
    }

    /// Answers one question. A transaction comes last: only where everything else holds is one taken or created.
    func settle(_ question: AccessQuestion) async throws -> SettledAccess {
        let assessment = decisions.assess(question.matched, facts: question.facts)
        var settled = SettledAccess(decision: try assessment.decision, assessment: assessment)
        switch settled.decision {
        case .advised where !question.maySignInFurther: settled.decision = .denied(.tokenKind)
        case .denied(.severalTransactions):
            settled.reasons.append("several policies ask for a transaction; one access can have one")
        case .granted:
            guard let pending = assessment.pending else {
                if question.transactionID != nil {
                    settled.decision = try await spendUnneeded(question, &settled) ?? settled.decision
                }
                break
            }
            guard question.maySignInFurther else {
                settled.decision = .denied(.tokenKind)
                break
            }
            settled.decision = try await spendOrRequire(pending, question, &settled.reasons)
        default: break
        }
        return settled
    }

    /// Takes the transaction that the question names. Where it names none, or one that does not help an enforcement
    /// point that asks over REST, creates one.
    private func spendOrRequire(
        _ pending: PolicyAssessment.Pending, _ question: AccessQuestion, _ reasons: inout [String]
    ) async throws -> AccessDecision {
        guard let binding = question.binding(of: pending) else {
            reasons.append("\(pending.policy.name): binds method or body, and the question does not contain them")
            return .denied(.unboundContent)
        }
        if let spent = try await spend(question, binding, &reasons) { return spent }
        guard question.content?.knowsDigestAlone != true else { return .denied(.unboundContent) }
        let display = try TransactionDisplay.render(
            pending.policy, of: question.body ?? ShownBody(question.content), query: question.matched.resource.query)
        let record = try await transactions.create(
            binding: binding, url: question.matched.resource.url, display: display,
            ttl: pending.condition.ttl, idempotencyKey: question.idempotencyKey)
        return .advised(try Advice([Advice.Entry(.transaction, [record.id])]), transaction: record)
    }
}

extension AccessSettlement {
    /// Takes the transaction that the question names. `nil` where it names none, or one that does not help an
    /// enforcement point that asks over REST.
    private func spend(
        _ question: AccessQuestion, _ binding: TransactionBinding, _ reasons: inout [String]
    ) async throws -> AccessDecision? {
        guard let id = question.transactionID else { return nil }
        let result = try await transactions.take(
            id: id, binding: binding, by: question.attempt, token: question.presented?.tokenID)
        switch result {
        case .taken(let taken): return .granted(taken: taken)
        case .alreadyTaken(let record):
            reasons.append("the transaction was taken before")
            return question.replacesUselessTransactions ? nil : .alreadyTaken(record)
        case .refused(let reason):
            reasons.append("the transaction was refused: \(reason.rawValue)")
            return question.replacesUselessTransactions ? nil : .denied(.transaction(reason))
        }
    }

    /// Where the policy has come to grant the access without its transaction (by the approval, the network has become
    /// a usual one), one that is named is used all the same: what was approved happens once, and nothing else happens
    /// in its name. `nil` where nothing is to be said of one.
    private func spendUnneeded(
        _ question: AccessQuestion, _ settled: inout SettledAccess
    ) async throws -> AccessDecision? {
        guard question.maySignInFurther, let unneeded = settled.assessment.unneeded,
            let binding = question.binding(of: unneeded)
        else { return nil }
        return try await spend(question, binding, &settled.reasons)
    }
}

/// One question about one access.
struct AccessQuestion {
    let matched: MatchedPolicies
    /// Who asks, and may take what was asked for here.
    let maker: TransactionMaker
    let facts: PolicyFacts
    let presented: PresentedSession?
    let content: RequestContent?
    let transactionID: String?
    /// The body of ``content``, where other questions are about it, too.
    var body: ShownBody?
    /// What tells requests apart that look alike.
    var idempotencyKey: String?
    /// What a gateway elsewhere calls the request.
    var attempt: TransactionAttempt?
    /// Whether who asks wants to hear what became of a transaction that was used before, and reports what becomes of
    /// one that is taken now.
    var reportsOutcome = false

    /// What an id is answered with that does not help: a new transaction, or what is wrong with it.
    var replacesUselessTransactions: Bool { maker.replacesUselessTransactions && !reportsOutcome }

    /// What a transaction for it is bound to; `nil` without a session, and where the question lacks what is bound.
    func binding(of pending: PolicyAssessment.Pending) -> TransactionBinding? {
        presented.flatMap {
            TransactionBinding(
                matched.set, pending.policy, pending.condition, resource: matched.resource, content: content,
                presented: $0, maker: maker)
        }
    }

    /// Whether an advice, or a transaction, is for somebody with these credentials. A client that calls for itself has
    /// no user who could do anything.
    var maySignInFurther: Bool { presented.map { Door.stepUp.admits($0.session) } ?? (facts.client == nil) }
}

/// The answer, with what the policies say besides.
struct SettledAccess {
    var decision: AccessDecision
    var reasons: [String]
    let assessment: PolicyAssessment

    init(decision: AccessDecision, assessment: PolicyAssessment) {
        self.decision = decision
        self.assessment = assessment
        reasons = assessment.reasons
    }
}
