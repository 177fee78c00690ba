package import AssentCore
package import AssentOTP
import AssentStore

/// What administrators do with the users of their realm, each act with its audit record.
package struct UserAdministration: Sendable {
    let administration: Administration
    private let passwords: Passwords
    private let rules: PasswordRequirements

    var context: EngineContext { administration.context }

    /// The users of a context's database.
    package init(
        _ administration: Administration, passwords: Passwords, rules: PasswordRequirements = PasswordRequirements()
    ) {
        self.administration = administration
        self.passwords = passwords
        self.rules = rules
    }

    /// A user who is to be made.
    package struct NewUser: Sendable {
        /// The name to sign in with.
        package var username: String
        /// The password; `nil` for somebody who signs in without one.
        package var password: Secret?
        /// What they may do on the server itself.
        package var roles: Set<Role>
        /// Further attributes, for example `mail`.
        package var attributes: JSONObject
        /// Whether they get one-time passwords.
        package var withSecondFactor: Bool

        /// A user.
        package init(
            _ username: String, password: Secret?, roles: Set<Role> = [], attributes: JSONObject = JSONObject(),
            withSecondFactor: Bool = false
        ) {
            self.username = username
            self.password = password
            self.roles = roles
            self.attributes = attributes
            self.withSecondFactor = withSecondFactor
        }
    }

    /// A user as the list shows one.
    package struct Listed: Sendable, Hashable {
        /// Who it is.
        package let user: User
        /// Whether there is a password.
        package let hasPassword: Bool
        /// Whether there are one-time passwords.
        package let hasSecondFactor: Bool
        /// When it was made, in seconds since 1970.
        package let createdAt: Int64
    }

    /// The users of the administrator's realm in the order of their names, from the one after `name`, at most `limit`
    /// (1000).
    ///
    /// Throws ``EngineError`` `forbidden` without the role `admin`.
    package func list(after name: String = "", limit: Int, by session: LiveSession) async throws -> [Listed] {
        try await demandAdministrator(.adminUsers, session)
        let users = try await context.database.run(
            .read(
                """
                SELECT u.*, CASE WHEN u.password_hash IS NULL THEN 0 ELSE 1 END AS has_password,
                    (SELECT count(*) FROM totp_credentials t WHERE t.user_id = u.id) AS second_factors
                FROM users u WHERE u.realm = \(session.realm) AND u.username > \(name)
                ORDER BY u.username LIMIT \(min(max(limit, 1), 1000))
                """)
        ).map {
            Listed(
                user: try User($0), hasPassword: try $0.integer("has_password") == 1,
                hasSecondFactor: try $0.integer("second_factors") > 0, createdAt: try $0.integer("created_at"))
        }
        try await administration.audit.write(administration.record(.adminUsers, by: session, about: nil))
        return users
    }

    /// Makes a user of the administrator's realm, together with the second factor: nobody who must have one is ever
    /// there without it. Returns the one-time passwords, which nobody can read later.
    ///
    /// Throws ``EngineError``: `forbidden` without the role `admin`, `invalidRequest` for a name or a password that is
    /// not allowed, `exists` when the realm has that name, also in other case.
    package func add(_ new: NewUser, by session: LiveSession) async throws -> TOTP? {
        let event = AuditEvent.adminCreate
        try await demandAdministrator(event, session)
        guard User.isAllowedName(new.username) else { throw EngineError.invalidRequest(User.nameRule) }
        let hash = try await hash(new.password, of: new.username)
        let totp = new.withSecondFactor ? try newSecondFactor() : nil
        var record = administration.record(event, by: session, about: nil)
        record.detail["username"] = .string(new.username)
        record.detail["roles"] = .string(Administration.text(new.roles))
        record.detail["secondFactor"] = .bool(totp != nil)
        let statements = try Users(context).creating(
            username: new.username, realm: session.realm, passwordHash: hash, roles: new.roles,
            attributes: new.attributes, secondFactor: totp)
        // The administrator's row is held, so that of two who make Ana and ana at once the second one sees the first.
        let hold = SQLStatement(UserSQL.holdAdministrators)
        do {
            _ = try await context.database.run([hold] + statements + [administration.audit.statement(record)])
        } catch let error as StoreError where error.code == .unexpectedCount {
            record.outcome = .refused
            record.reason = "exists"
            try await administration.audit.write(record)
            throw EngineError(.exists)
        }
        return totp
    }

    /// Gives a user of the administrator's realm another password; `nil` takes it away. Their sessions, all grants
    /// and the sign-ins that have begun end, and wrong passwords are forgotten.
    ///
    /// Throws ``EngineError``: `forbidden` without the role `admin`, `notFound` for an unknown user, `invalidRequest`
    /// for a password that is not allowed.
    package func setPassword(_ password: Secret?, of username: String, by session: LiveSession) async throws {
        let user = try await administration.subject(username, of: .adminPassword, by: session)
        let hash = try await hash(password, of: user.username)
        let change = SQLStatement(
            "UPDATE users SET password_hash = \(hash) WHERE id = \(user.id)", expecting: .exactly(1))
        try await replace(.adminPassword, [change], of: user, by: session)
    }

    /// Gives a user of the administrator's realm new one-time passwords instead of those they had. Their sessions,
    /// all grants and the sign-ins that have begun end, and wrong codes are forgotten. Returns what their authenticator
    /// needs; nobody can read it later.
    ///
    /// Throws ``EngineError``: `forbidden` without the role `admin`, `notFound` for an unknown user.
    package func renewSecondFactor(of username: String, by session: LiveSession) async throws -> TOTP {
        let user = try await administration.subject(username, of: .adminSecondFactor, by: session)
        let totp = try newSecondFactor()
        let change = try OneTimePasswords(context).enrolling(totp, userID: user.id)
        try await replace(.adminSecondFactor, [change], of: user, by: session)
        return totp
    }

    private func replace(
        _ event: AuditEvent, _ change: [SQLStatement], of user: User, by session: LiveSession
    ) async throws {
        let record = administration.record(event, by: session, about: user)
        _ = try await context.database.run(
            change + administration.ending(user, because: event) + AttemptCounter.forgetting(user) + [
                administration.audit.statement(record)
            ])
    }

    private func hash(_ password: Secret?, of username: String) async throws -> String? {
        guard let password else { return nil }
        if let fault = rules.fault(in: password, of: username) { throw EngineError.invalidRequest(fault) }
        return try await passwords.hash(password)
    }

    private func newSecondFactor() throws -> TOTP {
        try TOTP(secret: Secret(bytes: context.random.bytes(20)))
    }

    private func demandAdministrator(_ event: AuditEvent, _ session: LiveSession) async throws {
        guard session.user.roles.contains(.admin) else {
            return try await administration.refuse(event, by: session, reason: "role")
        }
    }
}
