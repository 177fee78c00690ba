package import AssentCore
import AssentStore
import Foundation

/// What administrators and auditors may do, each act with its audit record.
///
/// The first administrator is made by a one-time token that only someone who can read the server's data directory has.
package struct Administration: Sendable {
    let context: EngineContext
    let audit: AuditLog

    /// The realm whose roles are also about what all realms share; `nil` when those of each realm are.
    private let sharingRealm: String?

    /// The administration of a context's database.
    ///
    /// - Parameters:
    ///   - context: the engine's.
    ///   - sharingRealm: the realm whose administrators change keys that all realms share, and whose administrators and
    ///     auditors read the audit records of all; `nil` for each realm.
    package init(_ context: EngineContext, sharingRealm: String? = nil) {
        self.context = context
        self.sharingRealm = sharingRealm
        audit = AuditLog(context)
    }

    /// The bootstrap token, while nobody is an administrator; `nil` once somebody is. It is the same on all servers of
    /// the database and at each start: of several, an operator could not tell which one is valid.
    package func bootstrapToken() async throws -> Secret? {
        guard try await administrators().isEmpty else { return nil }
        let token = Secret(context.random.token())
        let sealed = try context.masterKey.seal(token, for: .bootstrapToken, context: "")
        let results = try await context.database.run([
            SQLStatement(
                """
                INSERT INTO bootstrap_tokens (hash, sealed_token, created_at)
                VALUES (\(TokenHash.of(token)), \(sealed), \(context.clock.epochSeconds)) ON CONFLICT DO NOTHING
                """),
            .read("SELECT sealed_token FROM bootstrap_tokens WHERE used_at IS NULL"),
        ])
        guard let row = results.last?.first else { return nil }
        return try context.masterKey.open(try row.blob("sealed_token"), for: .bootstrapToken, context: "")
    }

    /// Makes the session's user an administrator, if nobody is one yet. The token is spent by that.
    ///
    /// Throws ``EngineError`` `forbidden` for a token that is not valid.
    package func bootstrap(_ token: Secret, session: LiveSession) async throws {
        let roles = Self.text(session.user.roles.union([.admin]))
        do {
            _ = try await context.database.run([
                SQLStatement(
                    """
                    UPDATE bootstrap_tokens SET used_at = \(context.clock.epochSeconds), used_by = \(session.user.id)
                    WHERE hash = \(TokenHash.of(token)) AND used_at IS NULL
                        AND NOT EXISTS (SELECT 1 FROM users WHERE \(UserSQL.isAdministrator("users")))
                    """,
                    expecting: .exactly(1)),
                SQLStatement(
                    "UPDATE users SET roles = \(roles) WHERE id = \(session.user.id) AND active = 1",
                    expecting: .exactly(1)),
                audit.statement(record(.adminBootstrap, by: session, about: session.user)),
            ])
        } catch let error as StoreError where error.code == .unexpectedCount {
            let _: Void = try await refuse(.adminBootstrap, by: session, reason: "token")
        }
    }

    /// Gives a user of the administrator's realm exactly these roles.
    ///
    /// Throws ``EngineError``: `forbidden` without the role `admin`, `notFound` for an unknown user,
    /// `lastAdministrator`.
    package func setRoles(_ roles: Set<Role>, of username: String, by session: LiveSession) async throws {
        let user = try await subject(username, of: .adminRoles, by: session)
        let text = Self.text(roles)
        try await change(
            .adminRoles, user: user, by: session, detail: ["roles": .string(text)],
            to: "roles = \(text)", keepsAdministrator: roles.contains(.admin))
    }

    /// Lets a user of the administrator's realm in again and forgets their wrong passwords and codes, or shuts them
    /// out: their sessions, their grants and the sign-ins that have begun end, and stay ended when the user is let in
    /// again.
    ///
    /// Throws ``EngineError``: `forbidden` without the role `admin`, `notFound` for an unknown user,
    /// `lastAdministrator`.
    package func setActive(_ active: Bool, of username: String, by session: LiveSession) async throws {
        let user = try await subject(username, of: .adminActive, by: session)
        try await change(
            .adminActive, user: user, by: session, detail: ["active": .bool(active)],
            to: "active = \(active)", keepsAdministrator: active,
            beside: active ? AttemptCounter.forgetting(user) : ending(user, because: .adminActive))
    }

    /// Makes new signing keys for these purposes; with `discardingOld`, what the old ones have signed stops counting at
    /// once.
    ///
    /// Throws ``EngineError`` `forbidden` without the role `admin` in the realm that changes what all realms share.
    package func rotate(
        _ purposes: [ServerKeys.Purpose], of keys: ServerKeys, discardingOld: Bool, by session: LiveSession
    ) async throws {
        let event = AuditEvent.adminKeys
        try await demandSharedAdministrator(event, session)
        try await context.translatingStoreErrors {
            for purpose in purposes {
                var record = record(event, by: session, about: nil)
                record.detail["purpose"] = .string(purpose.rawValue)
                record.detail["discardOld"] = .bool(discardingOld)
                let isFirst = try await keys.rotate(
                    purpose, discardingOld: discardingOld, accompanying: [audit.statement(record)])
                if !isFirst {
                    record.reason = "alreadyRotated"
                    try await audit.write(record)
                }
            }
        }
    }

    /// Audit records: of all realms for the realm that changes what they share, else of the session's realm. That
    /// somebody has looked is a record too, unless they have seen nothing but that they looked.
    ///
    /// Throws ``EngineError`` `forbidden` without the role `auditor` or `admin`.
    package func auditRecords(_ query: AuditQuery, by session: LiveSession) async throws -> [AuditRecord] {
        guard !session.user.roles.isDisjoint(with: [.auditor, .admin]) else {
            return try await refuse(.auditRead, by: session, reason: "role")
        }
        try await audit.number()
        let records = try await audit.records(query, ofRealm: isShared(session) ? nil : session.realm)
        let isLook = { (record: AuditRecord) in
            record.event == .auditRead && record.sessionAuditID == session.auditID && record.outcome == .success
        }
        if case .after = query, records.allSatisfy(isLook) { return records }
        try await audit.write(self.record(.auditRead, by: session, about: nil))
        return records
    }

    /// The statements that end all sessions and grants of a user, and with the new epoch those that begin at this
    /// moment and the sign-ins that have begun.
    func ending(_ user: User, because event: AuditEvent) -> [SQLStatement] {
        [
            SQLStatement("UPDATE users SET epoch = epoch + 1 WHERE id = \(user.id)", expecting: .exactly(1)),
            SQLStatement("DELETE FROM sessions WHERE user_id = \(user.id)"),
            SQLStatement(
                """
                UPDATE grants SET revoked_at = \(context.clock.epochSeconds), revoked_because = \(event.rawValue)
                WHERE user_id = \(user.id) AND revoked_at IS NULL
                """),
        ]
    }

    /// Whether the roles of the session's realm are also about what all realms share.
    private func isShared(_ session: LiveSession) -> Bool {
        sharingRealm.map { $0 == session.realm } ?? true
    }

    /// Refuses everybody but an administrator whose realm changes what all realms share.
    func demandSharedAdministrator(_ event: AuditEvent, _ session: LiveSession) async throws {
        guard session.user.roles.contains(.admin) else { return try await refuse(event, by: session, reason: "role") }
        guard isShared(session) else { return try await refuse(event, by: session, reason: "realm") }
    }

    private func administrators() async throws -> [SQLRow] {
        try await context.database.run(.read("SELECT id FROM users WHERE \(UserSQL.isAdministrator("users"))"))
    }

    func subject(_ username: String, of event: AuditEvent, by session: LiveSession) async throws -> User {
        guard session.user.roles.contains(.admin) else { return try await refuse(event, by: session, reason: "role") }
        guard let user = try await Users(context).find(username: username, realm: session.realm) else {
            throw EngineError(.notFound, "The realm has no user of that name.")
        }
        return user
    }

    private func change(
        _ event: AuditEvent, user: User, by session: LiveSession, detail: JSONObject, to assignment: SQL,
        keepsAdministrator: Bool, beside others: [SQLStatement] = []
    ) async throws {
        var record = record(event, by: session, about: user)
        for member in detail.members { record.detail[member.name] = member.value }
        let isAllowed: SQL = keepsAdministrator ? "1 = 1" : UserSQL.leavesAdministrator(without: user.id)
        let hold = keepsAdministrator ? [] : [SQLStatement(UserSQL.holdAdministrators)]
        do {
            _ = try await context.database.run(
                hold + [
                    SQLStatement(
                        "UPDATE users SET \(assignment) WHERE id = \(user.id) AND \(isAllowed)", expecting: .exactly(1))
                ] + others + [audit.statement(record)])
        } catch let error as StoreError where error.code == .unexpectedCount {
            record.outcome = .refused
            record.reason = "lastAdministrator"
            try await audit.write(record)
            throw EngineError(.lastAdministrator)
        }
    }

    func refuse<Nothing>(_ event: AuditEvent, by session: LiveSession, reason: String) async throws -> Nothing {
        var record = record(event, by: session, about: nil)
        record.outcome = .refused
        record.reason = reason
        try await audit.write(record)
        throw EngineError.forbidden
    }

    func record(_ event: AuditEvent, by session: LiveSession, about user: User?) -> AuditRecord {
        var detail = JSONObject()
        if let user { detail["about"] = .string(user.id) }
        return AuditRecord(
            event, .success, realm: session.realm, userID: session.user.id, sessionAuditID: session.auditID,
            detail: detail)
    }

    static func text(_ roles: Set<Role>) -> String { roles.map(\.rawValue).sorted().joined(separator: " ") }
}
