import AssentCore
import AssentSigningProtocol
import AssentStore

extension SigningSlots {
    /// Counts an evaluation, and gives what it needs when that is known to be committed. A caller that does not know
    /// must not evaluate: every other error says so.
    ///
    /// - Throws: ``SigningRefusal``: `shredded`, `wrong_generation`, `server_rolled_back`, why the container may not,
    ///   `use_nonce`, `container_suspect`, `locked`, `wait`; `invalid_request` when there is no such slot.
    func count(
        _ attempt: SlotTry, of container: SigningContainerRecord, lock: AssistedPasswordLock, at now: Int64
    ) async throws -> CountedTry {
        let slot: SQL = "signing_slots WHERE did = \(attempt.did) AND slot = \(attempt.slot)"
        for _ in 0..<3 {
            let note = store.record(
                .signingSlot, user: container.userID, did: attempt.did,
                ["slot": attempt.slot.rawValue, "step": "evaluated"])
            let statements: [GuardedStatement<Obstacle>] = [
                .one(SlotSQL.unlock(attempt, lock: lock, at: now), else: .changed),
                .also(
                    store.audit.statement(
                        note, numbered: "(SELECT CAST(n AS TEXT) FROM \(slot))",
                        when: "EXISTS (SELECT 1 FROM \(slot) AND counted = 1)")),
            ]
            if case .done(let results) = try await store.attempt(statements), let row = results.first?.first {
                return try CountedTry(row, lock: lock, at: now)
            }
            if let refusal = try await refusal(of: attempt, lock: lock, container: container, at: now) {
                throw refusal
            }
            // It was refused, and could be made by now.
        }
        throw SigningRefusal(.unavailable)
    }

    private func refusal(
        of attempt: SlotTry, lock: AssistedPasswordLock, container: SigningContainerRecord, at now: Int64
    ) async throws -> SigningRefusal? {
        guard let row = try await find(attempt.slot, of: attempt.did) else { return Self.noSuchSlot }
        guard row.sealedKey != nil else { return SigningRefusal(.shredded) }
        guard row.generation == attempt.generation else { return SigningRefusal(.wrongGeneration) }
        guard row.n >= attempt.last else {
            try await remember(ahead: attempt.last, of: row, container: container)
            return SigningRefusal(.serverRolledBack)
        }
        guard let known = try await devices.find(attempt.did) else { return SigningRefusal(.unknownContainer) }
        guard known.state(at: now) != .suspect else { return SigningRefusal(.containerSuspect) }
        if let refusal = known.refusal(approving: false, at: now) { return refusal }
        if let alarm = row.alarm(attempt) {
            // A copy of a request that was delayed, which the device has long repeated: one node's clock may be ahead,
            // and another's behind, and two things of one second have no order.
            guard attempt.nonceMadeAt > row.at + NodeClocks.difference else { return SigningRefusal(.useNonce) }
            try await suspect(known, because: alarm)
            return SigningRefusal(.containerSuspect)
        }
        if row.request == attempt.rid, row.blinded == attempt.element { return nil }
        if row.unconfirmed >= lock.cap {
            try await destroy(attempt.slot, of: known, cap: lock.cap, by: "cap")
            return SigningRefusal(.locked, remaining: 0)
        }
        guard row.status(lock, at: now).state == .open else {
            try await store.writeRefusal(
                .signingSlot, .locked, user: container.userID, did: attempt.did, ["slot": attempt.slot.rawValue])
            return SigningRefusal(.locked, remaining: 0)
        }
        guard row.nextAt <= now else {
            return SigningRefusal(
                .wait, remaining: row.status(lock, at: now).tries, retryAfter: min(86400, row.nextAt - now))
        }
        return nil
    }

    /// Keeps a number that the server has signed and does not know any more: it goes on behind it once the user has
    /// authenticated.
    func remember(ahead n: Int64, of row: SigningSlotRow, container: SigningContainerRecord) async throws {
        let note = store.record(
            .signingSlot, .refused, reason: .serverRolledBack, user: container.userID, did: row.did,
            ["slot": row.slot.rawValue, "n": "\(n)"])
        let remember: SQL = """
            UPDATE signing_slots SET ahead = \(n)
            WHERE did = \(row.did) AND slot = \(row.slot) AND generation = \(row.generation) AND n < \(n)
                AND (ahead IS NULL OR ahead < \(n))
            """
        _ = try await store.changes([.one(remember, else: .changed), .also(store.audit.statement(note))])
    }

    /// ACTIVE → SUSPECT: its store may have been copied.
    private func suspect(_ container: SigningContainerRecord, because alarm: RatchetAlarm) async throws {
        _ = try await store.changes([
            .one(
                """
                UPDATE signing_containers SET state = \(ContainerState.suspect)
                WHERE did = \(container.did) AND state = \(ContainerState.active)
                """, else: .changed),
            .any(LoginSQL.endSessions(of: container.did)),
            .any(notices.telling(.suspect, about: container.did, at: now)),
            store.note(
                .signingContainer, user: container.userID, did: container.did,
                ["step": "suspect", "why": alarm.rawValue]),
        ])
    }
}

/// What the ratchet tells of a device's store.
enum RatchetAlarm: String {
    /// Two copies have gone on from the same value.
    case fork
    /// A copy has gone on, and this is the other one.
    case stale
}

extension SigningSlotRow {
    /// What is wrong with the ratchet's values of a request; `nil` when nothing is.
    func alarm(_ attempt: SlotTry) -> RatchetAlarm? {
        guard let current, next != attempt.ratchet else { return nil }
        guard current == attempt.ratchet else { return .stale }
        return next == nil || next == attempt.next ? nil : .fork
    }
}
