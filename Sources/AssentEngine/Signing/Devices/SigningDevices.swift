import AssentCore
package import AssentSigningProtocol
import AssentStore

/// What somebody does to a container.
package enum ContainerChange: Sendable, Hashable {
    /// It may do nothing but ask how it stands.
    case block
    /// It may again do what it did. One that was suspect still is.
    case unblock
    case revoke
    case rename(String)
}

/// Devices of users: their containers and keys, how they stand, and what is done to them.
package struct SigningDevices: SigningPart {
    package let realm: SigningRealm

    /// A container, whatever its state.
    func find(_ did: SigningID) async throws -> SigningContainerRecord? {
        try await store.first(ContainerSQL.container(did, issuer: iss)).map(SigningContainerRecord.init)
    }

    /// The containers of a user, oldest first; at most 100, without those that never became active.
    func of(user: String) async throws -> [SigningContainerRecord] {
        try await store.all(ContainerSQL.containers(of: user, issuer: iss)).map(SigningContainerRecord.init)
    }

    /// The keys of a container that count or have counted, in the order of its offers.
    func keys(of did: SigningID) async throws -> [SigningKeyRow] {
        try await store.all(ContainerSQL.keys(of: did)).map(SigningKeyRow.init)
    }

    /// A device key of a container that a renewal has replaced.
    func retiredDeviceKey(_ kid: KeyThumbprint, of did: SigningID) async throws -> SigningKeyRow? {
        try await store.first(
            """
            SELECT * FROM signing_keys
            WHERE kid = \(kid) AND did = \(did) AND usage = \(SigningKeyUsage.device)
                AND state = \(SigningKeyState.retired)
            """
        ).map(SigningKeyRow.init)
    }

    /// Changes a container. The `proof` is there when its device asks.
    ///
    /// - Returns: false when its state does not allow that.
    /// - Throws: ``SigningRefusal`` `replay`.
    func change(
        _ container: SigningContainerRecord, _ change: ContainerChange, by actor: String, reason: String? = nil,
        proof: SpentProof? = nil, at now: Int64
    ) async throws -> Bool {
        let did = container.did
        let (sql, step): (SQL, String) =
            switch change {
            case .block: (ContainerSQL.block(did), "blocked")
            case .unblock: (ContainerSQL.unblock(did), "unblocked")
            case .revoke: (ContainerSQL.revoke(did: did, at: now), "revoked")
            case .rename(let name): (ContainerSQL.update(did: did, name: name, pushID: nil, properties: nil), "renamed")
            }
        var statements: [GuardedStatement<Obstacle>] = [.one(sql, else: .changed)]
        if change == .block || change == .revoke { statements.append(.any(LoginSQL.endSessions(of: did))) }
        if change == .revoke {
            statements += [
                .any(ContainerSQL.retireKeys(of: did)), .any(SlotSQL.destroySlots(of: did)),
                .any(OneTimeKeySQL.delete(of: did)), .any(notices.telling(.removed, about: did, at: now)),
            ]
        }
        let note: GuardedStatement<Obstacle> = store.note(
            .signingContainer, user: container.userID, did: did, ["step": step, "by": actor, "why": reason])
        return try await store.changes(statements + store.spending(proof, at: now) + [note])
    }

    /// What a device says anew of its container; `nil` leaves a value as it is, an empty push address removes it.
    ///
    /// - Returns: false when the container has ended.
    /// - Throws: ``SigningRefusal`` `replay`.
    func update(
        _ container: SigningContainerRecord, name: String?, pushID: String?, properties: String?, proof: SpentProof?,
        at now: Int64
    ) async throws -> Bool {
        let update = ContainerSQL.update(did: container.did, name: name, pushID: pushID, properties: properties)
        return try await store.changes(
            [.one(update, else: .changed)] + store.spending(proof, at: now) + [
                store.note(.signingContainer, user: container.userID, did: container.did, ["step": "updated"])
            ])
    }
}

// MARK: what devices ask

extension SigningDevices {
    func plainStatus(_ request: DeviceRequest) async throws -> String {
        _ = try request.body(EmptyBody.self)
        return try await status(request)
    }

    /// How the caller stands: the only reply that a device deletes or locks something for.
    func status(_ request: DeviceRequest) async throws -> String {
        let reply: ContainerStatus
        switch request.party {
        case .enrolment(let enrolment):
            let isOpen = enrolment.state != .void && enrolment.expiresAt + SigningInviteRecord.completion > request.now
            reply = ContainerStatus(
                head: head(request), did: request.did, state: isOpen ? .unconfirmed : .void,
                approvalsFrom: 0, expiresAt: Int(enrolment.expiresAt), keys: [], slots: [], pending: 0)
        case .container(let caller): reply = try await status(of: caller, request)
        }
        return try await realm.keys.sign(reply)
    }

