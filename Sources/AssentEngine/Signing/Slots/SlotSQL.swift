import AssentSigningProtocol
import AssentStore

enum SlotSQL {
    /// Seconds after an evaluation in which a decision or a change may take it.
    static let evaluationLifetime: Int64 = 300

    /// How many evaluations there are of a slot before it has keys.
    static let evaluationsAtEnrolment: Int64 = 5

    static func slots(of did: SigningID) -> SQL { "SELECT * FROM signing_slots WHERE did = \(did) ORDER BY slot" }

    private static func isRepeated(_ attempt: SlotTry) -> SQL {
        "(request = \(attempt.rid) AND blinded = \(attempt.element))"
    }

    /// Counts one evaluation and gives the key that may make it: whether it may be made stands in the statement that
    /// counts. A repeated request is not counted again.
    static func unlock(_ attempt: SlotTry, lock: AssistedPasswordLock, at now: Int64) -> SQL {
        let same = isRepeated(attempt)
        return """
            UPDATE signing_slots SET
                n = CASE WHEN \(same) THEN n ELSE n + 1 END,
                unconfirmed = CASE WHEN \(same) THEN unconfirmed ELSE unconfirmed + 1 END,
                next_at = CASE WHEN \(same) THEN next_at ELSE \(nextTry(lock.delays, at: now)) END,
                counted = CASE WHEN \(same) THEN 0 ELSE 1 END,
                at = \(now), request = \(attempt.rid), blinded = \(attempt.element),
                cur = \(attempt.ratchet), next = \(attempt.next)
            WHERE did = \(attempt.did) AND slot = \(attempt.slot) AND generation = \(attempt.generation)
                AND sealed_k IS NOT NULL AND n >= \(attempt.last)
                AND (cur IS NULL OR (cur = \(attempt.ratchet) AND (next IS NULL OR next = \(attempt.next)))
                    OR next = \(attempt.ratchet))
                AND (\(same)
                    OR (n - floor < \(lock.max) AND unconfirmed < \(lock.cap) AND next_at <= \(now) AND held = 0))
                AND \(ContainerSQL.isUsable(attempt.did, at: now))
            RETURNING sealed_k, n, n - floor AS used, unconfirmed, next_at
            """
    }

    /// When the next try may be made. Without a delay that is 0 and not now: another node may still work for a request
    /// that arrived in the second before.
    private static func nextTry(_ delays: [Int], at now: Int64) -> SQL {
        func moment(_ delay: Int) -> SQL { delay == 0 ? "0" : "\(now + Int64(delay))" }
        guard let last = delays.last else { return "0" }
        let cases = delays.enumerated().reduce("" as SQL) { "\($0) WHEN \($1.offset + 1) THEN \(moment($1.element))" }
        return "CASE n + 1 - floor\(cases) ELSE \(moment(last)) END"
    }

    /// Keeps a confirmation. One of an evaluation from before a restore can be taken for nothing: it may have been.
    static func insert(_ confirmed: ConfirmedTry) -> SQL {
        """
        INSERT INTO signing_confirms
            (did, slot, n, unl, generation, evaluated_at, confirmed_at, taken_by, eval, confirm)
        VALUES (\(confirmed.did), \(confirmed.slot), \(confirmed.n), \(confirmed.unl),
            \(confirmed.generation), \(confirmed.evaluatedAt), \(confirmed.confirmedAt),
            (SELECT 'restored' FROM signing_slots s WHERE s.did = \(confirmed.did) AND s.slot = \(confirmed.slot)
                AND s.restored_at >= \(confirmed.evaluatedAt)),
            \(confirmed.evaluation), \(confirmed.confirmation))
        ON CONFLICT (did, slot, n) DO NOTHING
        """
    }

