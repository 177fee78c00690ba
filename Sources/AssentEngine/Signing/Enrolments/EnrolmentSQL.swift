import AssentSigningProtocol
import AssentStore

enum EnrolmentSQL {
    private typealias Invite = SigningInviteRecord.State
    private typealias Enrolment = SigningEnrolmentRecord.State

    /// An invite that a session of an installation's key makes is that installation's, and so is what comes of it.
    /// Where several apps have the key, it belongs to no installation.
    static func createInvite(
        _ new: SigningInviteRecord, issuer: SigningIssuer, codeHash: String, key: String?
    ) -> SQL {
        """
        INSERT INTO signing_invites
            (pid, iss, user_id, username, made_by, code_hash, state, created_at, expires_at, starts, tries, did,
            instance_id)
        SELECT \(new.pid), \(issuer.name), id, \(new.username), \(new.maker), \(codeHash), \(new.state),
            \(new.createdAt), \(new.expiresAt), 0, 0, \(new.did),
            (SELECT i.id FROM client_instances i WHERE i.realm = \(issuer.realm) AND i.key_thumbprint = \(key)
                AND \(ClientInstance.isOfOneApp) ORDER BY i.created_at DESC, i.id LIMIT 1)
        FROM users WHERE id = \(new.userID) AND active = 1
        """
    }

    static func countStart(pid: SigningID, at now: Int64) -> SQL {
        """
        UPDATE signing_invites SET starts = starts + 1
        WHERE pid = \(pid) AND state = \(Invite.open) AND starts < \(SigningInviteRecord.starts) AND expires_at > \(now)
        """
    }

    /// Makes an enrolment unless the device key has one with this invite.
    static func start(_ new: SigningEnrolmentRecord, issuer: String, at now: Int64) -> SQL {
        """
        INSERT INTO signing_enrolments
            (did, iss, pid, device_kid, device_jwk, state, request_hash, offer, info, created_at, expires_at)
        VALUES (\(new.did), \(issuer), \(new.pid), \(new.deviceKeyID), \(new.deviceJWK), \(new.state),
            \(new.requestHash), \(new.offer), \(new.info), \(now), \(new.expiresAt))
        ON CONFLICT DO NOTHING
        """
    }

    /// Another offer for a device that has asked again: what it will commit to is the last one.
    static func restart(_ new: SigningEnrolmentRecord, at now: Int64) -> SQL {
        """
        UPDATE signing_enrolments SET request_hash = \(new.requestHash), offer = \(new.offer), info = \(new.info)
        WHERE did = \(new.did) AND state = \(Enrolment.started) AND expires_at > \(now)
        """
    }

    static func commitInvite(pid: SigningID, did: SigningID, at now: Int64) -> SQL {
        """
        UPDATE signing_invites SET committed = \(did)
        WHERE pid = \(pid) AND committed IS NULL AND state = \(Invite.open) AND expires_at > \(now)
        """
    }

    /// Takes the commitment to the keys of this offer, unless another one has taken its place.
    static func commit(did: SigningID, to offer: String, commitment: SigningHash, nonce: SigningNonce) -> SQL {
        """
        UPDATE signing_enrolments SET state = \(Enrolment.committed), commitment = \(commitment), nonce_s = \(nonce)
        WHERE did = \(did) AND state = \(Enrolment.started) AND offer = \(offer)
        """
    }

    /// Ends an invite, whatever came of it, unless its container is already active.
    static func voidInvite(pid: SigningID) -> SQL {
        "UPDATE signing_invites SET state = \(Invite.void), digits = NULL WHERE pid = \(pid) AND state <> \(Invite.void)"
    }

    static func voidEnrolments(pid: SigningID) -> SQL {
        """
        UPDATE signing_enrolments SET state = \(Enrolment.void)
        WHERE pid = \(pid) AND state IN (\([Enrolment.started, .committed]))
        """
    }

    static func useInvite(pid: SigningID, did: SigningID, digits: String?, at now: Int64) -> SQL {
        """
        UPDATE signing_invites SET state = \(Invite.used), digits = \(digits)
        WHERE pid = \(pid) AND committed = \(did) AND state = \(Invite.open)
            AND expires_at + \(SigningInviteRecord.completion) > \(now)
        """
    }

    static func complete(did: SigningID) -> SQL {
        "UPDATE signing_enrolments SET state = \(Enrolment.completed) WHERE did = \(did) AND state = \(Enrolment.committed)"
    }

    /// Counts one entry of digits and gives what they must be: committed before they are compared, so that no two
    /// entries are counted as one.
    static func countDigits(pid: SigningID, issuer: String, at now: Int64) -> SQL {
        """
        UPDATE signing_invites SET tries = tries + 1
        WHERE pid = \(pid) AND iss = \(issuer) AND state = \(Invite.used) AND digits IS NOT NULL
            AND tries < \(SigningInviteRecord.tries) AND expires_at + \(SigningInviteRecord.completion) > \(now)
        RETURNING digits, tries, committed
        """
    }

    static func forgetDigits(pid: SigningID) -> SQL {
        "UPDATE signing_invites SET digits = NULL WHERE pid = \(pid) AND state = \(Invite.used)"
    }
}
