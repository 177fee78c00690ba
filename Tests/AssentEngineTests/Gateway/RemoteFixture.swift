import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

/// A user who has signed in, a policy that wants a transaction, and what answers gateways elsewhere.
struct RemoteFixture: Sendable {
    static let origin = "https://api.bank.example"
    static let transfers = origin + "/transfers?kind=sepa"
    static let body = TransactionFixture.body

    let provider: ProviderFixture
    let transactions: Transactions
    let callers: Callers
    let access: RemoteAccess

    /// With the policy of ``TransactionFixture``, unless others are named.
    init(_ policies: [Policy]? = nil) async throws {
        provider = try await ProviderFixture()
        let context = provider.context
        try await SenderProofs.begin(context)
        transactions = Transactions(context)
        callers = Callers(
            sessions: Sessions(context), providers: ["/alpha": provider.grants], proofs: SenderProofs(context))
        access = try Self.access(provider, callers, transactions, policies)
    }

    static func access(
        _ provider: ProviderFixture, _ callers: Callers, _ transactions: Transactions, _ policies: [Policy]? = nil
    ) throws -> RemoteAccess {
        let settlement = AccessSettlement(
            transactions.context,
            decisions: PolicyDecisionPoint(policySets: [try TransactionFixture.policySet(policies)]),
            transactions: transactions)
        return RemoteAccess(
            GatewayAccess(callers: callers, settlement: settlement, keys: ServerKeys(transactions.context)))
    }

    static func group(_ name: String = "edge", believesAddress: Bool = false) throws -> EnforcementGroup {
        var group = EnforcementGroup(
            name: name, clients: [name], policySets: ["bank"], origins: [try Origin(origin)])
        group.believesAddress = believesAddress
        return group
    }

    /// What a test says of a request.
    struct Sent {
        var group = "edge"
        var client = "edge"
        var method = "POST"
        var url = RemoteFixture.transfers
        var session: Secret?
        var token: TokenCredentials = .absent
        var proof: PresentedProof?
        var kinds: Set<CallerKind> = [.user]
        var content = RemoteInquiry.Content.unread
        var transaction: String?
        var attempt: String = SystemRandom().token(byteCount: 16)
        /// What stands for the whole question.
        var question = "question"
    }

    func inquiry(_ sent: Sent) throws -> RemoteInquiry {
        var credentials = PresentedCredentials(accessToken: sent.token, proof: sent.proof)
        if case .absent = sent.token {
            credentials.session = SessionCredential(token: sent.session ?? provider.sessionToken, carrier: .field)
        }
        let request = GatewayInquiry(
            realm: "/alpha", policySet: "bank", method: sent.method, resource: try CanonicalResource(sent.url),
            credentials: credentials,
            accessToken: AccessTokenRequirement(
                scopes: [], audience: [Self.origin], includesIssuer: true, kinds: sent.kinds))
        var inquiry = RemoteInquiry(
            request, group: try Self.group(sent.group),
            attempt: TransactionAttempt(sent.attempt, client: sent.client, question: Array(sent.question.utf8)))
        inquiry.mediaType = "application/json"
        inquiry.content = sent.content
        inquiry.transactionID = sent.transaction
        return inquiry
    }

    func decide(_ sent: Sent, _ change: (inout RemoteInquiry) throws -> Void = { _ in }) async throws -> RemoteDecision
    {
        var inquiry = try inquiry(sent)
        try change(&inquiry)
        return try await access.decide(inquiry)
    }

    /// A transaction that a gateway of `group` has asked for, and that the user has approved.
    func approved(group: String = "edge") async throws -> String {
        var sent = Sent()
        sent.group = group
        sent.client = group
        sent.content = .whole(Self.body)
        let id = try #require(try await decide(sent).transaction)
        try await approve(id, provider.session)
        return id
    }

    /// What the user's approval of a transaction does.
    func approve(_ id: String, _ session: LiveSession) async throws {
        let approval = try await transactions.start(id: id, session: session)
        _ = try await provider.database.run(transactions.completion(of: approval, session: session))
    }

    /// A request with an approved transaction and the digest of its body.
    static func taking(_ id: String, body: [UInt8] = body) -> Sent {
        var sent = Sent()
        sent.transaction = id
        sent.content = .digest(SHA2.sha256(body))
        return sent
    }

    func conclude(
        _ id: String, _ sent: Sent, _ outcome: UpstreamOutcome, client: String = "edge", realm: String = "/alpha"
    ) async throws -> OutcomeReception {
        try await access.conclude(
            transaction: id, attempt: sent.attempt, client: client, realm: realm, outcome)
    }

    /// What is on record of a transaction's request.
    func outcome(_ id: String) async throws -> UpstreamOutcome? {
        try await transactions.outcome(id: id, session: provider.session)?.outcome
    }

    /// The audit records of an event of a transaction: outcome and reason.
    func audited(_ event: AuditEvent, _ id: String) async throws -> [String] {
        try await AuditLog(provider.context).records(transactionID: id).filter { $0.event == event }
            .map { "\($0.outcome.rawValue) \($0.reason ?? "-")" }
    }
}

extension RemoteDecision {
    /// One word for each kind.
    var word: String {
        switch self {
        case .needBody(let whole): whole ? "needs whole body" : "needs digest"
        case .refused(let refusal): "refused: \(refusal.error ?? "-")"
        case .refusedCookie: "refused cookie"
        case .decided(.granted(let taken), _): taken == nil ? "granted" : "granted once"
        case .decided(.advised, _): "advised"
        case .decided(.alreadyTaken(let record), _): "taken before: \(record.outcome.map { "\($0)" } ?? "-")"
        case .decided(.denied(let denial), _): "denied: \(denial)"
        }
    }

    /// The transaction that is to be approved.
    var transaction: String? {
        if case .decided(.advised(let advice, _), _) = self { advice.transactionID } else { nil }
    }

    /// Who calls, where it is decided.
    var caller: RemoteCaller? { if case .decided(_, let caller) = self { caller } else { nil } }
}
