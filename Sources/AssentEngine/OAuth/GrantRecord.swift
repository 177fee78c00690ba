import AssentCore
import AssentStore

/// A grant as it is in the store, with its resource owner.
struct GrantRecord: Sendable {
    let id: String
    let clientID: String
    /// `nil` for a grant of the client itself (RFC 6749 §4.4).
    let owner: ResourceOwner?
    let scopes: [String]
    let sender: SenderBinding?
    /// Whether it was ended, by itself or with all that the user had.
    let isRevoked: Bool
    /// The class of the sign-in that it was given after (`acr`).
    let acr: String?
    /// Whether it outlives the session that it was given in.
    let isOffline: Bool
    /// Which version of its app the installation says that it is whose grant this is; `nil` for a client of the file.
    var version: String?
    /// On which platform it says that it runs.
    var platform: String?

    /// The columns of ``init(_:)``, from ``joined(_:at:)``.
    static let columns: SQL = "\(ownColumns), \(UserSQL.columns), \(LiveSession.joinedColumns)"

    /// Those of them that a grant without a user has, from ``joinedWithoutUser``.
    static let ownColumns: SQL = """
        g.id AS grant_id, g.client_id AS grant_client, g.user_id, g.session_audit_id, g.scope, g.auth_time,
        g.auth_level, g.acr, g.amr, g.sender, g.revoked_at, g.is_offline, g.epoch AS grant_epoch,
        i.app_version, i.app_platform
        """

    /// Grants of clients themselves as `g`, each with its installation as `i`, where it is one's. A condition follows
    /// behind `AND`.
    static let joinedWithoutUser: SQL =
        "grants g LEFT JOIN client_instances i ON i.id = g.instance_id WHERE g.user_id IS NULL"

    /// Grants as `g`, each with its user as `u`, its session as `s`, where there is one that is alive, and its
    /// installation as `i`, where it is one's. `source` is where `g` comes from, when it is found by something that
    /// belongs to it.
    static func joined(_ source: SQL = "grants g", at now: Int64) -> SQL {
        """
        \(source) LEFT JOIN users u ON u.id = g.user_id
            LEFT JOIN sessions s ON s.id = g.session_id AND s.user_id = g.user_id AND \(SessionSQL.isAlive(at: now))
            LEFT JOIN client_instances i ON i.id = g.instance_id
        """
    }

    /// That a grant of ``joined(_:at:)`` is valid: the same rule as ``refusal``.
    static let isValid: SQL = """
        g.revoked_at IS NULL AND \(SenderBinding.isProvable("g.sender"))
            AND (g.user_id IS NULL OR u.active = 1 AND g.epoch = u.epoch AND (g.is_offline = 1 OR s.id IS NOT NULL))
        """

    /// That a grant of ``joined(_:at:)`` does not outlive its session: the rule of ``refusalByFile(mayOutlive:)`` for a
    /// client that may not have `offline_access` any more.
    static let hasItsSession: SQL = "(g.is_offline = 0 OR s.id IS NOT NULL)"

    /// That session `s` of ``joined(_:at:)`` is of a kind that a door is open for.
    static func isAdmitted(to door: Door) -> SQL {
        let kinds = SessionKind.allCases.filter { door.admits(CallerKind($0)) }
        let isOfOne = kinds.reduce("1 = 0" as SQL) { "\($0) OR s.kind = \($1.rawValue)" }
        return "(\(isOfOne))"
    }

    init(_ row: SQLRow) throws {
        id = try row.text("grant_id")
        clientID = try row.text("grant_client")
        owner = try row.optionalText("user_id").map { try ResourceOwner(row, userID: $0) }
        scopes = try row.text("scope").split(separator: " ").map(String.init)
        sender = try row.sender()
        let isOutdated = try owner.map { try row.integer("grant_epoch") != $0.user.epoch } ?? false
        isRevoked = try isOutdated || row.optionalInteger("revoked_at") != nil
        acr = try row.optionalText("acr")
        isOffline = try row.bool("is_offline")
        version = try row.optionalText("app_version")
        platform = try row.optionalText("app_platform")
    }

    /// A grant that begins, and belongs to no key.
    init(id: String, clientID: String, owner: ResourceOwner?, scopes: [String], acr: String?, isOffline: Bool) {
        self.id = id
        self.clientID = clientID
        self.owner = owner
        self.scopes = scopes
        sender = nil
        isRevoked = false
        self.acr = acr
        self.isOffline = isOffline
    }