    /// How a container stands now, read at once: every reply that tells it would else wait for the database five times.
    /// Of the caller only what never changes is used.
    ///
    /// - Throws: ``SigningRefusal`` `unknown_container`.
    private func status(of caller: SigningContainerRecord, _ request: DeviceRequest) async throws -> ContainerStatus {
        let (did, now) = (caller.did, request.now)
        let rows = try await store.together([
            ContainerSQL.container(did, issuer: iss), ContainerSQL.keys(of: did), OneTimeKeySQL.keys(of: did),
            SlotSQL.slots(of: did), SigningTransactionSQL.pending(for: caller, at: now),
        ])
        guard rows.count == 5, let container = try rows[0].first.map(SigningContainerRecord.init) else {
            throw SigningRefusal(.unknownContainer)
        }
        let keys = try rows[1].map(SigningKeyRow.init).suffix(12).map {
            KeyStatus(kid: $0.kid, usage: $0.usage, label: $0.label, state: $0.isActive ? .active : .retired)
        }
        let oneTimeKeys = try rows[2].map { KeyStatus(usage: .otp, label: try $0.text("label"), state: .active) }
        return ContainerStatus(
            head: head(request), did: did, state: container.state(at: now),
            approvalsFrom: container.record == nil ? 0 : Int(container.approvalsFrom),
            expiresAt: Int(container.expiresAt), keys: (keys + oneTimeKeys).suffix(12),
            slots: try slots.statuses(try rows[3].map(SigningSlotRow.init), of: container, at: now),
            pending: try SigningTransactionSQL.count(rows[4]))
    }

    func update(_ request: DeviceRequest) async throws -> String {
        let body: UpdateBody = try request.body()
        let container = try request.active()
        let properties = body.properties.map { texts in
            JSONValue.object(JSONObject(sorted: texts)).serialized()
        }
        let done = try await update(
            container, name: body.name, pushID: body.pushId, properties: properties, proof: request.proof,
            at: request.now)
        guard done else { throw SigningRefusal(.containerRevoked) }
        return try await status(request)
    }

    func delete(_ request: DeviceRequest) async throws -> String {
        let body: DeleteBody = try request.body()
        let container = try request.known()
        // A repeated call finds it ended, and is answered the same.
        let isChanged = try await change(
            container, .revoke, by: "device", reason: body.reason ?? "USER", proof: request.proof, at: request.now)
        if isChanged { await notices.tell(.removed, container) }
        return try await status(request)
    }
}

// MARK: what users and administrators ask

extension SigningDevices {
    /// The containers of the caller or, for an administrator, of somebody else, with their keys and the password slots
    /// that the server counts guesses of.
    ///
    /// - Throws: ``SigningRefusal``: `forbidden`, `not_found`.
    package func list(_ caller: SigningCaller, user: String?) async throws(SigningRefusal)
        -> [(container: SigningContainerRecord, keys: [SigningKeyRow], slots: [SlotStatus])]
    {
        try await answering {
            var result: [(container: SigningContainerRecord, keys: [SigningKeyRow], slots: [SlotStatus])] = []
            for container in try await of(user: try await owner(user, caller).id) {
                result.append(
                    (
                        container, try await keys(of: container.did),
                        try await slots.statuses(container, at: now)
                    ))
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
            let now = now
            let container = try await find(did, for: caller)
            if change == .block || change == .unblock, !caller.isAdministrator { throw SigningRefusal(.forbidden) }
            if case .rename(let name) = change, (try? ShownText.check(name, 1...128, at: "name")) == nil {
                throw SigningRefusal(.invalidRequest, "A name has 1 to 128 characters that can be shown.")
            }
            let isChanged = try await self.change(container, change, by: caller.session.user.id, at: now)
            if isChanged, change == .revoke { await notices.tell(.removed, container) }
            let after = try await find(container.did)?.state(at: now) ?? .void
            let isDone =
                switch change {
                case .block: after == .blocked
                case .unblock: after == .active || after == .suspect
                case .revoke: after == .revoked || after == .void
                case .rename: after.isAlive
                }
            guard isDone else { throw SigningRefusal(after.isAlive ? .invalidRequest : .containerRevoked) }
            return after
        }
    }

    /// A container of the caller or, for an administrator, of anybody.
    ///
    /// - Throws: ``SigningRefusal`` `unknown_container`.
    func find(_ did: String, for caller: SigningCaller) async throws -> SigningContainerRecord {
        guard let did = SigningID(text: did), let container = try await find(did),
            container.userID == caller.session.user.id || caller.isAdministrator
        else { throw SigningRefusal(.unknownContainer) }
        return container
    }

    /// The user that a caller means: the caller or, for an administrator, somebody else.
    ///
    /// - Throws: ``SigningRefusal``: `forbidden`, `not_found`.
    func owner(_ user: String?, _ caller: SigningCaller) async throws -> User {
        let own = caller.session.user
        guard let user, user != own.id, user != own.username else { return own }
        guard caller.isAdministrator else { throw SigningRefusal(.forbidden) }
        guard let found = try await find(user: user) else { throw SigningRefusal(.notFound) }
        return found
    }

    /// A user of the realm, by id or name.
    func find(user: String) async throws -> User? {
        let users = Users(context)
        if let found = try await users.find(id: user), found.realm == settings.issuer.realm { return found }
        return try await users.find(username: user, realm: settings.issuer.realm)
    }
}

/// Somebody who is signed in and asks about devices.
package struct SigningCaller: Sendable {
    package let session: LiveSession

    package init(_ session: LiveSession) {
        self.session = session
    }

    var isAdministrator: Bool { session.user.roles.contains(.admin) }
    var isAuditor: Bool { session.user.roles.contains(.auditor) }
}

extension JSONObject {
    /// Texts in the order of their names.
    init(sorted texts: [String: String]) {
        self.init(texts.sorted { $0.key < $1.key }.map { Member(name: $0.key, value: .string($0.value)) })
    }
}
