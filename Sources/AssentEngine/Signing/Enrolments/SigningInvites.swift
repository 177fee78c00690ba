package import AssentCore
import AssentSigningProtocol
import AssentStore

/// An invite as it is shown, once.
package struct ShownInvite: Sendable {
    /// The id, by which the page asks for it.
    package let pid: String
    /// The code in four groups of five.
    package let code: Secret
    /// The text of the QR code.
    package let qr: Secret
    /// In seconds since 1970.
    package let expiresAt: Int64
}

/// How an invite stands.
package struct InviteStatus: Sendable, Hashable {
    /// The invite's state while no device has committed, then the container's, or with a reset that of its new keys.
    package let state: String
    package let did: String?
    package let name: String?
}

/// What came of digits that a user has entered.
enum DigitsResult: Sendable, Hashable {
    /// They are those of this container.
    case right(did: SigningID)
    /// They are not; so many tries are left.
    case wrong(remaining: Int)
    /// No device has completed, the time is over, or the digits were right before.
    case nothingToCompare
}

/// Invites, by which users get devices, and the digits that tie a device to its invite.
package struct SigningInvites: SigningPart {
    package let realm: SigningRealm

    /// Makes an invite, for the caller or, by an administrator, for somebody else (by id or name): for a new container,
    /// or for new keys of the one that is named (a reset). It is to be shown once.
    ///
    /// - Throws: ``SigningRefusal``: `fresh_authentication_required`, `forbidden`, `not_found`.
    package func make(
        _ caller: SigningCaller, user: String?, did: String? = nil
    ) async throws(SigningRefusal) -> ShownInvite {
        try await answering {
            let now = now
            let owner = try await devices.owner(user, caller)
            if did != nil, settings.resetsByAdministrator, !caller.isAdministrator {
                throw SigningRefusal(.forbidden, "Ask an administrator for new keys for this device.")
            }
            try requireFreshness(of: caller, at: now)
            do {
                try ShownText.check(owner.username, 1...64, at: "user")
            } catch {
                throw SigningRefusal(.invalidRequest, "The user's name cannot be shown by a device.")
            }
            let reset = if let did { try await resettable(did, of: owner, at: now) } else { SigningID?.none }
            let code = InviteCode(random: context.random)
            let isOwn = owner.id == caller.session.user.id
            let invite = SigningInviteRecord(
                pid: SigningID(random: context.random), userID: owner.id, username: owner.username,
                maker: isOwn ? .user : .administrator, createdAt: now, did: reset)
            let qr = try await keys.sign(
                Invite(
                    issuer: iss, pid: invite.pid, code: code,
                    identity: try await keys.current().requiredIdentity.thumbprint, issuedAt: Int(now),
                    expiresAt: Int(invite.expiresAt)))
            let key = isOwn ? caller.session.sender?.keyThumbprint : nil
            try await create(invite, codeHash: lookup(code), key: key)
            return ShownInvite(pid: invite.pid.text, code: code.shown, qr: Secret(qr), expiresAt: invite.expiresAt)
        }
    }

    /// A container of a user that can get new keys.
    private func resettable(_ did: String, of owner: User, at now: Int64) async throws -> SigningID {
        let states: [ContainerState] = [.active, .suspect]
        guard let did = SigningID(text: did), let container = try await devices.find(did),
            container.userID == owner.id, states.contains(container.state(at: now)), container.expiresAt > now
        else { throw SigningRefusal(.notFound, "The user has no device with this id that can get new keys.") }
        return did
    }

    private func lookup(_ code: InviteCode) -> String {
        Base64URL.encode(code.lookup(key: context.masterKey.derivedSecret(for: .signingCode), issuer: iss))
    }

    /// How an invite of the caller stands.
    ///
    /// - Throws: ``SigningRefusal`` `not_found`, also for somebody else's.
    package func status(_ caller: SigningCaller, pid: String) async throws(SigningRefusal) -> InviteStatus {
        try await answering { try await status(of: try await find(pid, for: caller)) }
    }

    private func status(of invite: SigningInviteRecord) async throws -> InviteStatus {
        let now = now
        if let did = invite.committed, let container = try await devices.find(did) {
            let state = try await reached(container, by: invite, at: now).rawValue
            return InviteStatus(state: state, did: did.text, name: container.name)
        }
        let state = invite.state == .open && invite.expiresAt <= now ? .void : invite.state
        return InviteStatus(state: state.rawValue, did: nil, name: nil)
    }

    /// How a container stands that an invite has led to. With a reset it is told of the new keys, in the words for a
    /// new container: until they are valid the old ones are, and the container's own state would say that all is done.
    private func reached(
        _ container: SigningContainerRecord, by invite: SigningInviteRecord, at now: Int64
    ) async throws -> ContainerState {
        let state = container.state(at: now)
        guard invite.did != nil, state.isAlive, container.pid != invite.pid else { return state }
        guard let renewal = try await enrolments.renewal(pid: invite.pid) else { return .void }
        switch renewal.state {
        // Others have followed since.
        case .done: return state
        case .started, .committed, .completed:
            return renewal.expiresAt + SigningInviteRecord.completion > now ? .unconfirmed : .void
        case .void: return .void
        }
    }

    private func find(_ pid: String, for caller: SigningCaller) async throws -> SigningInviteRecord {
        guard let pid = SigningID(text: pid), let invite = try await find(pid),
            invite.userID == caller.session.user.id || caller.isAdministrator
        else { throw SigningRefusal(.notFound) }
        return invite
    }

    /// Takes the digits that the device shows.
    ///
    /// - Throws: ``SigningRefusal``: `digits_wrong` with the tries that are left, `enrolment_void`, `not_found`.
    package func enter(digits: String, _ caller: SigningCaller, pid: String) async throws(SigningRefusal)
        -> InviteStatus
    {
        try await answering {
            let now = now
            let invite = try await find(pid, for: caller)
            let typed = digits.filter { $0 != " " && $0 != "-" }
            guard typed.utf8.count == 8, typed.utf8.allSatisfy(\.isASCIIDigit) else {
                throw SigningRefusal(.invalidRequest, "Enter the eight digits that the device shows.")
            }
            switch try await compare(digits: typed, pid: invite.pid, at: now) {
            case .wrong(let remaining):
                try await refuseDigits(invite, remaining: remaining, at: now)
                throw SigningRefusal(.digitsWrong, remaining: remaining)
            case .nothingToCompare:
                // They were right before: the same answer to a repeated request.
                guard let did = invite.committed, let container = try await devices.find(did),
                    container.state(at: now).isAlive, try await hasDigits(invite, container)
                else { throw SigningRefusal(.enrolmentVoid) }
                return try await status(of: invite)
            case .right(let did):
                guard let container = try await devices.find(did),
                    try await enrolments.acceptDigits(of: invite, container, at: now)
                else { throw SigningRefusal(.enrolmentVoid) }
                return try await status(of: try await find(pid, for: caller))
            }
        }
    }

    /// Whether the digits of an invite were right before.
    private func hasDigits(_ invite: SigningInviteRecord, _ container: SigningContainerRecord) async throws -> Bool {
        guard invite.did != nil else { return container.digitsAt != nil }
        return try await enrolments.renewal(pid: invite.pid)?.digitsAt != nil
    }

    /// Ends an invite, and a container of it that is not active.
    package func withdraw(_ caller: SigningCaller, pid: String) async throws(SigningRefusal) {
        try await answering { _ = try await void(try await find(pid, for: caller), at: now) }
    }
}

