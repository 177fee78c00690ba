import AssentCore
import AssentSigningProtocol
import AssentStore

extension SigningEnrolments {
    func confirm(_ request: DeviceRequest) async throws -> String {
        let body: ConfirmBody = try request.body()
        let container = try request.known()
        let activation = try await activation(container, at: request.now)
        let done = try await confirm(
            container, echoHash: SigningHash(sha256: body.echo.bytes), activation: activation, at: request.now)
        guard done else { throw SigningRefusal(.enrolmentVoid) }
        try await notices.tell(.enrolled, container.did, ifBy: activation)
        return try await devices.status(request)
    }

    func renewConfirm(_ request: DeviceRequest) async throws -> String {
        let body: ConfirmBody = try request.body()
        let container = try request.known()
        let echoHash = SigningHash(sha256: body.echo.bytes)
        guard let renewal = request.renewal else {
            // Proved by the container's own key: this is a repetition, or nothing.
            guard container.echoHash == echoHash else { throw SigningRefusal(.badProof) }
            return try await devices.status(request)
        }
        let activation = try await activation(container, renewal, at: request.now)
        let echo = RenewalSQL.echo(renewal.pid, hash: echoHash, at: request.now)
        let done = try await replace(renewal, of: container, activation, after: [echo], at: request.now)
        guard done else { throw SigningRefusal(.enrolmentVoid) }
        if renewal.invite != nil { try await notices.tell(.reset, container.did, ifBy: activation) }
        return try await devices.status(request)
    }

    /// The digits of an invite were right: what they were asked for goes on.
    ///
    /// - Returns: false when nothing is waiting for them any more.
    func acceptDigits(
        of invite: SigningInviteRecord, _ container: SigningContainerRecord, at now: Int64
    ) async throws -> Bool {
        guard invite.did != nil else {
            let activation = try await activation(container, at: now)
            guard try await acceptDigits(container, activation: activation, at: now) else { return false }
            try await notices.tell(.enrolled, container.did, ifBy: activation)
            return true
        }
        guard let renewal = try await renewal(pid: invite.pid), renewal.state == .completed else { return false }
        let activation = try await activation(container, renewal, at: now)
        let news = [EnrolmentSQL.forgetDigits(pid: renewal.pid), RenewalSQL.rightDigits(renewal.pid, at: now)]
        let done = try await replace(renewal, of: container, activation, after: news, at: now)
        if done { try await notices.tell(.reset, container.did, ifBy: activation) }
        return done
    }

    /// The record that makes a container active, signed beforehand.
    private func activation(_ container: SigningContainerRecord, at now: Int64) async throws -> SigningActivation {
        let maker = try await invites.find(container.pid)?.maker ?? .user
        return try await activation(
            container, by: [maker.ground], approvalsFrom: now + settings.approvalDelay, at: now)
    }

    /// The record that makes new keys count, signed beforehand.
    private func activation(
        _ container: SigningContainerRecord, _ renewal: SigningRenewalRecord, at now: Int64
    ) async throws -> SigningActivation {
        guard let sent = renewal.sent, let previous = container.record else { throw SigningRefusal(.unavailable) }
        var grounds = try await endorsed(
            sent.enrol, sent.endorsements, container, hasCode: renewal.invite != nil
        ).grounds
        if let invite = renewal.invite {
            grounds.insert((try await invites.find(invite)?.maker ?? .user).ground, at: 0)
        }
        return try await activation(
            container.with(sent, of: renewal), sequence: try await sequence(of: container.did) + 1, after: previous,
            by: grounds,
            approvalsFrom: renewal.invite == nil ? container.approvalsFrom : now + settings.approvalDelay, at: now)
    }

    /// The record of a container as it will be, and what it rests on.
    private func activation(
        _ container: SigningContainerRecord, sequence: Int = 0, after previous: SigningHash? = nil,
        by grounds: [RecordGround], approvalsFrom: Int64, at now: Int64
    ) async throws -> SigningActivation {
        let record = try await keys.sign(
            EnrolmentRecord(
                issuer: iss, did: container.did, issuedAt: Int(now), pid: container.pid, sub: container.userID,
                sequence: sequence, previous: previous, user: container.username,
                identity: try UnverifiedMessage<Offer>(container.offer).content.identity,
                enrol: .enrolment(container.enrol), transcript: container.transcript, commit: container.commitMode,
                by: grounds, approvalsFrom: Int(approvalsFrom),
                keys: try UnverifiedMessage<Enrolment>(container.enrol).content.keys.map(\.kid)))
        return SigningActivation(
            record: record, hash: .record(record), sequence: sequence, approvalsFrom: approvalsFrom)
    }
}

