import AssentCore
import AssentStore

/// All tables, in the order in which a restored backup is fenced.
///
/// A table that is missing here is a defect: what it holds could be used a second time after a restore.
package enum TableRegister {
    /// The tables.
    package static let tables: [RegisteredTable] = people + access + approvals + signing + signingDevices + server

    private static let people = [
        RegisteredTable(
            "users", .kept("administrators remove users"),
            remark: "Passwords, roles and locks are what they were: change them again."),
        RegisteredTable(
            "totp_credentials", .kept("it belongs to its user"),
            fence: [
                // Nobody knows which codes were used since. All that any node could have taken by now are spent.
                .set(
                    .oneTimePasswords, { now in "last_step = \(latestStep(at: now))" },
                    where: { now in "last_step IS NULL OR last_step < \(latestStep(at: now))" })
            ], remark: "Seeds are what they were: renew again those that were renewed since."),
        RegisteredTable(
            "attempts", .purged, remark: "Counts of wrong passwords and codes go on from the backup, for at most a day."
        ),
        RegisteredTable(
            "bootstrap_tokens", .kept("there are few"),
            // A start makes another one while nobody is an administrator.
            fence: [.delete(.bootstrapTokens, where: { _ in "used_at IS NULL" })]),
        RegisteredTable("consents", .purged, fence: [.delete(.consents, isOptional: true)]),
        // A lock or another password since has forgotten them, and nobody here knows.
        RegisteredTable("usual_networks", .purged, fence: [.delete(.networks, isOptional: true)]),
    ]

    /// The latest time step that a node may have accepted, whose clock is ahead of the one that shows `now`.
    private static func latestStep(at now: Int64) -> SQL {
        "\(now + NodeClocks.difference) / period + \(OneTimePasswordLimits().tolerance)"
    }

    private static let access = [
        RegisteredTable(
            "client_instances", .purged,
            remark: "Instances that have ended since are back: end them again. Keys changed since are the old ones."),
        RegisteredTable(
            "registration_tokens", .purged,
            // Uses since are not counted here.
            fence: [.delete(.registrationTokens)]),
        RegisteredTable(
            "registered_apps", .kept("there is one row for each app"),
            remark: "It is the number of rows of client_instances."
        ),
        RegisteredTable("sessions", .purged, fence: [.delete(.sessions, isOptional: true)]),
        RegisteredTable(
            "grants", .purged,
            fence: [
                .set(
                    .grants, isOptional: true, { now in "revoked_at = \(now), revoked_because = 'restored'" },
                    where: { _ in "revoked_at IS NULL" })
            ]),
        RegisteredTable("oauth_codes", .follows("grants"), fence: [.delete(.codes)]),
        RegisteredTable("refresh_tokens", .purged, fence: [.delete(.refreshTokens)]),
        RegisteredTable("web_links", .purged, fence: [.delete(.webLinks)]),
        RegisteredTable("revoked_access_tokens", .purged, remark: "The grants of tokens revoked since have ended."),
        RegisteredTable(
            "client_assertions", .purged,
            // Assertions that were used since are not here. Those that may be from before now are refused.
            fence: [.prepared(nil) { [ClientAssertion.refusingEarlier(at: $0.clock.epochSeconds)] }]),
        RegisteredTable(
            "server_keys", .purged,
            // A key that was discarded since would be valid again.
            fence: [.delete(.tokenKeys, isOptional: true, where: { _ in ServerKeys.signsTokens })]),
        RegisteredTable(
            "payload_keys", .purged, remark: "Keys that were withdrawn since are back: withdraw them again."),
        RegisteredTable(
            "device_configs", .kept("there is one row for each app"),
            // Later versions may have been served. The next start takes one that is later than all of them.
            fence: [.delete(nil)]),
        RegisteredTable("journey_steps", .purged, fence: [.delete(.journeySteps)]),
    ]

    private static let approvals = [
        RegisteredTable(
            "transactions", .purged,
            fence: [
                .set(
                    .transactions, { _ in "state = 'EXPIRED'" },
                    where: { _ in "state IN ('CREATED', 'IN_PROGRESS', 'COMPLETED')" }),
                // Housekeeping then records that the outcome is unknown, and not that nothing was forwarded.
                .set(
                    .lostOutcomes, { _ in "forwarded_at = taken_at" },
                    where: { _ in
                        """
                        state = 'TAKEN' AND outcome IS NULL AND forwarded_at IS NULL
                            AND kind = \(TransactionMaker.gateway.kind)
                        """
                    }),
            ])
    ]

    private static let server = [
        RegisteredTable("nodes", .purged, fence: [.delete(nil)]),
        RegisteredTable("leases", .kept("there is one for each kind of work"), fence: [.delete(nil)]),
        RegisteredTable(
            "server_state", .kept("there is one row for each name"), remark: "Nothing in it is used once."),
        RegisteredTable(
            "audit", .kept("how long is the operator's decision"),
            remark: "Records written since are lost, and their numbers are given again."),
        RegisteredTable(
            "schema_steps", .kept("it describes the database"), remark: "A later start brings the schema up to date.",
            isCopied: false),
        // The others are in PostgreSQL only, and made by the connections.
        RegisteredTable(
            "history", .kept("there is a row for each generation"),
            remark: "Nodes compare it with what they remember, and refuse a database that lacks it.", isCopied: false),
        RegisteredTable(
            "history_marks", .kept("there is a row for each node"), remark: "As the history.", isCopied: false),
        RegisteredTable(
            "latest_commits", .kept("connections do"), remark: "Connections that have ended do not come back.",
            isCopied: false),
        RegisteredTable(
            "spent_proofs", .purged,
            // With its rows goes the one that says from when on it is complete: proofs from before need a new nonce.
            fence: [
                .prepared(nil) { context in
                    context.database.isShared ? [SQLStatement("DELETE FROM spent_proofs RETURNING id")] : []
                }
            ], isCopied: false),
        RegisteredTable(
            "payload_sessions", .purged,
            // Some may have ended since.
            fence: [
                .prepared(nil) { context in
                    context.database.isShared ? [SQLStatement("DELETE FROM payload_sessions RETURNING id")] : []
                }
            ], isCopied: false),
    ]
}