    /// Gives an evaluation back, and forgives those before it: never a later one. An evaluation from before a restore
    /// forgives nothing: the backup may not have it, and a guess that was made since has its number.
    static func forgive(_ confirmed: ConfirmedTry) -> SQL {
        let n: SQL = "(CASE WHEN restored_at >= \(confirmed.evaluatedAt) THEN 0 ELSE \(confirmed.n) END)"
        return """
            UPDATE signing_slots SET
                unconfirmed = CASE WHEN \(n) > forgive_after THEN n - \(n) WHEN \(n) > cleared THEN unconfirmed - 1
                    ELSE unconfirmed END,
                cleared = CASE WHEN \(n) > forgive_after THEN \(n) ELSE cleared END,
                forgive_after = CASE WHEN \(n) > forgive_after THEN NULL ELSE forgive_after END,
                floor = CASE WHEN floor < \(n) THEN \(n) ELSE floor END,
                next_at = CASE WHEN n = \(n) THEN 0 ELSE next_at END
            WHERE did = \(confirmed.did) AND slot = \(confirmed.slot) AND n >= \(confirmed.n)
            """
    }

    /// Spends a confirmed evaluation for a change of the password. The change may begin again with it.
    static func take(_ change: SlotChange, unl: SigningID, at now: Int64) -> SQL {
        """
        UPDATE signing_confirms SET taken_by = \(change.taker)
        WHERE did = \(change.did) AND slot = \(change.slot) AND unl = \(unl)
            AND evaluated_at > \(now - evaluationLifetime)
            AND (taken_by IS NULL OR taken_by = \(change.taker))
        """
    }

    /// Spends the newest confirmed evaluation for a renewal that an old key of the slot endorses.
    static func take(renewal pid: SigningID, _ slot: PasswordSlot, of did: SigningID, at now: Int64) -> SQL {
        """
        UPDATE signing_confirms SET taken_by = \("renewal:\(pid)")
        WHERE did = \(did) AND slot = \(slot) AND taken_by IS NULL
            AND evaluated_at > \(now - evaluationLifetime)
            AND n = (SELECT max(s.n) FROM signing_confirms s WHERE s.did = \(did) AND s.slot = \(slot))
        """
    }

    static func begin(_ change: SlotChange, with key: SigningOfferedSlot, setBefore: Int64, at now: Int64) -> SQL {
        """
        UPDATE signing_slots SET pending_k = \(key.sealedKey), pending_public_key = \(key.publicKey),
            pending_generation = \(change.to)
        WHERE did = \(change.did) AND slot = \(change.slot) AND generation = \(change.from)
            AND sealed_k IS NOT NULL AND changed_at <= \(setBefore) AND \(ContainerSQL.isUsable(change.did, at: now))
        """
    }

    /// The new key takes the old one's place, which is destroyed. A request that comes again belongs to the old one.
    /// The device has sealed with the key that it names: with another one no password would open anything.
    static func commit(_ change: SlotChange, at now: Int64) -> SQL {
        """
        UPDATE signing_slots SET sealed_k = pending_k, public_key = pending_public_key,
            generation = pending_generation, pending_k = NULL, pending_public_key = NULL, pending_generation = NULL,
            request = NULL, blinded = NULL, changed_at = \(now)
        WHERE did = \(change.did) AND slot = \(change.slot) AND generation = \(change.from)
            AND pending_generation = \(change.to) AND pending_public_key = \(change.publicKey)
            AND sealed_k IS NOT NULL AND \(ContainerSQL.isUsable(change.did, at: now))
        """
    }
}

extension SlotSQL {
    /// After a fresh authentication of the user. If the server went back behind a number that it has signed, it goes on
    /// from there. It has not counted the evaluations up to that number, so a late confirmation of one of them lowers
    /// nothing.
    static func open(_ slot: PasswordSlot, of did: SigningID) -> SQL {
        let latest: SQL = "CASE WHEN ahead > n THEN ahead ELSE n END"
        return """
            UPDATE signing_slots SET n = \(latest), floor = \(latest), forgive_after = \(latest), next_at = 0, held = 0,
                cleared = CASE WHEN ahead > n THEN ahead ELSE cleared END,
                cur = CASE WHEN ahead > n THEN NULL ELSE cur END, next = CASE WHEN ahead > n THEN NULL ELSE next END,
                ahead = NULL
            WHERE did = \(did) AND slot = \(slot) AND sealed_k IS NOT NULL
            """
    }

