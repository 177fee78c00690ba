import AssentStore

/// The statements of transaction signing. The condition that decides a change stands in the statement that makes it.
package enum SigningSQL {}

extension SigningSQL {
    static func createInvite(_ new: SigningInviteRecord, issuer: String, codeHash: String) -> SQL {
        """
        INSERT INTO signing_invites
            (pid, iss, user_id, username, made_by, code_hash, state, created_at, expires_at, starts, tries, did)
        SELECT \(new.pid), \(issuer), id, \(new.username), \(new.maker.rawValue), \(codeHash), 'OPEN',
            \(new.createdAt), \(new.expiresAt), 0, 0, \(new.did)
        FROM users WHERE id = \(new.userID) AND active = 1
        """
    }

    /// The open invite of a code: for a new container, or for new keys of one.
    static func invite(codeHash: String, issuer: String, renewing did: String? = nil, at now: Int64) -> SQL {
        """
        SELECT * FROM signing_invites
        WHERE code_hash = \(codeHash) AND iss = \(issuer) AND state = 'OPEN' AND expires_at > \(now)
            AND coalesce(did, '') = \(did ?? "")
        """
    }

    static func countStart(pid: String, at now: Int64) -> SQL {
        """
        UPDATE signing_invites SET starts = starts + 1
        WHERE pid = \(pid) AND state = 'OPEN' AND starts < \(SigningInviteRecord.starts) AND expires_at > \(now)
        """
    }

    /// Makes an enrolment unless the device key has one with this invite.
    static func start(_ new: SigningEnrolmentRecord, issuer: String, at now: Int64) -> SQL {
        """
        INSERT INTO signing_enrolments
            (did, iss, pid, device_kid, device_jwk, state, request_hash, offer, info, created_at, expires_at)
        VALUES (\(new.did), \(issuer), \(new.pid), \(new.deviceKeyID), \(new.deviceJWK), 'STARTED',
            \(new.requestHash), \(new.offer), \(new.info), \(now), \(new.expiresAt))
        ON CONFLICT DO NOTHING
        """
    }

    /// Another offer for a device that has asked again: what it will commit to is the last one.
    static func restart(_ new: SigningEnrolmentRecord, at now: Int64) -> SQL {
        """
        UPDATE signing_enrolments SET request_hash = \(new.requestHash), offer = \(new.offer), info = \(new.info)
        WHERE did = \(new.did) AND state = 'STARTED' AND expires_at > \(now)
        """
    }

    static func commitInvite(pid: String, did: String, at now: Int64) -> SQL {
        """
        UPDATE signing_invites SET committed = \(did)
        WHERE pid = \(pid) AND committed IS NULL AND state = 'OPEN' AND expires_at > \(now)
        """
    }

    static func commit(did: String, commitment: String, nonce: String) -> SQL {
        """
        UPDATE signing_enrolments SET state = 'COMMITTED', commitment = \(commitment), nonce_s = \(nonce)
        WHERE did = \(did) AND state = 'STARTED'
        """
    }

    /// Ends an invite, whatever came of it, unless its container is already active.
    static func voidInvite(pid: String) -> SQL {
        "UPDATE signing_invites SET state = 'VOID', digits = NULL WHERE pid = \(pid) AND state <> 'VOID'"
    }

    static func voidEnrolments(pid: String) -> SQL {
        """
        UPDATE signing_enrolments SET state = 'VOID'
        WHERE pid = \(pid) AND state IN ('STARTED', 'COMMITTED')
        """
    }

    static func useInvite(pid: String, did: String, digits: String?, at now: Int64) -> SQL {
        """
        UPDATE signing_invites SET state = 'USED', digits = \(digits)
        WHERE pid = \(pid) AND committed = \(did) AND state = 'OPEN'
            AND expires_at + \(SigningInviteRecord.completion) > \(now)
        """
    }

    static func complete(did: String) -> SQL {
        "UPDATE signing_enrolments SET state = 'COMPLETED' WHERE did = \(did) AND state = 'COMMITTED'"
    }

    /// Counts one entry of digits and gives what they must be: committed before they are compared, so that no two
    /// entries are counted as one.
    static func countDigits(pid: String, issuer: String, at now: Int64) -> SQL {
        """
        UPDATE signing_invites SET tries = tries + 1
        WHERE pid = \(pid) AND iss = \(issuer) AND state = 'USED' AND digits IS NOT NULL
            AND tries < \(SigningInviteRecord.tries) AND expires_at + \(SigningInviteRecord.completion) > \(now)
        RETURNING digits, tries, committed
        """
    }

    static func forgetDigits(pid: String) -> SQL {
        "UPDATE signing_invites SET digits = NULL WHERE pid = \(pid) AND state = 'USED'"
    }
}
