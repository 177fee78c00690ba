import AssentCore
import AssentEngine
import AssentEnforcement
import Foundation
import Hummingbird
import Logging

/// The engine of another server decides, asked over HTTPS. Nothing is let through without its answer; a route may say
/// that an answer is used again for some seconds.
struct RemoteDecisions: GatewayDecisions {
    /// The engine's answers, by realm.
    private let engines: [String: EnforcementClient]
    private let cache: DecisionCache
    private let outcomes: RealmOutcomes
    private let clock: any WallClock
    private let random: any RandomSource
    private let logger: Logger

    /// The realms whose last question the engine did not decide.
    let undecidedRealms = Locked<Set<String>>([])

    /// There are no keys here to open what is sealed.
    var isSealed: Bool { false }

    private static let safeMethods: Set<String> = ["GET", "HEAD", "OPTIONS"]

    init(
        _ engines: [String: EnforcementClient], cache: DecisionCache, outcomes: RealmOutcomes, clock: any WallClock,
        random: any RandomSource, logger: Logger
    ) {
        self.engines = engines
        self.cache = cache
        self.outcomes = outcomes
        self.clock = clock
        self.random = random
        self.logger = logger
    }

    func decide(_ question: GatewayQuestion, body: BoundBodyReader) async throws -> GatewayAnswer {
        let realm = question.inquiry.realm
        guard let engine = engines[realm], let outcomes = outcomes[realm] else {
            logger.error("a route names a realm without a client", metadata: ["realm": "\(realm)"])
            return GatewayAnswer(verdict: .denied(.unavailable))
        }
        let asked = question.asked(attempt: random.token())
        let isKept = question.isCacheable && Self.safeMethods.contains(asked.method)
        let key = isKept ? cache.key(of: asked, realm: realm) : nil
        var exchange = EnforcementExchange(engine, asked, content: body)
        if let key, let grant = cache.grant(key) {
            let kept = remoteGrant(grant, question, exchange, outcomes)
            return GatewayAnswer(verdict: .granted(kept, body: nil), newNonce: nil)
        }
        let began = clock.now
        let answer: EnforcementAnswer
        do {
            answer = try await exchange.answer(at: clock) { await outcomes.add($0) }
            undecidedRealms.withLock { _ = $0.remove(realm) }
        } catch {
            guard let error = error as? EnforcementError else { throw error }
            if error.clientsFault == nil { undecidedRealms.withLock { _ = $0.insert(realm) } }
            return undecided(error, exchange)
        }
        if let key, case .granted(let grant) = answer, grant.transaction == nil, grant.newNonce == nil {
            cache.keep(grant, key, seconds: min(question.cacheSeconds, grant.keepSeconds), from: began)
        }
        return try self.answer(answer, to: question, exchange, outcomes)
    }

    /// What the client is told without an answer. Its transaction may have been taken all the same.
    private func undecided(_ error: EnforcementError, _ exchange: EnforcementExchange) -> GatewayAnswer {
        logger.error(
            "the engine did not decide", metadata: ["error": "\(error.code.rawValue)", "detail": "\(error.detail)"])
        if let refusal = error.clientsFault { return GatewayAnswer(verdict: .denied(.refused(refusal))) }
        guard exchange.question.transaction != nil, error.mayHaveActed else {
            return GatewayAnswer(verdict: .denied(.unavailable))
        }
        return GatewayAnswer(verdict: .denied(.outcomeUnknown))
    }

    private func answer(
        _ answer: EnforcementAnswer, to question: GatewayQuestion, _ exchange: EnforcementExchange,
        _ outcomes: OutcomeReports
    ) throws -> GatewayAnswer {
        switch answer {
        case .granted(let grant):
            GatewayAnswer(
                verdict: .granted(remoteGrant(grant, question, exchange, outcomes), body: exchange.bytes),
                newNonce: grant.newNonce)
        case .advised(let advised):
            GatewayAnswer(
                verdict: .advised(advised.advice, acrValues: advised.acrValues), newNonce: advised.newNonce)
        case .alreadyTaken(let transaction, let outcome, let nonce):
            GatewayAnswer(
                verdict: .alreadyTaken(transaction, outcome: outcome?.json ?? .null), newNonce: nonce)
        case .denied(let denial):
            GatewayAnswer(verdict: .denied(AccessDenial(denial)), newNonce: denial.newNonce)
        case .refused(.cookie): GatewayAnswer(verdict: .refused(.foreignPage))
        case .refused(.token(let scheme, let error, let detail, let nonce)):
            GatewayAnswer(
                verdict: .refused(
                    .credentials(
                        try CredentialRefusal(
                            scheme, error: error, detail: detail, nonce: nonce,
                            scopes: question.inquiry.accessToken.scopes))))
        case .needBody:
            // It was sent all that there is.
            throw EnforcementError(.malformedReply, "The engine asks for a body that it has.")
        }
    }

    private func remoteGrant(
        _ grant: EnforcementAnswer.Grant, _ question: GatewayQuestion, _ exchange: EnforcementExchange,
        _ outcomes: OutcomeReports
    ) -> RemoteGrant {
        RemoteGrant(
            grant: grant, recheck: question.recheck(isApproved: grant.transaction != nil), engine: exchange.engine,
            attempt: exchange.question.attempt, outcomes: outcomes, random: random)
    }
}

