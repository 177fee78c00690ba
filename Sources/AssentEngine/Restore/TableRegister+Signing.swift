import AssentCore
import AssentStore

extension TableRegister {
    /// What users sign, and what they have signed.
    static let signing = [
        RegisteredTable(
            "signing_transactions", .kept("evidence"),
            fence: [
                .set(
                    .signingTransactions, { _ in "state = 'FAILED', reason = 'restored'" },
                    where: { _ in "state = 'PENDING'" }),
                .set(
                    .signingApprovals, { _ in "taken_by = 'restored'" },
                    where: { _ in "state = 'APPROVED' AND policy_transaction IS NOT NULL AND taken_by IS NULL" }),
            ]),
        RegisteredTable("signing_documents", .kept("evidence"), remark: evidence),
        RegisteredTable("signing_decisions", .kept("evidence"), remark: evidence),
        RegisteredTable("signing_records", .kept("evidence"), remark: evidence),
        RegisteredTable(
            "signing_proofs", .purged,
            // Proofs that were used since are not here. Those with a nonce that may be from before now are refused.
            fence: [.prepared(.nonces) { [SigningNonces.refusingEarlier(at: $0.clock.epochSeconds)] }]),
        RegisteredTable(
            "signing_identities", .kept("devices follow them"),
            remark: "Rotations since are lost: devices that followed one refuse this server until they enrol again."),
        RegisteredTable(
            "signing_online_keys", .kept("they verify evidence"),
            remark: "Keys withdrawn since are valid again: withdraw them again."),
        RegisteredTable("signing_certificates", .kept("they verify evidence"), remark: evidence),
        RegisteredTable(
            "signing_notices", .purged, remark: "A device hears again what it has heard, by the same id."),
    ]

    private static let evidence = "It is written once and proves what was; nothing is done by it."

    /// Devices on their way, and their PINs. The order matters: an invite is judged by what it has led to.
    static let signingDevices = [
        RegisteredTable(
            "signing_invites", .purged,
            fence: [
                // One by which a container is active, or has its new keys, has ended already.
                .set(
                    .invites, { _ in "state = 'VOID', digits = NULL" },
                    where: { _ in
                        """
                        state = 'OPEN' OR (state = 'USED' AND (
                            EXISTS (SELECT 1 FROM signing_containers c
                                WHERE c.pid = signing_invites.pid AND c.state = 'UNCONFIRMED')
                            OR EXISTS (SELECT 1 FROM signing_renewals r
                                WHERE r.invite = signing_invites.pid AND r.state = 'COMPLETED')))
                        """
                    })
            ]),
        RegisteredTable(
            "signing_enrolments", .follows("signing_invites"),
            fence: [
                .set(.enrolments, { _ in "state = 'VOID'" }, where: { _ in "state IN ('STARTED', 'COMMITTED')" })
            ]),
        RegisteredTable(
            "signing_containers", .kept("evidence"),
            fence: [
                .set(
                    .enrolments, { now in "state = 'VOID', number = NULL, ended_at = \(now)" },
                    where: { _ in "state = 'UNCONFIRMED'" })
            ],
            remark: """
                Devices revoked or blocked since are active again: revoke them again. Implicit logins of those with a \
                PIN wait until their user unlocks it; of those without one they work at once.
                """),
        RegisteredTable(
            "signing_renewals", .purged,
            fence: [
                .set(
                    .enrolments, { _ in "state = 'VOID'" },
                    where: { _ in "state IN ('STARTED', 'COMMITTED', 'COMPLETED')" })
            ]),
        RegisteredTable(
            "signing_offered_slots", .purged,
            // All of them belong to enrolments and renewals that have just ended.
            fence: [.delete(nil)]),
        RegisteredTable(
            "signing_keys", .purged,
            fence: [.delete(nil, where: { _ in "state = 'PENDING' OR \(ended("signing_keys"))" })]),
        RegisteredTable(
            "signing_slots", .kept("they end with their container"),
            // Tries since are not counted here: the PIN is locked until its user signs in, and implicit logins with it.
            fence: [
                .set(.slots, { _ in "held = 1" }, where: { _ in "held = 0" }),
                // A confirmation of an evaluation that was lost would forgive a guess that has its number now.
                .set(
                    nil, { now in "restored_at = \(now + NodeClocks.difference)" },
                    where: { _ in "1 = 1" }),
            ]),
        RegisteredTable(
            "signing_confirms", .kept("a confirmation that comes again must find that it came"),
            fence: [.set(.evaluations, { _ in "taken_by = 'restored'" }, where: { _ in "taken_by IS NULL" })]),
        RegisteredTable(
            "signing_otp_keys", .purged,
            fence: [
                .delete(nil, where: { _ in ended("signing_otp_keys") }),
                .prepared(.deviceCodes) { try await SigningOneTimeKeys.fence($0) },
            ]),
    ]

    /// That the container of a row has ended.
    private static func ended(_ table: String) -> SQL {
        """
        EXISTS (SELECT 1 FROM signing_containers c
            WHERE c.did = \(SQL(verbatim: table)).did AND c.state = 'VOID')
        """
    }
}