    static func hold(_ slot: PasswordSlot, of did: SigningID) -> SQL {
        """
        UPDATE signing_slots SET held = 1
        WHERE did = \(did) AND slot = \(slot) AND sealed_k IS NOT NULL
        """
    }

    /// Destroys the keys of all slots of a container for which this is true.
    static func destroySlots(of did: SigningID, when condition: SQL = "1 = 1") -> SQL {
        "UPDATE signing_slots SET sealed_k = NULL, pending_k = NULL WHERE did = \(did) AND \(condition)"
    }

    /// Locks a container, so that nothing else happens to it until this transaction is over.
    static func lock(container did: SigningID) -> SQL {
        "UPDATE signing_containers SET seen_at = seen_at WHERE did = \(did)"
    }
}

extension SlotSQL {
    /// A slot of an offer; no row when a change of the password has taken its generation meanwhile.
    static func insert(
        _ slot: SigningOfferedSlot, of did: SigningID, pid: SigningID, expiresAt: Int64
    ) -> SQL {
        """
        INSERT INTO signing_offered_slots
            (did, pid, slot, generation, public_key, sealed_k, evaluations, expires_at)
        SELECT \(did), \(pid), \(slot.slot), \(slot.generation), \(slot.publicKey), \(slot.sealedKey), 0,
            \(expiresAt)
        WHERE NOT EXISTS (SELECT 1 FROM signing_slots s
            WHERE s.did = \(did) AND s.slot = \(slot.slot) AND s.generation >= \(slot.generation))
        ON CONFLICT DO NOTHING
        """
    }

    /// Counts an evaluation at enrolment, or for new keys: there is no sealed key yet that it could help to open, but
    /// it costs time.
    static func evaluate(_ evaluation: SlotEvaluation, at now: Int64) -> SQL {
        let (did, pid, slot) = (evaluation.did, evaluation.pid, evaluation.slot)
        let same: SQL = "(request = \(evaluation.rid) AND blinded = \(evaluation.element))"
        let isStarted: SQL =
            evaluation.isRenewal
            ? "SELECT 1 FROM signing_renewals r WHERE r.pid = \(pid) AND r.did = \(did) AND r.state = \(SigningRenewalRecord.State.started)"
            : "SELECT 1 FROM signing_enrolments e WHERE e.did = \(did) AND e.state = \(SigningEnrolmentRecord.State.started)"
        return """
            UPDATE signing_offered_slots SET
                evaluations = CASE WHEN \(same) THEN evaluations ELSE evaluations + 1 END,
                request = \(evaluation.rid), blinded = \(evaluation.element)
            WHERE did = \(did) AND pid = \(pid) AND slot = \(slot) AND generation = \(evaluation.generation)
                AND (\(same) OR evaluations < \(evaluationsAtEnrolment)) AND expires_at > \(now)
                AND EXISTS (\(isStarted))
            RETURNING slot, generation, public_key, sealed_k, evaluations
            """
    }

    /// Slots of an offer for which this is true become slots of the container that have never been tried.
    static func adoptSlots(of did: SigningID, pid: SigningID, when condition: SQL, at now: Int64) -> SQL {
        """
        INSERT INTO signing_slots
            (did, slot, generation, public_key, sealed_k, n, floor, unconfirmed, cleared, next_at, at, counted, held,
            changed_at)
        SELECT did, slot, generation, public_key, sealed_k, 0, 0, 0, 0, 0, 0, 0, 0, \(now)
        FROM signing_offered_slots o WHERE o.did = \(did) AND o.pid = \(pid) AND \(condition)
        """
    }

    static func forgetOfferedSlots(of did: SigningID, pid: SigningID) -> SQL {
        "DELETE FROM signing_offered_slots WHERE did = \(did) AND pid = \(pid)"
    }

    static func forgetOfferedSlots(pid: SigningID) -> SQL { "DELETE FROM signing_offered_slots WHERE pid = \(pid)" }
}
