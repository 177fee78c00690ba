import AssentCore
import Logging

/// Answers gateways elsewhere: one question for each request, in the order in which ``GatewayAccess`` is asked by the
/// gateway beside the engine. Taking a transaction also notes that its request is forwarded.
package struct RemoteAccess: Sendable {
    private let access: GatewayAccess

    /// The questions with a transaction that are being answered here.
    let inFlight = WorkInFlight()

    /// The longest time that a decision may be kept, in seconds.
    package static let longestKeep: Int64 = 60

    /// Answers about what `access` lets through.
    package init(_ access: GatewayAccess) {
        self.access = access
    }

    /// Decides on a request and settles its transaction.
    ///
    /// The same question with a transaction, asked again, waits until the first one is answered: between its proof's
    /// end and the take nothing shows yet that it was the same.
    ///
    /// - Throws: ``StoreError`` or ``EngineError`` when who calls cannot be looked up, or too many wait. Nothing was
    ///   made or taken then.
    package func decide(_ inquiry: RemoteInquiry) async throws -> RemoteDecision {
        guard inquiry.transactionID != nil, !inquiry.isRecheck, let name = inquiry.attempt?.whole else {
            return try await answer(inquiry)
        }
        guard try await inFlight.enter(name) else { return try await answer(inquiry) }
        do {
            let decision = try await answer(inquiry)
            await inFlight.leave(name)
            return decision
        } catch {
            await inFlight.leave(name)
            throw error
        }
    }

    private func answer(_ inquiry: RemoteInquiry) async throws -> RemoteDecision {
        let request = inquiry.request
        guard let set = settlement.decisions.policySet(request.policySet, realm: request.realm) else {
            settlement.context.logger.error("unknown policy set", metadata: ["policySet": "\(request.policySet)"])
            return .decided(.denied(.unavailable), RemoteCaller(.anonymous))
        }
        if inquiry.isRecheck { return try await recheck(inquiry) }
        let matched = settlement.decisions.match(set, resource: request.resource, action: request.action)
        // Before anybody is looked up: the proof must be there for the question that has the body.
        if matched.bindsBody, !request.credentials.isEmpty, let whole = inquiry.missingBody {
            return .needBody(whole: whole)
        }
        let caller = try await caller(of: inquiry)
        switch caller {
        case .refusedToken(let refusal): return .refused(refusal)
        case .refusedKind: return .decided(.denied(.tokenKind), RemoteCaller(caller))
        case .session(_, .cookie, _) where !inquiry.mayUseCookie: return .refusedCookie
        case .session, .accessToken, .anonymous, .foreignSession: break
        }
        return await settled(inquiry, GatewayAdmission(caller: caller, method: request.method, matched: matched))
    }

    /// Records what became of the request of a transaction; see
    /// ``Transactions/conclude(id:attempt:client:realm:_:)``.
    ///
    /// - Throws: ``EngineError``.
    package func conclude(
        transaction id: String, attempt: String, client: String, realm: String, _ outcome: UpstreamOutcome
    ) async throws -> OutcomeReception {
        try await settlement.transactions.conclude(
            id: id, attempt: attempt, client: client, realm: realm, outcome)
    }

    private var settlement: AccessSettlement { access.settlement }

    /// Who sends the request. One that had its answer a moment ago, and asks again since that was lost, has spent its
    /// proof: that is not asked for twice.
    private func caller(of inquiry: RemoteInquiry) async throws -> Caller {
        let request = inquiry.request
        let caller = try await access.callers.caller(
            with: request.credentials, realm: request.realm, requirement: request.accessToken)
        guard case .refusedToken(let refusal) = caller, refusal.proof != nil, let id = inquiry.transactionID,
            let attempt = inquiry.attempt, try await settlement.transactions.wasTaken(id: id, by: attempt)
        else { return caller }
        return try await access.callers.unproved(
            request.credentials, realm: request.realm, requirement: request.accessToken) ?? caller
    }

    private func settled(_ inquiry: RemoteInquiry, _ admission: GatewayAdmission) async -> RemoteDecision {
        var request = GatewayRequest(
            admission, mediaType: inquiry.mediaType, transactionID: inquiry.transactionID,
            clientAddress: inquiry.believedAddress, idempotencyKey: inquiry.idempotencyKey)
        switch inquiry.content {
        case .unread: break
        case .whole(let body): request.body = body
        case .digest(let digest): request.bodyDigest = digest
        }
        request.maker = .group(inquiry.group.name)
        request.attempt = inquiry.attempt
        let (decision, nextChange) = await settlement.decide(request)
        var caller = RemoteCaller(admission.caller)
        switch decision {
        case .granted(let taken):
            do {
                caller.identity = try await identity(inquiry, admission, taken)
            } catch {
                return unsigned(taken, error)
            }
            if taken == nil { caller.keepSeconds = keepSeconds(inquiry, admission.caller, until: nextChange) }
        case .advised(let advice, _):
            if case .accessToken = admission.caller {
                caller.acrValues = access.acrValues(meeting: advice, realm: inquiry.request.realm)
            }
        case .alreadyTaken, .denied: break
        }
        return .decided(decision, caller)
    }

    /// The token for the service; `nil` where none is asked for, or nobody calls.
    private func identity(
        _ inquiry: RemoteInquiry, _ admission: GatewayAdmission, _ taken: TakenTransaction?
    ) async throws -> Secret? {
        guard let identity = inquiry.identity else { return nil }
        // A gateway may send a digest before it knows whether one is wanted. The token says what was approved.
        let spent = taken.map {
            SpentRequest(
                transaction: $0.id, method: inquiry.request.method, resource: inquiry.request.resource,
                bodyDigest: admission.bindsBody ? inquiry.content.digest : nil)
        }
        return try await access.token(
            identity.service, about: admission.caller, realm: inquiry.request.realm, issuer: identity.issuer, of: spent)
    }

    /// Nothing is forwarded of which the service cannot be told who sends it.
    ///
    /// What became of a transaction is for the gateway to say: another node may have granted the same question
    /// meanwhile, and its request may be on its way to the service.
    private func unsigned(_ taken: TakenTransaction?, _ error: any Error) -> RemoteDecision {
        settlement.context.logger.error("who calls could not be signed", metadata: ["error": "\(error)"])
        return .decided(.denied(taken == nil ? .unavailable : .outcomeUnknown), RemoteCaller(.anonymous))
    }

    /// For how long the decision is surely the same, if nothing is revoked or changed: a proof is good once.
    private func keepSeconds(_ inquiry: RemoteInquiry, _ caller: Caller, until nextChange: Int64?) -> Int64 {
        guard inquiry.request.credentials.proof?.fields.isEmpty ?? true else { return 0 }
        let now = settlement.context.clock.epochSeconds
        var ends = [now + Self.longestKeep]
        if let nextChange { ends.append(nextChange) }
        switch caller {
        case .accessToken(let grant, _): ends.append(grant.expiresAt)
        case .session(let session, _, _): ends.append(session.idleExpiresAt)
        case .anonymous, .foreignSession, .refusedToken, .refusedKind: break
        }
        return max(0, (ends.min() ?? now) - now)
    }

    /// Whether the caller of a connection that stays open would be let in again now. Nothing is noted as used.
    private func recheck(_ inquiry: RemoteInquiry) async throws -> RemoteDecision {
        let request = inquiry.request
        let caller = try await access.callers.unproved(
            request.credentials, realm: request.realm, requirement: request.accessToken)
        guard let caller else { return .decided(.denied(.noSession), RemoteCaller(.anonymous)) }
        let isGranted = try await access.isGranted(request, to: caller, clientAddress: inquiry.believedAddress)
        return .decided(isGranted ? .granted(taken: nil) : .denied(.notPermitted), RemoteCaller(caller))
    }
}

