import AssentSigningProtocol
import AssentStore

enum DecisionSQL {
    /// Locks the container, if it may decide so: approving needs more than refusing does, and a user who was not
    /// deactivated.
    static func use(container did: SigningID, approving: Bool, at now: Int64) -> SQL {
        let may: SQL =
            approving
            ? """
            state = \(ContainerState.active) AND approvals_from <= \(now)
                AND EXISTS (SELECT 1 FROM users u WHERE u.id = signing_containers.user_id AND u.active = 1)
            """
            : "state IN (\([ContainerState.active, .suspect]))"
        return """
            UPDATE signing_containers SET seen_at = \(now)
            WHERE did = \(did) AND expires_at > \(now) AND \(may)
            """
    }

    static func use(key kid: KeyThumbprint, of did: SigningID, when condition: SQL = "1 = 1", at now: Int64) -> SQL {
        """
        UPDATE signing_keys SET used_at = \(now)
        WHERE kid = \(kid) AND did = \(did) AND state = \(SigningKeyState.active) AND \(condition)
        """
    }

    static func decide(_ decision: SigningDecision, _ effects: DecisionEffects, user: String, at now: Int64) -> SQL {
        let number: SQL = effects.needsNumber ? "match_by = \(decision.dh)" : "1 = 1"
        return """
            UPDATE signing_transactions SET state = \(effects.state), status = \(effects.status),
                decided_by = \(decision.did), decided_at = \(now)
            WHERE txn = \(decision.txn) AND \(SigningTransactionSQL.isPending(at: now)) AND user_id = \(user)
                AND (did IS NULL OR did = \(decision.did)) AND (claimed_by IS NULL OR claimed_by = \(decision.did))
                AND \(number)
            """
    }

    static func keep(_ decision: SigningDecision, at now: Int64) -> SQL {
        """
        INSERT INTO signing_decisions (txn, did, dh, decision, possession, txd, eval, confirm, receipt,
            decided_at)
        VALUES (\(decision.txn), \(decision.did), \(decision.dh), \(decision.decision), \(decision.possession),
            \(decision.txd), \(decision.evaluation), \(decision.confirmation), \(decision.receipt), \(now))
        ON CONFLICT DO NOTHING
        """
    }

    /// A confirmed evaluation that a decision may take, and when its password was set.
    static func confirmed(_ unl: SigningID, slot: PasswordSlot, of did: SigningID, at now: Int64) -> SQL {
        confirmed(unl, inSlot: "\(slot)", of: did, at: now)
    }

    /// The same by a key of the container, which has a slot.
    static func confirmed(_ unl: SigningID, slotOf kid: KeyThumbprint, of did: SigningID, at now: Int64) -> SQL {
        let slot: SQL = "(SELECT k.slot FROM signing_keys k WHERE k.kid = \(kid) AND k.did = \(did))"
        return confirmed(unl, inSlot: slot, of: did, at: now)
    }

    private static func confirmed(_ unl: SigningID, inSlot slot: SQL, of did: SigningID, at now: Int64) -> SQL {
        """
        SELECT c.*, s.changed_at FROM signing_confirms c
        LEFT JOIN signing_slots s ON s.did = c.did AND s.slot = c.slot
        WHERE c.did = \(did) AND c.slot = \(slot) AND c.unl = \(unl) AND c.taken_by IS NULL
            AND c.evaluated_at > \(now - SlotSQL.evaluationLifetime) AND c.eval IS NOT NULL
        """
    }

    /// Spends a confirmed evaluation for one decision or login, if its slot is so.
    static func take(
        _ unlock: SpentEvaluation, for taker: String, did: SigningID, when slot: SQL = "1 = 1", at now: Int64
    ) -> SQL {
        """
        UPDATE signing_confirms SET taken_by = \(taker)
        WHERE did = \(did) AND slot = \(unlock.slot) AND unl = \(unlock.unl)
            AND evaluated_at > \(now - SlotSQL.evaluationLifetime) AND taken_by IS NULL
            AND EXISTS (SELECT 1 FROM signing_slots s
                WHERE s.did = \(did) AND s.slot = \(unlock.slot) AND s.changed_at > \(unlock.passwordSetAfter)
                    AND \(slot))
        """
    }

    /// Lets one decision try the number, and gives the number: committed before it is compared.
    static func claimNumber(txn: SigningID, dh: SigningHash, at now: Int64) -> SQL {
        """
        UPDATE signing_transactions SET match_by = \(dh)
        WHERE txn = \(txn) AND \(SigningTransactionSQL.isPending(at: now)) AND (match_by IS NULL OR match_by = \(dh))
        RETURNING match_number
        """
    }
}