// MARK: the statements together

extension SigningInvites {
    /// An invite by its id, whatever its state.
    func find(_ pid: SigningID) async throws -> SigningInviteRecord? {
        try await store.first("SELECT * FROM signing_invites WHERE pid = \(pid) AND iss = \(iss)")
            .map(SigningInviteRecord.init)
    }

    /// The invite that a code opens now: for a new container, or for new keys of one.
    func open(_ code: InviteCode, renewing did: SigningID? = nil, at now: Int64) async throws -> SigningInviteRecord? {
        try await open(codeHash: lookup(code), renewing: did, at: now)
    }

    /// The same by the hash of a code.
    func open(codeHash: String, renewing did: SigningID? = nil, at now: Int64) async throws -> SigningInviteRecord? {
        try await store.first(
            """
            SELECT * FROM signing_invites
            WHERE code_hash = \(codeHash) AND iss = \(iss) AND state = \(SigningInviteRecord.State.open)
                AND expires_at > \(now) AND coalesce(did, '') = \(did?.text ?? "")
            """
        ).map(SigningInviteRecord.init)
    }

    /// Makes an invite for an active user, in the installation that has this key.
    ///
    /// - Throws: ``SigningRefusal`` `not_found` when there is no such user.
    func create(_ invite: SigningInviteRecord, codeHash: String, key: String? = nil) async throws {
        _ = try await store.changes([
            .one(
                EnrolmentSQL.createInvite(invite, issuer: settings.issuer, codeHash: codeHash, key: key),
                else: .refused(.notFound)),
            store.note(.signingInvite, user: invite.userID, ["pid": invite.pid.text, "step": "made"]),
        ])
    }

    /// Compares digits that a user has entered: they are counted first, and that is committed.
    func compare(digits: String, pid: SigningID, at now: Int64) async throws -> DigitsResult {
        let rows = try await context.database.run(
            SQLStatement(EnrolmentSQL.countDigits(pid: pid, issuer: iss, at: now)))
        guard let row = rows.first, let did: SigningID = try row.optional("committed") else {
            return .nothingToCompare
        }
        guard ConstantTime.equal(try row.text("digits"), digits) else {
            return .wrong(remaining: Int(SigningInviteRecord.tries - (try row.integer("tries"))))
        }
        return .right(did: did)
    }

    /// Writes down that digits were wrong. The last time ends the invite and the container.
    func refuseDigits(_ invite: SigningInviteRecord, remaining: Int, at now: Int64) async throws {
        try await store.writeRefusal(
            .signingEnrol, .digitsWrong, user: invite.userID, did: invite.committed, ["pid": invite.pid.text])
        if remaining == 0 { _ = try await void(invite, because: .digitsWrong, at: now) }
    }

    /// Makes an invite void, with all that has come of it and is not active yet.
    ///
    /// - Returns: whether that changed anything.
    func void(
        _ invite: SigningInviteRecord, because reason: SigningErrorCode? = nil, at now: Int64
    ) async throws -> Bool {
        let note = store.record(
            .signingInvite, reason == nil ? .success : .refused, reason: reason, user: invite.userID,
            did: invite.committed, ["pid": invite.pid.text, "step": "void"])
        let ofInvite = [
            EnrolmentSQL.voidEnrolments(pid: invite.pid), SlotSQL.forgetOfferedSlots(pid: invite.pid),
        ]
        let ofRenewal =
            [RenewalSQL.void(invite: invite.pid)] + (invite.did.map { [RenewalSQL.deletePendingKeys(of: $0)] } ?? [])
        let ofContainer =
            invite.committed.map { [ContainerSQL.void(did: $0, at: now)] + ContainerSQL.clearVoid($0) } ?? []
        return try await store.changes(
            [.one(EnrolmentSQL.voidInvite(pid: invite.pid), else: .changed)]
                + (ofInvite + ofContainer + ofRenewal).map { .any($0) } + [.also(store.audit.statement(note))])
    }
}
