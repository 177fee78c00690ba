import AssentCore
import AssentSigningProtocol
import AssentStore

enum LoginSQL {
    /// What a login is judged by, in this order: the container, its keys, its password slots, its user and, where the
    /// login names one, the evaluation. They decide nothing: what spends a login has its conditions again.
    static func judging(
        _ login: LoginAssertion, by kid: KeyThumbprint, issuer: String, at now: Int64
    ) -> [SQL] {
        let did = login.did
        var queries: [SQL] = [
            ContainerSQL.container(did, issuer: issuer), ContainerSQL.keys(of: did), SlotSQL.slots(of: did),
            """
            SELECT * FROM users
            WHERE id = (SELECT c.user_id FROM signing_containers c WHERE c.did = \(did) AND c.iss = \(issuer))
            """,
        ]
        if let unl = login.unl { queries.append(DecisionSQL.confirmed(unl, slotOf: kid, of: did, at: now)) }
        return queries
    }

    /// Locks the container, if it may sign its user in at this installation.
    static func use(container did: SigningID, of instance: String, at now: Int64) -> SQL {
        """
        UPDATE signing_containers SET seen_at = \(now)
        WHERE did = \(did) AND state = \(ContainerState.active) AND expires_at > \(now) AND instance_id = \(instance)
        """
    }

    /// Uses a key, unless a PIN of its container was destroyed or, in an implicit login, is locked by somebody or by a
    /// restore; or its user is locked. It comes after the container's lock, so that it sees what somebody did who had
    /// that lock before.
    static func use(key kid: KeyThumbprint, of did: SigningID, isImplicit: Bool, at now: Int64) -> SQL {
        let isUnusable: SQL = isImplicit ? "(s.sealed_k IS NULL OR s.held = 1)" : "s.sealed_k IS NULL"
        return DecisionSQL.use(
            key: kid, of: did,
            when: """
                NOT EXISTS (SELECT 1 FROM signing_slots s WHERE s.did = \(did) AND \(isUnusable))
                AND EXISTS (SELECT 1 FROM signing_containers c JOIN users u ON u.id = c.user_id
                    WHERE c.did = \(did) AND u.active = 1)
                """, at: now)
    }

    /// Ends the sessions that a container's logins have made, and with them their grants.
    static func endSessions(of did: SigningID) -> SQL { "DELETE FROM sessions WHERE did = \(did.text)" }

    /// How many containers of an installation have not ended. `instance` is a column with its client id.
    static func containers(ofEach instance: SQL) -> SQL {
        """
        (SELECT count(*) FROM signing_containers c
            WHERE c.instance_id = \(instance) AND c.state NOT IN (\(ContainerState.ended)))
        """
    }

    /// Ends the containers of an installation, as their users would one by one: first these, then what hangs on them.
    /// Each of them is written down by `record`.
    static func endContainers(
        of instance: String, at now: Int64, noting record: AuditRecord, in audit: AuditLog
    ) -> [SQLStatement] {
        let own: SQL = "(SELECT c.did FROM signing_containers c WHERE c.instance_id = \(instance))"
        let before: [SQL] = [
            """
            UPDATE signing_invites SET state = 'VOID', digits = NULL
            WHERE instance_id = \(instance) AND state IN ('OPEN', 'USED')
            """,
            """
            UPDATE signing_enrolments SET state = 'VOID' WHERE state IN ('STARTED', 'COMMITTED')
                AND pid IN (SELECT i.pid FROM signing_invites i WHERE i.instance_id = \(instance))
            """,
            // Who ends one of them by itself waits, or has written its end down already.
            "UPDATE signing_containers SET seen_at = seen_at WHERE instance_id = \(instance)",
        ]
        let notes = audit.statement(
            record, forEachContainer: "c.instance_id = \(instance) AND c.state NOT IN (\(ContainerState.ended))")
        let after: [SQL] = [
            """
            UPDATE signing_containers SET state = \(ContainerState.revoked), number = NULL, ended_at = \(now)
            WHERE instance_id = \(instance) AND state NOT IN (\(ContainerState.ended))
            """,
            "DELETE FROM sessions WHERE did IN \(own)",
            """
            UPDATE signing_keys SET state = \(SigningKeyState.retired)
            WHERE state = \(SigningKeyState.active) AND did IN \(own)
            """,
            "UPDATE signing_slots SET sealed_k = NULL, pending_k = NULL WHERE did IN \(own)",
            "DELETE FROM signing_otp_keys WHERE did IN \(own)",
        ]
        return before.map { SQLStatement($0) } + [notes] + after.map { SQLStatement($0) }
    }
}
