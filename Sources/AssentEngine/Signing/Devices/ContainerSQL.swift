import AssentSigningProtocol
import AssentStore

/// The statements about containers and their keys. The condition that decides a change stands in the statement that
/// makes it.
enum ContainerSQL {
    /// A container, whatever its state.
    static func container(_ did: SigningID, issuer: String) -> SQL {
        "SELECT * FROM signing_containers WHERE did = \(did) AND iss = \(issuer)"
    }

    /// The containers of a user, oldest first; at most 100, without those that never became active.
    static func containers(of user: String, issuer: String) -> SQL {
        """
        SELECT * FROM signing_containers
        WHERE iss = \(issuer) AND user_id = \(user) AND state <> \(ContainerState.void)
        ORDER BY CASE WHEN number IS NULL THEN 1 ELSE 0 END, created_at, did LIMIT 100
        """
    }

    /// The keys of a container that count or have counted, in the order of its offers.
    static func keys(of did: SigningID) -> SQL {
        """
        SELECT * FROM signing_keys WHERE did = \(did) AND state <> \(SigningKeyState.pending)
        ORDER BY position, kid
        """
    }

    /// Makes others that do something for the same user wait until this transaction is over; their next statement then
    /// sees what it has done. Limits are counted under it.
    static func hold(user: String) -> SQL {
        "UPDATE users SET active = active WHERE id = \(user) AND active = 1"
    }

    /// Makes others wait that change a container; no row when a renewal has given it other keys since it was read.
    static func hold(_ container: SigningContainerRecord) -> SQL {
        """
        UPDATE signing_containers SET seen_at = seen_at
        WHERE did = \(container.did) AND record = \(container.record)
        """
    }

    /// Makes a container under the least number that the user has free, or none when all are taken.
    static func insert(_ new: SigningContainerRecord, issuer: String, limit: Int, at now: Int64) -> SQL {
        """
        INSERT INTO signing_containers
            (did, iss, user_id, username, number, pid, state, serial, name, push_id, properties, commit_mode,
            device_kid, device_jwk, transport_jwk, sealed_echo, echo_hash, sealed_handle, offer, enrol, transcript,
            approvals_from, renew_at, expires_at, void_at, created_at, seen_at, instance_id)
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < \(limit))
        SELECT \(new.did), \(issuer), \(new.userID), \(new.username), n, \(new.pid), \(new.state), \(new.serial),
            \(new.name), \(new.pushID), \(new.properties), \(new.commitMode), \(new.deviceKeyID),
            \(new.deviceJWK), \(new.transportJWK), \(new.sealedEcho), \(new.echoHash), \(new.sealedHandle),
            \(new.offer), \(new.enrol), \(new.transcript), \(new.approvalsFrom), \(new.renewAt), \(new.expiresAt),
            \(new.voidAt), \(now), \(now),
            (SELECT i.instance_id FROM signing_invites i WHERE i.pid = \(new.pid))
        FROM numbers WHERE NOT EXISTS (
            SELECT 1 FROM signing_containers c
            WHERE c.iss = \(issuer) AND c.user_id = \(new.userID) AND c.number = numbers.n)
        ORDER BY n LIMIT 1
        """
    }

    /// A key of a new container, or a pending one of a renewal.
    static func insert(
        _ key: SigningKeyRow, as state: SigningKeyState = .active, of did: SigningID, position: Int, at now: Int64
    ) -> SQL {
        """
        INSERT INTO signing_keys (kid, did, position, usage, label, policy, slot, keystore, public_jwk, state, since)
        VALUES (\(key.kid), \(did), \(position), \(key.usage), \(key.label), \(key.policy), \(key.slot),
            \(key.keystore), \(key.publicJWK), \(state), \(now))
        ON CONFLICT DO NOTHING
        """
    }

    static func echo(did: SigningID, hash: SigningHash, at now: Int64) -> SQL {
        """
        UPDATE signing_containers SET echo_at = \(now), seen_at = \(now)
        WHERE did = \(did) AND state = \(ContainerState.unconfirmed) AND echo_hash = \(hash) AND void_at > \(now)
        """
    }

    static func rightDigits(did: SigningID, at now: Int64) -> SQL {
        """
        UPDATE signing_containers SET digits_at = \(now)
        WHERE did = \(did) AND state = \(ContainerState.unconfirmed) AND void_at > \(now)
        """
    }

    /// UNCONFIRMED → ACTIVE if nothing is missing.
    static func activate(did: SigningID, _ activation: SigningActivation) -> SQL {
        """
        UPDATE signing_containers
        SET state = \(ContainerState.active), record = \(activation.hash), approvals_from = \(activation.approvalsFrom)
        WHERE did = \(did) AND state = \(ContainerState.unconfirmed) AND echo_at IS NOT NULL
            AND (digits_at IS NOT NULL OR commit_mode = \(CommitMode.exchange))
        """
    }