    /// Why no token of the grant is valid any more; `nil` while they are. A grant ends with the session that it was
    /// given in, unless it has the scope `offline_access` (OpenID Connect Core §11).
    var refusal: AccessRefusal? {
        if isRevoked { return .grantEnded }
        if case .unknown? = sender { return .keyMismatch }
        guard let owner else { return nil }
        if !owner.user.isActive { return .userInactive }
        return isOffline || owner.session != nil ? nil : .sessionEnded
    }

    /// The same where `mayOutlive` says whether the file still lets the grants of its client outlive their sessions. It
    /// is asked only about one that does.
    func refusalByFile(mayOutlive: @autoclosure () -> Bool) -> AccessRefusal? {
        if let refusal { return refusal }
        guard isOffline, owner?.session == nil, !mayOutlive() else { return nil }
        return .sessionEnded
    }
}

/// The user who has given a grant (RFC 6749 §1.1).
package struct ResourceOwner: Sendable {
    /// The user.
    package let user: User

    /// The session that the grant was given in, or the one that has replaced it in a step-up, while it is alive.
    package let session: LiveSession?

    /// The audit id of the session that the grant was given in, also when it has ended.
    package let sessionAuditID: String

    /// When the user signed in before they gave it, in seconds since 1970.
    package let authTime: Int64

    /// How strongly the user has proved who they are.
    package let authLevel: Int

    /// How the user has proved it (`amr`, RFC 8176); empty where nothing is known of it.
    package var amr: [String] = []
}

extension ResourceOwner {
    /// The user of a session, who grants something in it.
    init(of session: LiveSession) {
        self.init(
            user: session.user, session: session, sessionAuditID: session.auditID, authTime: session.createdAt,
            authLevel: session.authLevel)
    }

    fileprivate init(_ row: SQLRow, userID: String) throws {
        let user = try User(row, id: userID)
        self.user = user
        session = try row.optionalText(LiveSession.joinedPrefix + "id").map { _ in
            try LiveSession(joined: row, user: user)
        }
        sessionAuditID = try row.text("session_audit_id")
        authTime = try row.integer("auth_time")
        authLevel = Int(clamping: try row.integer("auth_level"))
        amr = AuthenticationMethods.read(try row.optionalText("amr"))
    }
}

extension OAuthProvider {
    /// The statements that end a grant and note it in the audit log. They fail as a whole when it has ended already. A
    /// session without a token ends with its grant: nothing else could use it.
    func revocation(of grant: GrantRecord, because reason: String, event: AuditEvent) -> [SQLStatement] {
        let session = grant.owner?.session.flatMap { $0.hasToken ? nil : sessions.ending(id: $0.id, mustExist: false) }
        // Sessions are locked before grants everywhere.
        return [session].compactMap(\.self) + [
            SQLStatement(
                """
                UPDATE grants SET revoked_at = \(now), revoked_because = \(reason)
                WHERE id = \(grant.id) AND revoked_at IS NULL
                """, expecting: .exactly(1)),
            // Nothing needs the sealed successors of a grant that has ended.
            SQLStatement("UPDATE refresh_tokens SET sealed_successor = NULL WHERE grant_id = \(grant.id)"),
            audit.statement(record(event, event == .oauthRevoke ? .success : .refused, reason: reason, grant)),
        ]
    }

    /// Ends a grant, so that none of its tokens is valid any more. Nothing happens, and nothing is noted, when it has
    /// ended.
    ///
    /// - Throws: ``OAuthError`` `invalid_client` when the assertion of the client that asks for it was used before;
    ///   ``StoreError``.
    func revoke(
        _ grant: GrantRecord, because reason: String, event: AuditEvent, by caller: AuthenticatedClient? = nil
    ) async throws {
        let statements = revocation(of: grant, because: reason, event: event)
        do {
            if let caller {
                try await caller.run(statements)
            } else {
                _ = try await context.database.run(statements)
            }
        } catch let error as StoreError where error.code == .unexpectedCount {
            return
        }
    }

    func record(
        _ event: AuditEvent, _ outcome: AuditRecord.Outcome, reason: String? = nil, _ grant: GrantRecord
    ) -> AuditRecord {
        AuditRecord(
            event, outcome, reason: reason, realm: configuration.realm, userID: grant.owner?.user.id,
            sessionAuditID: grant.owner?.sessionAuditID,
            detail: ["client": .string(grant.clientID), "grant": .string(grant.id)])
    }
}