extension RemoteInquiry {
    /// The client's address, where the group is believed.
    fileprivate var believedAddress: IPAddress? { group.believesAddress ? clientAddress : nil }

    /// What is missing of a body that a policy binds: all of it, or its digest; `nil` where nothing is. To make a
    /// transaction all of it is read and shown.
    fileprivate var missingBody: Bool? {
        switch content {
        case .unread: transactionID == nil
        case .digest: transactionID == nil ? true : nil
        case .whole: nil
        }
    }
}

extension RemoteInquiry.Content {
    /// The SHA-256 of the body in base64url; `nil` when nothing is known of it.
    fileprivate var digest: String? {
        switch self {
        case .unread: nil
        case .whole(let body): Base64URL.encode(SHA2.sha256(body))
        case .digest(let digest): Base64URL.encode(digest)
        }
    }
}

extension PresentedCredentials {
    /// Whether there are none.
    fileprivate var isEmpty: Bool {
        if case .absent = accessToken { session == nil } else { false }
    }
}

extension Callers {
    /// The caller with these credentials as they are now, without a look at any proof: for somebody who has shown it
    /// before. `nil` when they are not valid. Nothing is noted as used.
    ///
    /// - Throws: ``EngineError`` `payloadEncryptionRequired`; ``StoreError``.
    func unproved(
        _ credentials: PresentedCredentials, realm: String, requirement: AccessTokenRequirement
    ) async throws -> Caller? {
        let caller: Caller
        switch credentials.accessToken {
        case .malformed: return nil
        case .token(let token, _):
            guard let provider = providers[realm], let claims = try await provider.accessClaims(token),
                let grant = try await provider.access(token: token, keyThumbprint: claims.sender?.keyThumbprint),
                requirement.refusal(of: grant, issuer: provider.configuration.issuer) == nil
            else { return nil }
            try demandSealing(grant, in: provider)
            caller = .accessToken(grant, newNonce: nil)
        case .absent:
            guard let credential = credentials.session else {
                return requirement.isSenderConstrained ? nil : .anonymous
            }
            guard let session = try await sessions.live(token: credential.token), session.realm == realm,
                !requirement.isSenderConstrained || session.sender != nil
            else { return nil }
            caller = .session(session, credential.carrier)
        }
        return caller.kind.map { requirement.kinds.contains($0) } ?? true ? caller : nil
    }
}
