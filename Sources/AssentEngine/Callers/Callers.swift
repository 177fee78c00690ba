import AssentCore
import AssentPayload

/// Finds out who sends a request. Every endpoint asks here, so that one rule decides which session is alive, which
/// realm it belongs to, and which access token is valid.
package struct Callers: Sendable {
    let sessions: Sessions
    let providers: [String: OAuthProvider]
    private let proofs: SenderProofs

    /// Whether the requests have come sealed (docs/payload-encryption.md).
    package private(set) var isSealed = false

    /// The callers of these realms.
    ///
    /// - Parameters:
    ///   - sessions: the sessions of all realms.
    ///   - providers: the OpenID providers, by realm.
    ///   - proofs: verifies proofs of keys, for all doors of the process.
    package init(sessions: Sessions, providers: [String: OAuthProvider], proofs: SenderProofs) {
        self.sessions = sessions
        self.providers = providers
        self.proofs = proofs
    }

    /// The same for requests that have come sealed.
    package var ofSealedRequests: Callers {
        var callers = self
        callers.isSealed = true
        return callers
    }

    /// What clients of a realm may ask for about how their users sign in; `nil` for an unknown realm.
    func contexts(realm: String) -> AuthenticationContexts? { providers[realm]?.configuration.contexts }

    /// The caller with a session's token and, where the session belongs to a key, a proof of that key. An access token
    /// beside it does not count.
    ///
    /// The proof is spent only if the session is alive and belongs to its key, so that only someone who has a session's
    /// token and key can fill the memory of spent proofs.
    ///
    /// - Throws: ``StoreError`` when the database cannot serve.
    package func caller(withSession credentials: PresentedCredentials, realm: String) async throws -> Caller {
        guard let credential = credentials.session else { return .anonymous }
        let policy = providers[realm]?.configuration.noncePolicy(of: nil) ?? .offered
        // What is wrong with it matters only once the session is known to belong to a key.
        let checked = proofs.checked(credentials.proof, accessToken: credential.token, policy: policy)
        let proof = try? checked.get()
        let found = try await proofs.find(
            sessions.lookUp(token: credential.token, realm: realm, keyThumbprint: proof?.thumbprint), with: proof)
        guard let session = try found.row.map(LiveSession.init(found:)) else { return .anonymous }
        guard session.realm == realm else { return .foreignSession(session) }
        do {
            let proof = try await proofs.verify(checked, of: session, found: found)
            return .session(session, credential.carrier, newNonce: proof?.newNonce)
        } catch let refusal as SenderProofRefusal {
            return .refusedToken(TokenRefusal(refusal))
        }
    }

    /// Whether a request presents a session that is alive, of whatever realm. No proof is looked at or spent: it says
    /// nothing about who the caller is.
    ///
    /// - Throws: ``StoreError`` when the database cannot serve.
    package func hasLiveSession(_ credentials: PresentedCredentials) async throws -> Bool {
        guard let token = credentials.session?.token else { return false }
        return try await sessions.live(token: token) != nil
    }

    /// The caller with an access token, whatever it is for. A session beside it does not count.
    ///
    /// - Throws: ``EngineError`` `payloadEncryptionRequired`, `payloadEncryptionMismatch`; ``StoreError`` when the
    ///   database cannot serve.
    package func caller(withToken credentials: PresentedCredentials, realm: String) async throws -> Caller {
        switch credentials.accessToken {
        case .absent: return .anonymous
        case .malformed(let scheme): return .refusedToken(TokenRefusal(.notOurs, scheme))
        case .token(let token, .bearer):
            guard let provider = providers[realm] else { return .refusedToken(TokenRefusal(.notOurs, .bearer)) }
            switch try await provider.check(accessToken: token) {
            case .granted(let grant):
                try demandSealing(grant, in: provider)
                return .accessToken(grant, newNonce: nil)
            // The token's own scheme tells the client how it is presented.
            case .refused(.keyMismatch): return .refusedToken(TokenRefusal(.keyMismatch, .dpop))
            case .refused(let reason): return .refusedToken(TokenRefusal(reason, .bearer))
            }
        case .token(let token, .dpop):
            do {
                return try await proved(token, credentials.proof, realm: realm)
            } catch let refusal as SenderProofRefusal {
                return .refusedToken(TokenRefusal(.keyMismatch, .dpop, proof: refusal))
            }
        }
    }

    /// For whom the access token of a request is; `nil` without one that is valid. Its proof is looked at and not
    /// spent: this is for requests that are refused whatever comes out, so the proof may serve another one.
    ///
    /// - Throws: ``EngineError`` `payloadEncryptionRequired`; ``StoreError`` when the database cannot serve.
    package func kind(ofToken credentials: PresentedCredentials, realm: String) async throws -> CallerKind? {
        guard case .token(let token, let scheme) = credentials.accessToken, let provider = providers[realm] else {
            return nil
        }
        var key: String?
        if scheme == .dpop {
            guard let claims = try await provider.accessClaims(token) else { return nil }
            let client = provider.configuration.definition(of: claims.clientID)
            let checked = proofs.checked(
                credentials.proof, accessToken: token, policy: provider.configuration.noncePolicy(of: client))
            guard let proof = try? checked.get() else { return nil }
            key = proof.thumbprint
        }
        guard case .granted(let grant) = try await provider.check(accessToken: token, keyThumbprint: key),
            scheme == .bearer || grant.sender != nil
        else { return nil }
        try demandSealing(grant, in: provider)
        return grant.kind
    }

    /// Refuses a valid token that has come plainly, of a version that must seal its calls, or through a session of
    /// payload encryption in which it does not count.
    func demandSealing(_ grant: AccessGrant, in provider: OAuthProvider) throws(EngineError) {
        // A client of the file need not seal its calls.
        let isRequired =
            grant.app != nil && provider.configuration.requiresSealing(grant.clientID, version: grant.version)
        if let code = SealedSession.refusal(of: grant.clientID, requiresSealing: isRequired, isSealed: isSealed) {
            throw EngineError(code)
        }
    }

    /// The caller with a token that belongs to a key, and a proof of the key (RFC 9449 §7.1).
    ///
    /// What is wrong with the token is told before what is wrong with the proof. The proof is spent only if the token
    /// is valid and belongs to its key, so that only someone who has both can fill the memory of spent proofs.
    private func proved(_ token: Secret, _ presented: PresentedProof?, realm: String) async throws -> Caller {
        guard let presented, try presented.field != nil else {
            throw SenderProofRefusal(.invalidProof, "The request has no field DPoP with a proof of the token's key.")
        }
        guard let provider = providers[realm], let claims = try await provider.accessClaims(token) else {
            return .refusedToken(TokenRefusal(.notOurs, .dpop))
        }
        guard claims.expiresAt > provider.now else { return .refusedToken(TokenRefusal(.expired, .dpop)) }
        // `nil` for a client that is not defined any more.
        let policy = provider.configuration.noncePolicy(ofDefined: claims.clientID)
        let checked = proofs.checked(
            presented, accessToken: token, tokenDigest: claims.digest,
            policy: policy ?? provider.configuration.noncePolicy(of: nil))
        // Refused further below, when the token is known to be valid; the proof is not spent until then.
        let counts = SealedSession.refusal(of: claims.clientID, requiresSealing: false, isSealed: isSealed) == nil
        // The token is signed, so its key is known before anything is looked up.
        let proof = (try? checked.get()).flatMap { proof in
            policy != nil && claims.sender?.isProved(byKey: proof.thumbprint) == true ? proof : nil
        }
        let found = try await proofs.find(
            provider.lookUps.lookUp(
                claims, at: provider.now, isSealed: isSealed && SealedSession.peer?.client != nil),
            with: counts ? proof : nil)
        let grant: AccessGrant
        switch try provider.check(claims, found: found.row, keyThumbprint: claims.sender?.keyThumbprint) {
        case .granted(let granted): grant = granted
        case .refused(let reason): return .refusedToken(TokenRefusal(reason, .dpop))
        }
        guard grant.sender != nil else { return .refusedToken(TokenRefusal(.keyMismatch, .dpop)) }
        try demandSealing(grant, in: provider)
        _ = try checked.get()
        guard let proof else { return .refusedToken(TokenRefusal(.keyMismatch, .dpop)) }
        try await proofs.claim(proof, found: found)
        return .accessToken(grant, newNonce: proof.newNonce)
    }

    /// The caller of a service behind the gateway. An access token decides alone: a session beside it does not replace
    /// a bad one. The session is noted as used.
    ///
    /// - Throws: ``EngineError`` `payloadEncryptionRequired`; ``StoreError`` when the database cannot serve.
    package func caller(
        with credentials: PresentedCredentials, realm: String, requirement: AccessTokenRequirement
    ) async throws -> Caller {
        var caller = try await caller(withToken: credentials, realm: realm)
        if case .anonymous = caller {
            caller = try await self.caller(withSession: credentials, realm: realm)
            if requirement.isSenderConstrained, !caller.isRefused, caller.session?.sender == nil {
                return .refusedToken(TokenRefusal(.missing, .dpop))
            }
        }
        if let kind = caller.kind, !requirement.kinds.contains(kind),
            requirement.isMeant(for: caller, issuer: providers[realm]?.configuration.issuer)
        {
            return .refusedKind(kind)
        }
        if case .accessToken(let grant, _) = caller, let issuer = providers[realm]?.configuration.issuer,
            let refusal = requirement.refusal(of: grant, issuer: issuer)
        {
            caller = .refusedToken(TokenRefusal(refusal, credentials.accessToken.scheme ?? .bearer))
        }
        if case .refusedToken(let refusal) = caller, requirement.isSenderConstrained {
            return .refusedToken(TokenRefusal(refusal.reason, .dpop, proof: refusal.proof))
        }
        if let session = caller.liveSession { try await sessions.noteUse(of: session) }
        return caller
    }
}

