import AssentCore
import AssentSigningProtocol
import AssentStore

/// The statements about renewals: new keys for a container that has keys.
enum RenewalSQL {
    private typealias Renewal = SigningRenewalRecord.State

    static let underWay: [SigningRenewalRecord.State] = [.started, .committed, .completed]

    /// That a renewal may still end well.
    private static func isOpen(at now: Int64) -> SQL {
        """
        state IN (\(underWay))
            AND expires_at + \(SigningInviteRecord.completion) > \(now)
        """
    }

    static func underWay(of did: SigningID, at now: Int64) -> SQL {
        """
        SELECT * FROM signing_renewals WHERE did = \(did) AND \(isOpen(at: now))
        ORDER BY created_at DESC, pid LIMIT 1
        """
    }

    /// Makes others wait that change the same container; no row when it may not be renewed.
    static func hold(container did: SigningID, evenSuspect: Bool, at now: Int64) -> SQL {
        """
        UPDATE signing_containers SET seen_at = \(now)
        WHERE did = \(did) AND expires_at > \(now)
            AND (state = \(ContainerState.active) OR (state = \(ContainerState.suspect) AND \(evenSuspect) = 1))
        """
    }

    /// No row while a renewal with a code may still end well: nothing that comes without a code ends it. It looks after
    /// ``hold(container:evenSuspect:at:)`` has waited, and so sees what has begun meanwhile.
    static func holdWithoutReset(container did: SigningID, at now: Int64) -> SQL {
        """
        UPDATE signing_containers SET seen_at = seen_at
        WHERE did = \(did) AND NOT EXISTS (
            SELECT 1 FROM signing_renewals WHERE did = \(did) AND invite IS NOT NULL AND \(isOpen(at: now)))
        """
    }

    /// Ends the renewals of a container that are under way, with their keys; without `evenWithCode` only those that no
    /// fresh authentication has begun.
    static func end(of did: SigningID, evenWithCode: Bool = true) -> [SQL] {
        [
            """
            UPDATE signing_renewals SET state = \(Renewal.void)
            WHERE did = \(did) AND state IN (\(underWay))
                AND (invite IS NULL OR \(evenWithCode) = 1)
            """,
            deletePendingKeys(of: did),
            """
            DELETE FROM signing_offered_slots WHERE did = \(did) AND NOT EXISTS (
                SELECT 1 FROM signing_renewals r WHERE r.pid = signing_offered_slots.pid
                    AND r.state IN (\(underWay)))
            """,
        ]
    }

    static func void(invite pid: SigningID) -> SQL {
        """
        UPDATE signing_renewals SET state = \(Renewal.void)
        WHERE invite = \(pid) AND state IN (\(underWay))
        """
    }

    /// Deletes the keys of renewals that count no more.
    static func deletePendingKeys(of did: SigningID) -> SQL {
        """
        DELETE FROM signing_keys WHERE did = \(did) AND state = \(SigningKeyState.pending) AND NOT EXISTS (
            SELECT 1 FROM signing_renewals r WHERE r.did = \(did) AND r.state = \(Renewal.completed))
        """
    }

    static func start(_ new: SigningRenewalRecord, issuer: String, at now: Int64) -> SQL {
        """
        INSERT INTO signing_renewals
            (pid, iss, did, state, invite, commit_mode, offer, created_at, expires_at)
        VALUES (\(new.pid), \(issuer), \(new.did), \(new.state), \(new.invite), \(new.commitMode),
            \(new.offer), \(now), \(new.expiresAt))
        ON CONFLICT DO NOTHING
        """
    }

    /// Another offer for a device that has asked again.
    static func restart(_ new: SigningRenewalRecord) -> SQL {
        """
        UPDATE signing_renewals SET offer = \(new.offer), expires_at = \(new.expiresAt)
        WHERE pid = \(new.pid) AND state = \(Renewal.started)
        """
    }

