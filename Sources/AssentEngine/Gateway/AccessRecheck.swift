import AssentCore

extension GatewayAccess {
    /// Whether the caller of a connection that stays open would be let in again now. Anything else is no, and so is a
    /// database that does not answer. Nothing is taken or made: where the connection was opened by a transaction, it is
    /// enough that one would be asked for again.
    ///
    /// No proof is asked for: it was shown when the connection was opened. The session is not noted as used either: an
    /// open connection does not show that a user is there.
    package func isStillGranted(
        _ inquiry: GatewayInquiry, to caller: Caller, clientAddress: IPAddress?
    ) async -> Bool {
        do {
            let again = try await callers.again(
                caller, with: inquiry.credentials, realm: inquiry.realm, requirement: inquiry.accessToken)
            guard let again else { return false }
            return try await isGranted(inquiry, to: again, clientAddress: clientAddress)
        } catch {
            return false
        }
    }

    /// Whether somebody is let in without a transaction, or would be asked for one again.
    ///
    /// - Throws: ``StoreError``, ``EngineError``.
    func isGranted(
        _ inquiry: GatewayInquiry, to caller: Caller, clientAddress: IPAddress?
    ) async throws -> Bool {
        guard let set = settlement.decisions.policySet(inquiry.policySet, realm: inquiry.realm) else { return false }
        let matched = settlement.decisions.match(set, resource: inquiry.resource, action: inquiry.action)
        let admission = GatewayAdmission(caller: caller, method: inquiry.method, matched: matched)
        let request = GatewayRequest(admission, clientAddress: clientAddress)
        // Only assessed: settling it would make a transaction at each look where one is asked for.
        let facts = try await settlement.facts(of: request, matched)
        let assessment = settlement.decisions.assess(matched, facts: facts)
        guard try assessment.decision == .granted(taken: nil) else { return false }
        return inquiry.isApproved || assessment.pending == nil
    }
}

extension Callers {
    /// The caller of earlier with the same credentials, as they are now; `nil` when they are valid no more.
    func again(
        _ caller: Caller, with credentials: PresentedCredentials, realm: String, requirement: AccessTokenRequirement
    ) async throws -> Caller? {
        switch caller {
        case .session(let earlier, let carrier, _):
            guard let session = try await sessions.live(id: earlier.id), session.realm == realm else { return nil }
            return .session(session, carrier)
        case .accessToken(let earlier, _):
            guard case .token(let token, _) = credentials.accessToken, let provider = providers[realm],
                let grant = try await provider.access(token: token, keyThumbprint: earlier.sender?.keyThumbprint),
                requirement.refusal(of: grant, issuer: provider.configuration.issuer) == nil
            else { return nil }
            // The installation may have been updated to a version whose calls must be sealed.
            try demandSealing(grant, in: provider)
            return .accessToken(grant, newNonce: nil)
        case .anonymous: return .anonymous
        case .foreignSession, .refusedToken, .refusedKind: return nil
        }
    }
}
