import AssentCore
import AssentSigningProtocol
import AssentStore

/// What a login came with, as far as the OAuth provider has verified it.
struct LoginRequest: Sendable {
    /// The compact `tsp-login+jwt`.
    let assertion: String
    /// The installation that has authenticated, by its client id.
    let instanceID: String
    /// The OAuth provider's issuer.
    let audience: String
    /// The installation's key, whose proof is in the request.
    let keyThumbprint: String
    /// The nonce of that proof.
    let nonce: String
    /// Whether the installation's app lets remembered users in.
    let allowsImplicit: Bool
}

/// A login of which everything was right when it was looked at. Its statements decide.
struct JudgedLogin: Sendable {
    let signIn: ProvedSignIn
    /// For a user who has typed their PIN, or for one who is only remembered.
    let kind: SessionKind
    /// What spends it, each with the condition that may have changed meanwhile.
    let spending: [SQLStatement]
    /// By what it counts once.
    let proof: SpentProof
    /// Whose key has signed it.
    let container: SigningContainerRecord
}

/// Why a login is refused. The container is there when its key has signed it: nobody else is told a reason.
struct LoginRefusal: Error {
    let reason: OAuthError.Reason?
    /// For the audit log.
    let detail: String
    let container: SigningContainerRecord?
}

/// A login whose signature is good, and what was known when it came.
private struct SignedLogin {
    let content: LoginAssertion
    let key: SigningKeyRow
    let container: SigningContainerRecord
    let slots: [SQLRow]
    let user: SQLRow?
    /// The evaluation that it names, if the slot of its key has it and nobody has taken it.
    let evaluation: SQLRow?
}

