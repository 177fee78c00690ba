package import AssentCore
package import AssentSigningProtocol
import Logging

/// An invite as it is shown, once.
package struct ShownInvite: Sendable {
    /// The id, by which the page asks for it.
    package let pid: String
    /// The code in four groups of five.
    package let code: Secret
    /// The text of the QR code.
    package let qr: Secret
    /// When it is over, in seconds since 1970.
    package let expiresAt: Int64
}

/// How an invite stands.
package struct InviteStatus: Sendable, Hashable {
    /// The invite's state while there is no container, then the container's.
    package let state: String
    /// The container.
    package let did: String?
    /// Its name.
    package let name: String?
}

/// Somebody who is signed in and asks about devices.
package struct SigningCaller: Sendable {
    /// Who.
    package let session: LiveSession

    /// A caller.
    package init(_ session: LiveSession) {
        self.session = session
    }

    var isAdministrator: Bool { session.user.roles.contains(.admin) }
    var isAuditor: Bool { session.user.roles.contains(.auditor) }
}

extension SigningProvider {
    /// Makes an invite, for the caller or, by an administrator, for somebody else.
    ///
    /// - Parameters:
    ///   - caller: who is signed in.
    ///   - user: whose device it is to be, by id or name; without one, the caller's.
    ///   - did: the container whose keys are to be new ones (a reset); without one, a new container.
    /// - Returns: the invite, to be shown once.
    /// - Throws: ``SigningRefusal``: `fresh_authentication_required`, `forbidden`, `not_found`.
    package func invite(
        _ caller: SigningCaller, user: String?, did: String? = nil
    ) async throws(SigningRefusal) -> ShownInvite {
        try await answering {
            let now = store.now
            var owner = caller.session.user
            if let user, user != owner.id, user != owner.username {
                guard caller.isAdministrator else { throw SigningRefusal(.forbidden) }
                guard let found = try await find(user: user) else { throw SigningRefusal(.notFound) }
                owner = found
            }
            if did != nil, settings.resetsByAdministrator, !caller.isAdministrator {
                throw SigningRefusal(.forbidden, "Ask an administrator for new keys for this device.")
            }
            try requireFreshness(of: caller, at: now)
            do {
                try ShownText.check(owner.username, 1...64, at: "user")
            } catch {
                throw SigningRefusal(.invalidRequest, "The user's name cannot be shown by a device.")
            }
            if let did {
                let container = try await store.container(did: did)
                let states: [ContainerState] = [.active, .suspect]
                guard let container, container.userID == owner.id, states.contains(container.state(at: now)),
                    container.expiresAt > now
                else { throw SigningRefusal(.notFound, "The user has no device with this id that can get new keys.") }
            }
            let code = InviteCode(random: context.random)
            let pid = SigningID(random: context.random)
            let isOwn = owner.id == caller.session.user.id
            var invite = SigningInviteRecord(
                pid: pid.text, userID: owner.id, username: owner.username, maker: isOwn ? .user : .administrator,
                createdAt: now)
            invite.did = did
            guard let identity = try await keys.current().identity else { throw SigningRefusal(.unavailable) }
            let qr = try await keys.sign(
                Invite(
                    issuer: iss, pid: pid, code: code, identity: identity.thumbprint, issuedAt: Int(now),
                    expiresAt: Int(invite.expiresAt)))
            try await store.create(invite, codeHash: lookup(code))
            return ShownInvite(pid: pid.text, code: code.shown, qr: Secret(qr), expiresAt: invite.expiresAt)
        }
    }

    /// How an invite of the caller stands.
    ///
    /// - Throws: ``SigningRefusal`` `not_found`, also for somebody else's.
    package func inviteStatus(_ caller: SigningCaller, pid: String) async throws(SigningRefusal) -> InviteStatus {
        try await answering { try await status(of: try await invite(caller, pid: pid)) }
    }

    private func status(of invite: SigningInviteRecord) async throws -> InviteStatus {
        let now = store.now
        if let did = invite.committed, let container = try await store.container(did: did) {
            return InviteStatus(state: container.state(at: now).rawValue, did: did, name: container.name)
        }
        let isOver = invite.state == .open && invite.expiresAt <= now
        return InviteStatus(state: isOver ? "VOID" : invite.state.rawValue, did: nil, name: nil)
    }