// MARK: the statements together

extension SigningEnrolments {
    /// The device has stored what it got. Makes the container active if the digits were right.
    ///
    /// - Returns: whether it has, or had before.
    func confirm(
        _ container: SigningContainerRecord, echoHash: SigningHash, activation: SigningActivation, at now: Int64
    ) async throws -> Bool {
        let did = container.did
        let done = try await store.changes(
            [
                .one(ContainerSQL.echo(did: did, hash: echoHash, at: now), else: .changed),
                store.note(.signingEnrol, user: container.userID, did: did, ["step": "confirm"]),
            ] + activating(container, activation, at: now))
        if done { return true }
        let known = try await devices.find(did)
        return known.map { $0.state != .void && $0.state != .unconfirmed && $0.echoHash == echoHash } ?? false
    }

    /// The digits were right. Makes the container active if the device has confirmed.
    ///
    /// - Returns: false when it is no longer waiting for them.
    func acceptDigits(
        _ container: SigningContainerRecord, activation: SigningActivation, at now: Int64
    ) async throws -> Bool {
        try await store.changes(
            [
                .one(EnrolmentSQL.forgetDigits(pid: container.pid), else: .changed),
                .one(ContainerSQL.rightDigits(did: container.did, at: now), else: .changed),
                store.note(.signingEnrol, user: container.userID, did: container.did, ["step": "digits"]),
            ] + activating(container, activation, at: now))
    }

    /// Makes a container active if nothing is missing, together with its record.
    private func activating(_ container: SigningContainerRecord, _ activation: SigningActivation, at now: Int64)
        -> [GuardedStatement<Obstacle>]
    {
        let did = container.did
        let isDone = ContainerSQL.has(did: did, record: activation.hash)
        let note = store.record(.signingEnrol, user: container.userID, did: did, ["step": "active"])
        return [
            .any(ContainerSQL.activate(did: did, activation)),
            .any(ContainerSQL.start(keysOf: did, at: now, when: isDone)),
            .any(ContainerSQL.insert(activation, of: did, at: now)),
            .any(notices.telling(.enrolled, about: did, when: isDone, at: now)),
            .also(store.audit.statement(note, when: isDone)),
        ]
    }

    /// After what has come, one row each (the device has stored what it got, or the digits were right), makes the new
    /// keys count if nothing is missing, together with their record. The container is locked before the renewal, as by
    /// a change of the password, which ends renewals.
    ///
    /// - Returns: false when the renewal has ended, or no longer waits for this.
    private func replace(
        _ renewal: SigningRenewalRecord, of container: SigningContainerRecord, _ activation: SigningActivation,
        after news: [SQL], at now: Int64
    ) async throws -> Bool {
        guard let sent = renewal.sent else { throw SigningRefusal(.enrolmentVoid) }
        let did = container.did
        let slots = try UnverifiedMessage<Offer>(renewal.offer).content.slots
            .filter { $0.mode == .assisted }.map(\.slot)
        let isDone = ContainerSQL.has(did: did, record: activation.hash)
        var rest =
            [
                RenewalSQL.finish(renewal.pid, of: container, slots: slots),
                RenewalSQL.renew(container, with: renewal, sent, activation),
            ] + RenewalSQL.replaceKeys(of: did, renewal, sent, activation, at: now)
        if renewal.invite != nil { rest.append(notices.telling(.reset, about: did, when: isDone, at: now)) }
        let note = store.record(
            .signingContainer, user: container.userID, did: did,
            ["step": renewal.invite == nil ? "renewed" : "reset", "pid": renewal.pid.text])
        let hold = RenewalSQL.hold(container: did, evenSuspect: true, at: now)
        return try await store.changes(
            ([hold] + news).map { .one($0, else: .changed) } + rest.map { .any($0) } + [
                .also(store.audit.statement(note, when: isDone))
            ])
    }
}