/// Logins that containers have signed, for the OAuth provider of the issuer's realm.
package struct SigningLogins: SigningPart {
    package let realm: SigningRealm

    /// How many seconds the clock of an installation may differ from ours; it is corrected by our replies.
    static let leeway = 30

    /// How a user is said to have signed in who has proved nothing.
    static let implicitMethod = "IMPLICIT_AUTHENTICATION"

    /// Judges a login, and changes nothing.
    ///
    /// - Throws: ``LoginRefusal``; `StoreError`.
    func judge(_ request: LoginRequest) async throws -> JudgedLogin {
        let now = now
        let found = try await signed(request.assertion, at: now)
        let (content, key, container) = (found.content, found.key, found.container)
        func refusal(_ reason: OAuthError.Reason?, _ detail: String) -> LoginRefusal {
            LoginRefusal(reason: reason, detail: detail, container: container)
        }
        guard StrictJSON.same(content.audience, request.audience), StrictJSON.same(content.sub, container.userID),
            content.jkt.text == request.keyThumbprint, StrictJSON.same(content.nonce, request.nonce)
        else { throw refusal(nil, "binding") }
        guard let owner = container.instanceID, StrictJSON.same(owner, request.instanceID) else {
            throw refusal(nil, "instance")
        }
        guard content.issuedAt - Self.leeway <= Int(now), Int(now) < content.expiresAt + Self.leeway else {
            throw refusal(nil, "time")
        }
        guard container.state(at: now) == .active else { throw refusal(.containerEnded, "container") }
        guard container.expiresAt > now else { throw refusal(.expired, "expired") }
        let slots = try found.slots.map(SigningSlotRow.init)
        guard slots.allSatisfy({ $0.sealedKey != nil }) else { throw refusal(.shredded, "shredded") }
        guard key.isActive else { throw refusal(nil, "key") }
        guard let user = try found.user.map(User.init), user.isActive else { throw refusal(nil, "user") }

        if key.usage == .device {
            guard content.unl == nil, key.kid == container.deviceKeyID else { throw refusal(nil, "signer") }
            guard request.allowsImplicit else { throw refusal(.implicitDisabled, "implicit") }
            // Nobody types what is locked, but who has locked it means this device. A restore locks it too: the device
            // may have been revoked since the backup.
            guard !slots.contains(where: \.isHeld) else { throw refusal(.locked, "locked") }
            let signIn = ProvedSignIn(
                user: user, authLevel: 0, amr: [Self.implicitMethod], authTime: now, container: container.did.text)
            return JudgedLogin(
                signIn: signIn, kind: .implicit, spending: spending(content, key: key, request, evaluation: nil, now),
                proof: SpentProof(jti: content.jti, did: content.did), container: container)
        }
        guard key.usage == .auth, let name = key.slot, let assisted = try assisted(name, of: container),
            let slot = slots.first(where: { $0.slot == name })
        else { throw refusal(nil, "signer") }
        guard !slot.isHeld else { throw refusal(.locked, "locked") }
        guard let row = found.evaluation else {
            let isLocked = slot.status(assisted.lock, at: now).state == .locked
            throw isLocked ? refusal(.locked, "locked") : refusal(.unlockRequired, "unlock")
        }
        let confirmed = try ConfirmedTry(row)
        let evaluation = SpentEvaluation(confirmed, passwordSetAfter: assisted.passwordSetAfter(at: now))
        guard let changedAt = try row.optionalInteger("changed_at"), changedAt > evaluation.passwordSetAfter else {
            throw refusal(.passwordExpired, "password")
        }
        let signIn = ProvedSignIn(
            user: user, authLevel: settings.levels[key.label] ?? 0, amr: [assisted.method.rawValue],
            authTime: confirmed.evaluatedAt, container: container.did.text)
        return JudgedLogin(
            signIn: signIn, kind: .user,
            spending: spending(content, key: key, request, evaluation: evaluation, now),
            proof: SpentProof(jti: content.jti, did: content.did), container: container)
    }

    /// A login by a key that its container has or has had, with all that it is judged by: that is read at once.
    private func signed(_ assertion: String, at now: Int64) async throws -> SignedLogin {
        let unverified: UnverifiedMessage<LoginAssertion>
        do {
            unverified = try UnverifiedMessage(assertion)
        } catch {
            throw LoginRefusal(reason: nil, detail: "form", container: nil)
        }
        let unknown = LoginRefusal(reason: nil, detail: "signature", container: nil)
        let rows = try await store.together(
            LoginSQL.judging(unverified.content, by: unverified.kid, issuer: iss, at: now))
        guard rows.count >= 4, let container = try rows[0].first.map(SigningContainerRecord.init),
            let key = try rows[1].map(SigningKeyRow.init).first(where: { $0.kid == unverified.kid })
        else { throw unknown }
        let message: SignedMessage<LoginAssertion>
        do {
            message = try unverified.verified(with: realm.deviceKeys.key(key.publicJWK))
        } catch {
            throw unknown
        }
        return SignedLogin(
            content: message.content, key: key, container: container, slots: rows[2], user: rows[3].first,
            evaluation: rows.dropFirst(4).first?.first)
    }

    /// What a login spends. The container is locked first: who blocks it, or destroys its PIN, waits for that, or this
    /// waits for them, and then sees what they have done.
    private func spending(
        _ content: LoginAssertion, key: SigningKeyRow, _ request: LoginRequest, evaluation: SpentEvaluation?,
        _ now: Int64
    ) -> [SQLStatement] {
        let did = content.did
        let method = evaluation == nil ? "implicit" : "pin"
        let taken = evaluation.map {
            DecisionSQL.take($0, for: "login:\(content.jti)", did: did, when: "s.held = 0", at: now)
        }
        let sql = [
            LoginSQL.use(container: did, of: request.instanceID, at: now),
            LoginSQL.use(key: key.kid, of: did, isImplicit: evaluation == nil, at: now),
            taken, SpentProof(jti: content.jti, did: did).spending(at: now),
        ]
        let note = store.record(
            .signingLogin, user: content.sub, did: did, ["method": method, "client": request.instanceID])
        return sql.compactMap { $0.map { SQLStatement($0, expecting: .exactly(1)) } } + [store.audit.statement(note)]
    }

    /// Writes down that a login gave nothing although it was judged to be right: for the reason why there was no grant,
    /// because it was used before, or because something has changed meanwhile.
    func noteUnspendable(_ login: JudgedLogin, because reason: OAuthError.Reason?, by client: String) async throws {
        let detail = try await store.isSpent(login.proof) ? "repeated" : "changed"
        try await note(LoginRefusal(reason: reason, detail: detail, container: login.container), by: client)
    }

    /// Writes down that a container's login was refused. What nobody of a container has signed is not written: anybody
    /// could fill the log with it.
    func note(_ refusal: LoginRefusal, by client: String) async throws {
        guard let container = refusal.container else { return }
        try await store.audit.write(
            AuditRecord(
                .signingLogin, .refused, reason: refusal.reason?.rawValue ?? refusal.detail,
                realm: store.issuer.realm, userID: container.userID,
                detail: ["did": .string(container.did.text), "client": .string(client)]))
    }
}