/// A grant of an engine elsewhere. Its transaction is on record as forwarded.
private struct RemoteGrant: GatewayGrant {
    let grant: EnforcementAnswer.Grant
    let recheck: @Sendable (_ attempt: String) -> EnforcementQuestion
    let engine: EnforcementClient
    let attempt: String
    let outcomes: OutcomeReports
    let random: any RandomSource

    var user: String? { grant.user?.name }
    var transaction: String? { grant.transaction }

    func token(_ identity: ServiceIdentity, issuer: String, of request: SpentRequest?) async throws -> Secret? {
        guard grant.identity != nil || grant.user == nil else {
            throw EnforcementError(.malformedReply, "The engine has signed no token about the caller.")
        }
        return grant.identity
    }

    func isStillGranted() async -> Bool {
        guard case .success(.granted(let again)) = await engine.decide(recheck(random.token())).answer else {
            return false
        }
        return again.transaction == nil
    }

    func forwarding(
        _ send: @escaping @Sendable () async -> (Response, UpstreamOutcome)
    ) async -> ForwardingResult<Response> {
        guard let transaction else { return .sent(await send().0) }
        return await Task { [attempt, outcomes, engine] in
            let (response, outcome) = await send()
            let statement = OutcomeStatement(
                transaction: transaction, attempt: attempt, outcome: EnforcementOutcome(outcome))
            await outcomes.add(.init(statement, to: engine))
            return .sent(response)
        }.value
    }
}

extension EnforcementError {
    /// What the client is told where the engine cannot read what it has sent; `nil` for anything else.
    fileprivate var clientsFault: EngineError? {
        guard code == .refused else { return nil }
        return switch status {
        case 400: EngineError(.invalidRequest, "The request has fields that the engine cannot read.")
        case 413: EngineError(.tooLarge, "The request is larger than the engine takes.")
        default: nil
        }
    }
}

extension GatewayQuestion {
    /// Whether an answer may be used again: nothing in it is for one use alone.
    fileprivate var isCacheable: Bool {
        cacheSeconds > 0 && transactionID == nil && identity == nil && (inquiry.credentials.proof?.fields ?? []).isEmpty
    }

    /// The question as the engine reads it.
    fileprivate func asked(attempt: String) -> EnforcementQuestion {
        let requirement = inquiry.accessToken
        var asked = EnforcementQuestion(
            policySet: inquiry.policySet, resource: inquiry.resource.url, method: inquiry.method,
            credentials: credentials, requirement: .init(), attempt: attempt)
        asked.requirement.scopes = requirement.scopes
        asked.requirement.audience = requirement.audience
        asked.requirement.includesIssuer = requirement.includesIssuer
        asked.requirement.kinds = requirement.kinds.map(\.rawValue).sorted()
        asked.requirement.isSenderConstrained = requirement.isSenderConstrained
        asked.action = inquiry.action == inquiry.method ? nil : inquiry.action
        asked.address = clientAddress.map { "\($0)" }
        // An empty text is left out on the wire. A body without a type cannot be bound.
        asked.contentType = mediaType.flatMap { $0.isEmpty ? nil : $0 }
        asked.idempotencyKey = idempotencyKey.flatMap { $0.isEmpty ? nil : $0 }
        asked.transaction = transactionID
        asked.identity = identity.map { .init(audience: $0.audience, issuer: issuer, claims: $0.claims) }
        return asked
    }

    /// The question about the same caller later, while a connection is open.
    fileprivate func recheck(isApproved: Bool) -> @Sendable (_ attempt: String) -> EnforcementQuestion {
        { attempt in
            var asked = asked(attempt: attempt)
            asked.isRecheck = true
            asked.isApproved = isApproved
            asked.transaction = nil
            asked.idempotencyKey = nil
            asked.identity = nil
            return asked
        }
    }

    private var credentials: EnforcementQuestion.Credentials {
        let presented = inquiry.credentials
        var credentials = EnforcementQuestion.Credentials(proofURL: presented.proof?.url ?? inquiry.resource.url)
        credentials.session = presented.session?.token
        credentials.isCookie = presented.session?.carrier == .cookie
        credentials.mayUseCookie = mayUseCookie
        credentials.authorization = authorization.map { Secret($0) }
        credentials.proofs = presented.proof?.fields ?? []
        return credentials
    }
}

extension AccessDenial {
    fileprivate init(_ denial: EnforcementAnswer.Denial) {
        self =
            switch denial.reason {
            case .noSession: .noSession
            case .forbidden: .noPolicy
            case .request:
                .refused(EngineError(EngineError.Code(rawValue: denial.code ?? ""), denial.detail ?? ""))
            case .tokenKind: .tokenKind
            case .unavailable: .unavailable
            case .outcomeUnknown: .outcomeUnknown
            }
    }
}

extension EnforcementOutcome {
    fileprivate init(_ outcome: UpstreamOutcome) {
        self =
            switch outcome {
            case .taken, .forwarded, .unknown: .unknown
            case .notForwarded: .notForwarded
            case .answered(let status): .answered(status: status)
            }
    }
}