    /// The keys of its slots are kept as long as the renewal that began anew.
    static func keepOfferedSlots(of did: SigningID, pid: SigningID, until: Int64) -> SQL {
        "UPDATE signing_offered_slots SET expires_at = \(until) WHERE did = \(did) AND pid = \(pid)"
    }

    /// Takes the commitment to the keys of this offer, unless another one has taken its place.
    static func commit(
        _ pid: SigningID, to offer: String, commitment: SigningHash, nonce: SigningNonce, at now: Int64
    ) -> SQL {
        """
        UPDATE signing_renewals SET state = \(Renewal.committed), commitment = \(commitment), nonce_s = \(nonce)
        WHERE pid = \(pid) AND state = \(Renewal.started) AND offer = \(offer) AND expires_at > \(now)
        """
    }

    static func complete(_ pid: SigningID, _ sent: CompletedKeys, at now: Int64) -> SQL {
        return """
            UPDATE signing_renewals SET state = \(Renewal.completed), enrol = \(sent.enrol), transcript = \(sent.transcript),
                endorsements = \(sent.endorsementsText), name = \(sent.name), device_kid = \(sent.deviceKeyID),
                device_jwk = \(sent.deviceJWK), transport_jwk = \(sent.transportJWK),
                sealed_echo = \(sent.sealedEcho), echo_hash = \(sent.echoHash), renew_at = \(sent.renewAt),
                keys_expire_at = \(sent.expireAt)
            WHERE pid = \(pid) AND state = \(Renewal.committed) AND expires_at + \(SigningInviteRecord.completion) > \(now)
            """
    }

    static func echo(_ pid: SigningID, hash: SigningHash, at now: Int64) -> SQL {
        """
        UPDATE signing_renewals SET echo_at = \(now)
        WHERE pid = \(pid) AND state = \(Renewal.completed) AND echo_hash = \(hash)
            AND expires_at + \(SigningInviteRecord.completion) > \(now)
        """
    }

    static func rightDigits(_ pid: SigningID, at now: Int64) -> SQL {
        """
        UPDATE signing_renewals SET digits_at = \(now)
        WHERE pid = \(pid) AND state = \(Renewal.completed) AND expires_at + \(SigningInviteRecord.completion) > \(now)
        """
    }

    /// COMPLETED → DONE if nothing is missing, and the container is still the one that the record was signed for. Each
    /// slot of these has to have its new key: the old one is destroyed.
    static func finish(_ pid: SigningID, of container: SigningContainerRecord, slots: [PasswordSlot]) -> SQL {
        let hasKeys = slots.reduce("" as SQL) { conditions, slot in
            """
            \(conditions) AND EXISTS (SELECT 1 FROM signing_offered_slots o
                WHERE o.did = \(container.did) AND o.pid = \(pid) AND o.slot = \(slot))
            """
        }
        return """
            UPDATE signing_renewals SET state = \(Renewal.done)
            WHERE pid = \(pid) AND state = \(Renewal.completed) AND echo_at IS NOT NULL
                AND (digits_at IS NOT NULL OR commit_mode = \(CommitMode.exchange))
                AND EXISTS (SELECT 1 FROM signing_containers c WHERE c.did = \(container.did)
                    AND c.record = \(container.record) AND (c.state = \(ContainerState.active)
                        OR (c.state = \(ContainerState.suspect) AND signing_renewals.invite IS NOT NULL)))\(hasKeys)
            """
    }

    /// Puts the new keys and dates in the place of the old ones.
    static func renew(
        _ container: SigningContainerRecord, with renewal: SigningRenewalRecord,
        _ sent: CompletedKeys, _ activation: SigningActivation
    ) -> SQL {
        """
        UPDATE signing_containers
        SET state = \(ContainerState.active), pid = \(renewal.pid), record = \(activation.hash),
            approvals_from = \(activation.approvalsFrom), commit_mode = \(renewal.commitMode),
            name = coalesce(\(sent.name), name), device_kid = \(sent.deviceKeyID), device_jwk = \(sent.deviceJWK),
            transport_jwk = \(sent.transportJWK), sealed_echo = \(sent.sealedEcho), echo_hash = \(sent.echoHash),
            offer = \(renewal.offer), enrol = \(sent.enrol), transcript = \(sent.transcript),
            renew_at = \(sent.renewAt), expires_at = \(sent.expireAt)
        WHERE did = \(container.did) AND record = \(container.record)
            AND EXISTS (SELECT 1 FROM signing_renewals r WHERE r.pid = \(renewal.pid) AND r.state = \(Renewal.done))
        """
    }

