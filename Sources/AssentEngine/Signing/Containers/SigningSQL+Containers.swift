import AssentSigningProtocol
import AssentStore

extension SigningSQL {
    /// Makes others that do something for the same user wait until this transaction is over; their next statement then
    /// sees what it has done. Limits are counted under it.
    static func hold(user: String) -> SQL {
        "UPDATE users SET active = active WHERE id = \(user) AND active = 1"
    }

    /// Makes a container under the least number that the user has free, or none when all are taken.
    static func insert(_ new: SigningContainerRecord, issuer: String, limit: Int, at now: Int64) -> SQL {
        """
        INSERT INTO signing_containers
            (did, iss, user_id, username, number, pid, state, serial, name, push_id, properties, commit_mode,
            device_kid, device_jwk, transport_jwk, sealed_echo, echo_hash, sealed_handle, offer, enrol, transcript,
            approvals_from, renew_at, expires_at, void_at, created_at, seen_at)
        WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < \(limit))
        SELECT \(new.did), \(issuer), \(new.userID), \(new.username), n, \(new.pid), 'UNCONFIRMED', \(new.serial),
            \(new.name), \(new.pushID), \(new.properties), \(new.commitMode.rawValue), \(new.deviceKeyID),
            \(new.deviceJWK), \(new.transportJWK), \(new.sealedEcho), \(new.echoHash), \(new.sealedHandle),
            \(new.offer), \(new.enrol), \(new.transcript), \(new.approvalsFrom), \(new.renewAt), \(new.expiresAt),
            \(new.voidAt), \(now), \(now)
        FROM numbers WHERE NOT EXISTS (
            SELECT 1 FROM signing_containers c
            WHERE c.iss = \(issuer) AND c.user_id = \(new.userID) AND c.number = numbers.n)
        ORDER BY n LIMIT 1
        """
    }

    static func insert(_ key: SigningKeyRow, of did: String, position: Int, at now: Int64) -> SQL {
        """
        INSERT INTO signing_keys (kid, did, position, usage, label, policy, slot, keystore, public_jwk, state, since)
        VALUES (\(key.kid), \(did), \(position), \(key.usage), \(key.label), \(key.policy), \(key.slot),
            \(key.keystore), \(key.publicJWK), 'ACTIVE', \(now))
        ON CONFLICT DO NOTHING
        """
    }

    static func echo(did: String, hash: String, at now: Int64) -> SQL {
        """
        UPDATE signing_containers SET echo_at = \(now), seen_at = \(now)
        WHERE did = \(did) AND state = 'UNCONFIRMED' AND echo_hash = \(hash) AND void_at > \(now)
        """
    }

    static func rightDigits(did: String, at now: Int64) -> SQL {
        """
        UPDATE signing_containers SET digits_at = \(now)
        WHERE did = \(did) AND state = 'UNCONFIRMED' AND void_at > \(now)
        """
    }

    /// UNCONFIRMED → ACTIVE if nothing is missing.
    static func activate(did: String, _ activation: SigningActivation) -> SQL {
        """
        UPDATE signing_containers
        SET state = 'ACTIVE', record = \(activation.hash), approvals_from = \(activation.approvalsFrom)
        WHERE did = \(did) AND state = 'UNCONFIRMED' AND echo_at IS NOT NULL
            AND (digits_at IS NOT NULL OR commit_mode = 'exchange')
        """
    }

    /// That this record made the container active.
    static func has(did: String, record hash: String) -> SQL {
        """
        EXISTS (SELECT 1 FROM signing_containers c
            WHERE c.did = \(did) AND c.record = \(hash) AND c.state = 'ACTIVE')
        """
    }

    static func start(keysOf did: String, at now: Int64, when condition: SQL) -> SQL {
        "UPDATE signing_keys SET since = \(now) WHERE did = \(did) AND state = 'ACTIVE' AND \(condition)"
    }

    static func insert(_ activation: SigningActivation, of did: String, at now: Int64) -> SQL {
        """
        INSERT INTO signing_records (did, seq, record, enrol, offer, endorsements, created_at)
        SELECT did, 0, \(activation.record), enrol, offer, '[]', \(now)
        FROM signing_containers WHERE did = \(did) AND record = \(activation.hash)
        ON CONFLICT DO NOTHING
        """
    }

    /// UNCONFIRMED → VOID.
    static func void(did: String, at now: Int64) -> SQL {
        """
        UPDATE signing_containers SET state = 'VOID', number = NULL, ended_at = \(now)
        WHERE did = \(did) AND state = 'UNCONFIRMED'
        """
    }

    /// The same for those of a user whose time is over: they would keep a number.
    static func voidOverdue(user: String, at now: Int64) -> SQL {
        """
        UPDATE signing_containers SET state = 'VOID', number = NULL, ended_at = \(now)
        WHERE user_id = \(user) AND state = 'UNCONFIRMED' AND void_at <= \(now)
        """
    }

    static func deleteKeysOfVoid(did: String) -> SQL {
        """
        DELETE FROM signing_keys WHERE did = \(did)
            AND EXISTS (SELECT 1 FROM signing_containers c WHERE c.did = \(did) AND c.state = 'VOID')
        """
    }

    /// The same for those of a user whose time was over.
    static func deleteKeysOfVoid(user: String) -> SQL {
        """
        DELETE FROM signing_keys WHERE did IN
            (SELECT c.did FROM signing_containers c WHERE c.user_id = \(user) AND c.state = 'VOID')
        """
    }

    static func block(did: String) -> SQL {
        "UPDATE signing_containers SET state = 'BLOCKED' WHERE did = \(did) AND state IN ('ACTIVE', 'SUSPECT')"
    }

    static func unblock(did: String) -> SQL {
        "UPDATE signing_containers SET state = 'ACTIVE' WHERE did = \(did) AND state = 'BLOCKED'"
    }

    static func revoke(did: String, at now: Int64) -> SQL {
        """
        UPDATE signing_containers SET state = 'REVOKED', number = NULL, ended_at = \(now)
        WHERE did = \(did) AND state NOT IN ('REVOKED', 'VOID')
        """
    }

    static func retireKeys(did: String) -> SQL {
        "UPDATE signing_keys SET state = 'RETIRED' WHERE did = \(did) AND state = 'ACTIVE'"
    }
}