    /// That this record made the container active.
    static func has(did: SigningID, record hash: SigningHash) -> SQL {
        """
        EXISTS (SELECT 1 FROM signing_containers c
            WHERE c.did = \(did) AND c.record = \(hash) AND c.state = \(ContainerState.active))
        """
    }

    static func start(keysOf did: SigningID, at now: Int64, when condition: SQL) -> SQL {
        "UPDATE signing_keys SET since = \(now) WHERE did = \(did) AND state = \(SigningKeyState.active) AND \(condition)"
    }

    static func insert(_ activation: SigningActivation, of did: SigningID, at now: Int64) -> SQL {
        """
        INSERT INTO signing_records (did, seq, record, enrol, offer, endorsements, created_at)
        SELECT did, 0, \(activation.record), enrol, offer, '[]', \(now)
        FROM signing_containers WHERE did = \(did) AND record = \(activation.hash)
        ON CONFLICT DO NOTHING
        """
    }

    /// UNCONFIRMED → VOID.
    static func void(did: SigningID, at now: Int64) -> SQL {
        """
        UPDATE signing_containers SET state = \(ContainerState.void), number = NULL, ended_at = \(now)
        WHERE did = \(did) AND state = \(ContainerState.unconfirmed)
        """
    }

    /// The same for those of a user whose time is over: they would keep a number.
    static func voidOverdue(user: String, at now: Int64) -> SQL {
        """
        UPDATE signing_containers SET state = \(ContainerState.void), number = NULL, ended_at = \(now)
        WHERE user_id = \(user) AND state = \(ContainerState.unconfirmed) AND void_at <= \(now)
        """
    }

    /// Deletes what belongs to a container that is void.
    static func clearVoid(_ did: SigningID) -> [SQL] { clear(void: "c.did = \(did)") }

    /// Deletes what belongs to a user's containers that are void.
    static func clearVoid(user: String) -> [SQL] { clear(void: "c.user_id = \(user)") }

    private static func clear(void condition: SQL) -> [SQL] {
        (["signing_slots", "signing_keys", "signing_otp_keys"] as [SQL]).map { table in
            """
            DELETE FROM \(table) WHERE did IN
                (SELECT c.did FROM signing_containers c WHERE \(condition) AND c.state = \(ContainerState.void))
            """
        }
    }

    /// ACTIVE or SUSPECT → BLOCKED. Which of them it was is kept: a device that may have been copied may be so still
    /// when the block ends.
    static func block(_ did: SigningID) -> SQL {
        """
        UPDATE signing_containers SET blocked_from = state, state = \(ContainerState.blocked)
        WHERE did = \(did) AND state IN (\([ContainerState.active, .suspect]))
        """
    }

    /// BLOCKED → what it was before. Where that is not known, it may have been SUSPECT.
    static func unblock(_ did: SigningID) -> SQL {
        """
        UPDATE signing_containers
        SET state = coalesce(blocked_from, \(ContainerState.suspect)), blocked_from = NULL
        WHERE did = \(did) AND state = \(ContainerState.blocked)
        """
    }

    /// What a device says anew; `nil` leaves a value as it is, an empty push address removes it.
    static func update(did: SigningID, name: String?, pushID: String?, properties: String?) -> SQL {
        """
        UPDATE signing_containers SET name = coalesce(\(name), name),
            push_id = CASE WHEN \(pushID ?? "") <> '' THEN \(pushID ?? "") WHEN \(pushID != nil) = 1 THEN NULL
                ELSE push_id END,
            properties = coalesce(\(properties), properties)
        WHERE did = \(did) AND state NOT IN (\(ContainerState.ended))
        """
    }

    static func revoke(did: SigningID, at now: Int64) -> SQL {
        """
        UPDATE signing_containers SET state = \(ContainerState.revoked), number = NULL, ended_at = \(now)
        WHERE did = \(did) AND state NOT IN (\(ContainerState.ended))
        """
    }

    /// That a container is active and its keys have not expired.
    static func isUsable(_ did: SigningID, at now: Int64) -> SQL {
        """
        EXISTS (SELECT 1 FROM signing_containers c
            WHERE c.did = \(did) AND c.state = \(ContainerState.active) AND c.expires_at > \(now))
        """
    }

    static func retireKeys(of did: SigningID, when condition: SQL = "1 = 1") -> SQL {
        """
        UPDATE signing_keys SET state = \(SigningKeyState.retired)
        WHERE did = \(did) AND state = \(SigningKeyState.active) AND \(condition)
        """
    }
}
