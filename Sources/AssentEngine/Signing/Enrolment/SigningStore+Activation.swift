import AssentCore
package import AssentSigningProtocol
import AssentStore

/// What makes a container active: the record that the server has signed for it.
package struct SigningActivation: Sendable, Hashable {
    /// The record, as it was signed.
    package let record: String

    /// Its hash.
    package let hash: String

    /// From when the container may approve.
    package let approvalsFrom: Int64

    /// An activation.
    package init(record: String, hash: String, approvalsFrom: Int64) {
        self.record = record
        self.hash = hash
        self.approvalsFrom = approvalsFrom
    }
}

/// What came of digits that a user has entered.
package enum DigitsResult: Sendable, Hashable {
    /// They are those of this container.
    case right(did: String)
    /// They are not; so many tries are left.
    case wrong(remaining: Int)
    /// There is nothing to compare with: no device has completed, it is over, or the digits were right before.
    case nothingToCompare
}

extension SigningStore {
    /// COMMITTED → COMPLETED: the container with its keys, under a number that the user has free.
    ///
    /// - Returns: false when the enrolment is not committed any more, or its invite is over: read again.
    /// - Throws: ``SigningRefusal``: `device_limit`; `invalid_request` when a key is known already; `replay`.
    package func complete(
        _ new: SigningContainerRecord, keys: [SigningKeyRow], oneTimeKeys: [SigningOneTimeSecret] = [],
        slots: [PasswordSlot] = [], digits: String?, limit: Int, proof: SpentProof?, at now: Int64
    ) async throws -> Bool {
        let insertions = keys.enumerated().map { index, key in
            SQLStatement(SigningSQL.insert(key, of: new.did, position: index, at: now), expecting: .exactly(1))
        }
        let first: [SQLStatement] = [
            SQLStatement(SigningSQL.hold(user: new.userID), expecting: .exactly(1)),
            SQLStatement(
                SigningSQL.useInvite(pid: new.pid, did: new.did, digits: digits, at: now), expecting: .exactly(1)),
            SQLStatement(SigningSQL.complete(did: new.did), expecting: .exactly(1)),
            SQLStatement(SigningSQL.voidOverdue(user: new.userID, at: now)),
            SQLStatement(SigningSQL.deleteSlotsOfVoid(user: new.userID)),
            SQLStatement(SigningSQL.deleteKeysOfVoid(user: new.userID)),
            SQLStatement(SigningSQL.deleteOneTimeKeysOfVoid(user: new.userID)),
            SQLStatement(
                SigningSQL.insert(new, issuer: issuer.name, limit: limit, at: now), expecting: .exactly(1)),
        ]
        let note = audit.statement(
            record(.signingEnrol, user: new.userID, did: new.did, ["pid": new.pid, "step": "complete"]))
        let secrets = try inserting(oneTimeKeys, of: new.did, at: now)
        let adopted =
            slots.map {
                SQLStatement(SigningSQL.adopt($0, of: new.did, pid: new.pid, at: now), expecting: .exactly(1))
            } + [SQLStatement(SigningSQL.forgetOfferedSlots(of: new.did, pid: new.pid))]
        let known = first.count + keys.count + secrets.count
        switch try await attempt(first + insertions + secrets + adopted + spending(proof, at: now) + [note]) {
        case .done: return true
        case .refused(by: 0...2): return false
        case .refused(let statement) where statement == first.count - 1:
            try await audit.write(
                record(.signingEnrol, .refused, reason: .deviceLimit, user: new.userID, did: new.did))
            throw SigningRefusal(.deviceLimit)
        case .refused(let statement) where statement < known:
            throw SigningRefusal(.invalidRequest, "A key is known already.")
        case .refused(let statement) where statement < known + adopted.count: throw SigningRefusal(.enrolmentVoid)
        case .refused: throw SigningRefusal(.replay)
        }
    }

    /// The device has stored what it got. Makes the container active if the digits were right.
    ///
    /// - Returns: whether it has, or had before.
    package func confirm(
        _ container: SigningContainerRecord, echoHash: String, activation: SigningActivation, at now: Int64
    ) async throws -> Bool {
        let did = container.did
        let done = try await succeeds(
            [
                SQLStatement(SigningSQL.echo(did: did, hash: echoHash, at: now), expecting: .exactly(1)),
                audit.statement(record(.signingEnrol, user: container.userID, did: did, ["step": "confirm"])),
            ] + activating(container, activation, at: now))
        if done { return true }
        let known = try await self.container(did: did)
        return known.map { $0.state != .void && $0.state != .unconfirmed && $0.echoHash == echoHash } ?? false
    }

    /// Compares digits that a user has entered: they are counted first, and that is committed.
    package func compare(digits: String, pid: String, at now: Int64) async throws -> DigitsResult {
        let rows = try await context.database.run(
            SQLStatement(SigningSQL.countDigits(pid: pid, issuer: issuer.name, at: now)))
        guard let row = rows.first, let did = try row.optionalText("committed") else { return .nothingToCompare }
        guard ConstantTime.equal(try row.text("digits"), digits) else {
            return .wrong(remaining: Int(SigningInviteRecord.tries - (try row.integer("tries"))))
        }
        return .right(did: did)
    }

    /// The digits were right. Makes the container active if the device has confirmed.
    ///
    /// - Returns: false when it is no longer waiting for them.
    package func acceptDigits(
        _ container: SigningContainerRecord, activation: SigningActivation, at now: Int64
    ) async throws -> Bool {
        try await succeeds(
            [
                SQLStatement(SigningSQL.forgetDigits(pid: container.pid), expecting: .exactly(1)),
                SQLStatement(SigningSQL.rightDigits(did: container.did, at: now), expecting: .exactly(1)),
                audit.statement(
                    record(.signingEnrol, user: container.userID, did: container.did, ["step": "digits"])),
            ] + activating(container, activation, at: now))
    }

    /// Writes down that digits were wrong. The last time ends the invite and the container.
    package func refuseDigits(_ invite: SigningInviteRecord, remaining: Int, at now: Int64) async throws {
        try await audit.write(
            record(
                .signingEnrol, .refused, reason: .digitsWrong, user: invite.userID, did: invite.committed,
                ["pid": invite.pid]))
        if remaining == 0 { _ = try await void(invite, because: .digitsWrong, at: now) }
    }

    /// Makes a container active if nothing is missing, together with its record.
    private func activating(_ container: SigningContainerRecord, _ activation: SigningActivation, at now: Int64)
        -> [SQLStatement]
    {
        let did = container.did
        let isDone = SigningSQL.has(did: did, record: activation.hash)
        return [
            SQLStatement(SigningSQL.activate(did: did, activation)),
            SQLStatement(SigningSQL.start(keysOf: did, at: now, when: isDone)),
            SQLStatement(SigningSQL.insert(activation, of: did, at: now)),
            telling(.enrolled, about: did, when: isDone, at: now),
            audit.statement(
                record(.signingEnrol, user: container.userID, did: did, ["step": "active"]), when: isDone),
        ]
    }
}
