import AssentSigningProtocol
import AssentCore
import AssentStore

/// What the time decides about transaction signing.
package enum SigningHousekeeping {
    private typealias Renewal = SigningRenewalRecord.State

    /// Seconds for which an invite is known after its end.
    private static let inviteRetention: Int64 = 24 * 3600

    /// Seconds for which the texts of a confirmed evaluation are kept. What a decision needs of them it has.
    private static let confirmRetention: Int64 = 24 * 3600

    /// Writes down what the time has decided: transactions that have expired, containers that never became active. No
    /// other statement relies on it. Deletes proofs and enrolments that nobody can use any more. It is for all issuers
    /// of the database.
    package static func purge(_ context: EngineContext) async throws {
        let now = context.clock.epochSeconds
        try await context.translatingStoreErrors {
            try await context.update(
                "signing_transactions", key: "txn", set: "state = \(SigningTransactionRecord.State.expired)",
                where: "state = \(SigningTransactionRecord.State.pending) AND expires_at <= \(now)")
            _ = try await context.delete(from: "signing_proofs", key: "jti", where: "expires_at <= \(now)")
            _ = try await context.delete(from: "signing_notices", key: "did, id", where: "expires_at <= \(now)")
            try await context.update(
                "signing_confirms", key: "did, slot, n", set: "eval = NULL, confirm = NULL",
                where: "eval IS NOT NULL AND evaluated_at <= \(now - confirmRetention)")
            let overdue = try await context.database.run(
                .read(
                    """
                    SELECT did, user_id FROM signing_containers
                    WHERE state = \(ContainerState.unconfirmed) AND void_at <= \(now) LIMIT 100
                    """))
            for row in overdue {
                try await end(row.value("did"), user: row.text("user_id"), context, at: now)
            }
            try await endRenewals(context, at: now)
            _ = try await context.delete(
                from: "signing_offered_slots", key: "did, pid, slot",
                where: """
                    expires_at <= \(now) AND NOT EXISTS (
                        SELECT 1 FROM signing_renewals r WHERE r.pid = signing_offered_slots.pid
                            AND r.state IN (\(RenewalSQL.underWay)))
                    """)
            _ = try await context.delete(
                from: "signing_invites", key: "pid",
                where: """
                    expires_at <= \(now - inviteRetention)
                        AND NOT EXISTS (SELECT 1 FROM signing_containers c WHERE c.pid = signing_invites.pid)
                    """)
        }
    }

    /// Voids renewals whose time is over, with their keys, and forgets them a day later.
    ///
    /// It need not be one transaction: the keys of a void renewal never count, and the next renewal of their container
    /// deletes them when it begins.
    private static func endRenewals(_ context: EngineContext, at now: Int64) async throws {
        let over = now - SigningInviteRecord.completion
        try await context.update(
            "signing_renewals", key: "pid", set: "state = \(Renewal.void)",
            where: "state IN (\(RenewalSQL.underWay)) AND expires_at <= \(over)")
        _ = try await context.delete(
            from: "signing_keys", key: "kid",
            where: """
                state = \(SigningKeyState.pending) AND NOT EXISTS (
                    SELECT 1 FROM signing_renewals r WHERE r.did = signing_keys.did AND r.state = \(Renewal.completed))
                """)
        _ = try await context.delete(
            from: "signing_renewals", key: "pid",
            where: "state IN (\([Renewal.done, .void])) AND expires_at <= \(now - inviteRetention)")
    }

    private static func end(_ did: SigningID, user: String, _ context: EngineContext, at now: Int64) async throws {
        let store = SigningStore(context, issuer: SigningIssuer(name: "", realm: ""))
        var note = store.record(.signingEnrol, .failed, reason: .enrolmentVoid, user: user, did: did)
        note.realm = nil
        _ = try await store.changes(
            [.one(ContainerSQL.void(did: did, at: now), else: .changed)]
                + ContainerSQL.clearVoid(did).map { .any($0) } + [.also(store.audit.statement(note))])
    }
}