    private func invite(_ caller: SigningCaller, pid: String) async throws -> SigningInviteRecord {
        guard let invite = try await store.invite(pid: pid),
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
            let now = store.now
            let invite = try await invite(caller, pid: pid)
            let typed = digits.filter { $0 != " " && $0 != "-" }
            guard typed.utf8.count == 8, typed.utf8.allSatisfy(\.isASCIIDigit) else {
                throw SigningRefusal(.invalidRequest, "Enter the eight digits that the device shows.")
            }
            switch try await store.compare(digits: typed, pid: pid, at: now) {
            case .wrong(let remaining):
                try await store.refuseDigits(invite, remaining: remaining, at: now)
                throw SigningRefusal(.digitsWrong, remaining: remaining)
            case .nothingToCompare:
                let status = try await status(of: invite)
                // They were right before: the same answer to a repeated request.
                guard let did = status.did, let container = try await store.container(did: did),
                    container.state(at: now).isAlive, try await hasDigits(invite, container)
                else { throw SigningRefusal(.enrolmentVoid) }
                return status
            case .right(let did):
                guard let container = try await store.container(did: did),
                    try await accept(digitsOf: invite, container, at: now)
                else { throw SigningRefusal(.enrolmentVoid) }
                return try await status(of: try await self.invite(caller, pid: pid))
            }
        }
    }

    private func accept(
        digitsOf invite: SigningInviteRecord, _ container: SigningContainerRecord, at now: Int64
    ) async throws -> Bool {
        guard invite.did != nil else {
            let activation = try await activation(container, at: now)
            guard try await store.acceptDigits(container, activation: activation, at: now) else { return false }
            try await tell(.enrolled, container.did, ifBy: activation)
            return true
        }
        guard let renewal = try await store.renewal(pid: invite.pid), renewal.state == .completed else { return false }
        let activation = try await activation(container, renewal, at: now)
        let done = try await store.acceptDigits(
            renewal, of: container, seq: try await store.sequence(of: container.did) + 1, activation, at: now)
        if done { try await tell(.reset, container.did, ifBy: activation) }
        return done
    }

    /// Whether the digits of an invite were right before.
    private func hasDigits(_ invite: SigningInviteRecord, _ container: SigningContainerRecord) async throws -> Bool {
        guard invite.did != nil else { return container.digitsAt != nil }
        return try await store.renewal(pid: invite.pid)?.digitsAt != nil
    }

    /// Ends an invite, and a container of it that is not active.
    package func withdraw(_ caller: SigningCaller, pid: String) async throws(SigningRefusal) {
        try await answering {
            let invite = try await invite(caller, pid: pid)
            _ = try await store.void(invite, at: store.now)
        }
    }

    /// The containers of the caller or, for an administrator, of somebody else.
    package func containers(_ caller: SigningCaller, user: String?) async throws(SigningRefusal)
        -> [(SigningContainerRecord, [SigningKeyRow])]
    {
        try await answering {
            var owner = caller.session.user
            if let user, user != owner.id, user != owner.username {
                guard caller.isAdministrator else { throw SigningRefusal(.forbidden) }
                guard let found = try await find(user: user) else { throw SigningRefusal(.notFound) }
                owner = found
            }
            var result: [(SigningContainerRecord, [SigningKeyRow])] = []
            for container in try await store.containers(user: owner.id) {
                result.append((container, try await store.keys(did: container.did)))
            }
            return result
        }
    }

    /// Changes a container. Users rename and end their own; the rest is for administrators.
    ///
    /// - Returns: the state after it.
    /// - Throws: ``SigningRefusal``: `unknown_container`, also for somebody else's; `forbidden`; `container_revoked`.
    package func change(_ caller: SigningCaller, did: String, _ change: ContainerChange) async throws(SigningRefusal)
        -> ContainerState
    {
        try await answering {
            let now = store.now
            guard let container = try await store.container(did: did),
                container.userID == caller.session.user.id || caller.isAdministrator
            else { throw SigningRefusal(.unknownContainer) }
            if change == .block || change == .unblock, !caller.isAdministrator { throw SigningRefusal(.forbidden) }
            if case .rename(let name) = change, (try? ShownText.check(name, 1...128, at: "name")) == nil {
                throw SigningRefusal(.invalidRequest, "A name has 1 to 128 characters that can be shown.")
            }
            let isChanged = try await store.change(container, change, by: caller.session.user.id, at: now)
            if isChanged, change == .revoke { await tell(.removed, container) }
            let after = try await store.container(did: did)?.state(at: now) ?? .void
            let isDone =
                switch change {
                case .block: after == .blocked
                case .unblock: after == .active
                case .revoke: after == .revoked || after == .void
                case .rename: after.isAlive
                }
            guard isDone else { throw SigningRefusal(after.isAlive ? .invalidRequest : .containerRevoked) }
            return after
        }
    }

    /// A user of the realm, by id or name.
    func find(user: String) async throws -> User? {
        let users = Users(context)
        if let found = try await users.find(id: user), found.realm == settings.issuer.realm { return found }
        return try await users.find(username: user, realm: settings.issuer.realm)
    }

    /// Runs what users and relying parties ask for, and names every error as the protocol does.
    func answering<Result>(_ body: () async throws -> Result) async throws(SigningRefusal) -> Result {
        do {
            return try await context.translatingStoreErrors(body)
        } catch {
            if !(error is SigningRefusal) { context.logger.error("signing failed", metadata: ["error": "\(error)"]) }
            throw SigningRefusal(answering: error)
        }
    }
}