    /// The statements that follow when a container has got this record: old keys retire, new ones count, documents that
    /// were not decided name keys that count no more.
    static func replaceKeys(
        of did: SigningID, _ renewal: SigningRenewalRecord, _ sent: CompletedKeys,
        _ activation: SigningActivation, at now: Int64
    ) -> [SQL] {
        let isDone = ContainerSQL.has(did: did, record: activation.hash)
        return [
            ContainerSQL.retireKeys(of: did, when: isDone),
            """
            UPDATE signing_keys SET state = \(SigningKeyState.active), since = \(now)
            WHERE did = \(did) AND state = \(SigningKeyState.pending) AND \(isDone)
            """,
            """
            INSERT INTO signing_records (did, seq, record, enrol, offer, endorsements, created_at)
            SELECT did, \(activation.sequence), \(activation.record), \(sent.enrol), \(renewal.offer), \(sent.endorsementsText), \(now)
            FROM signing_containers WHERE did = \(did) AND record = \(activation.hash)
            """,
            """
            DELETE FROM signing_documents WHERE did = \(did) AND \(isDone)
                AND NOT EXISTS (SELECT 1 FROM signing_decisions d WHERE d.txn = signing_documents.txn)
            """,
        ] + replaceSlots(of: did, renewal, when: isDone, at: now)
    }

    /// The keys of password slots that belong to the new keys. After a renewal that the old password was needed for,
    /// what was counted and when it was set stay as they were; after a reset the password is another one.
    private static func replaceSlots(
        of did: SigningID, _ renewal: SigningRenewalRecord, when isDone: SQL, at now: Int64
    ) -> [SQL] {
        let pid = renewal.pid
        let isOffered: SQL = """
            EXISTS (SELECT 1 FROM signing_offered_slots o
                WHERE o.did = \(did) AND o.pid = \(pid) AND o.slot = signing_slots.slot)
            """
        func offered(_ column: SQL) -> SQL {
            """
            (SELECT o.\(column) FROM signing_offered_slots o
                WHERE o.did = \(did) AND o.pid = \(pid) AND o.slot = signing_slots.slot)
            """
        }
        let anew: SQL =
            renewal.invite == nil
            ? ""
            : ", floor = n, unconfirmed = 0, cleared = n, forgive_after = NULL, next_at = 0, held = 0, changed_at = \(now)"
        return [
            // The old keys have confirmed these: a decision by a new one that took one could not be proved.
            """
            UPDATE signing_confirms SET taken_by = \("renewal:\(pid)")
            WHERE did = \(did) AND taken_by IS NULL AND \(isDone)
            """,
            SlotSQL.destroySlots(of: did, when: "\(isDone) AND NOT \(isOffered)"),
            """
            UPDATE signing_slots SET generation = \(offered("generation")), public_key = \(offered("public_key")),
                sealed_k = \(offered("sealed_k")), pending_k = NULL, pending_public_key = NULL,
                pending_generation = NULL, request = NULL, blinded = NULL, cur = NULL, next = NULL, ahead = NULL\(anew)
            WHERE did = \(did) AND \(isDone) AND \(isOffered)
            """,
            SlotSQL.adoptSlots(
                of: did, pid: pid,
                when: """
                    \(isDone) AND NOT EXISTS (SELECT 1 FROM signing_slots s WHERE s.did = o.did AND s.slot = o.slot)
                    """, at: now),
            "DELETE FROM signing_offered_slots WHERE did = \(did) AND pid = \(pid) AND \(isDone)",
        ]
    }
}