/// What an access token must have to be valid for a service.
package struct AccessTokenRequirement: Sendable {
    /// The scopes, all of them.
    package let scopes: [String]

    /// What it must be issued for (`aud`), one of them (RFC 9068 §4): a token that another service was given must not
    /// let that service in here.
    package let audience: [String]

    /// Whether the realm's issuer is an audience too.
    package let includesIssuer: Bool

    /// For whom the callers may call.
    package let kinds: Set<CallerKind>

    /// Whether it must belong to a key. Then nothing else lets a caller in but a session that belongs to one.
    package let isSenderConstrained: Bool

    /// A requirement.
    package init(
        scopes: [String], audience: [String], includesIssuer: Bool, kinds: Set<CallerKind> = [.user],
        isSenderConstrained: Bool = false
    ) {
        self.kinds = kinds
        self.scopes = scopes
        self.audience = audience
        self.includesIssuer = includesIssuer
        self.isSenderConstrained = isSenderConstrained
    }

    /// Whether the caller's credentials are for this service, so that their kind is worth telling.
    func isMeant(for caller: Caller, issuer: String?) -> Bool {
        guard case .accessToken(let grant, _) = caller else { return true }
        guard let issuer, let found = refusal(of: grant, issuer: issuer) else { return true }
        return found == .insufficientScope
    }

    func refusal(of grant: AccessGrant, issuer: String) -> AccessRefusal? {
        // A bound token is granted with its proof only.
        guard !isSenderConstrained || grant.sender != nil else { return .keyMismatch }
        guard grant.audience.contains(where: { audience.contains($0) || includesIssuer && $0 == issuer }) else {
            return .otherAudience
        }
        return scopes.allSatisfy(grant.scopes.contains) ? nil : .insufficientScope
    }
}
