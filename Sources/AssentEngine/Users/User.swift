package import AssentCore
package import AssentOTP
package import AssentStore

/// Somebody who can sign in.
package struct User: Sendable, Hashable {
    /// An id that never changes.
    package let id: String

    /// The realm, for example `/alpha`.
    package let realm: String

    /// The name to sign in with; unique in the realm.
    package let username: String

    /// Whether they may sign in and their sessions count.
    package let isActive: Bool

    /// What they may do on the server itself.
    package let roles: Set<Role>

    /// Further attributes, for example `mail`.
    package let attributes: JSONObject

    /// How often what they had has ended: by a lock, another password, another second factor. What was begun under an
    /// earlier number is not valid.
    let epoch: Int64

    /// Whether somebody may be given that name. Universal ids, paths and patterns must be able to carry it.
    package static func isAllowedName(_ name: String) -> Bool {
        (1...100).contains(name.utf8.count) && name != "." && name != ".."
            && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !refusedInNames.contains($0) }
    }

    private static let refusedInNames = Set(#",=/\*?#%"#.utf8)

    /// What ``isAllowedName(_:)`` asks for, in words.
    package static let nameRule =
        #"a username has 1 to 100 printable ASCII characters, none of , = / \ * ? # %, and is not . or .."#

    /// The name that AM's clients know as `universalId`.
    package var universalID: String { Self.universalID(username: username, realm: realm) }

    /// The `universalId` of a user of a realm.
    package static func universalID(username: String, realm: String) -> String {
        "id=\(username),ou=user,o=\(realm == "/" ? "root" : String(realm.dropFirst()))"
    }
}

/// What a user may do on the server itself.
package enum Role: String, Sendable, Hashable, CaseIterable {
    /// Everything.
    case admin
    /// Read the audit log.
    case auditor
    /// Ask for policy decisions about others: a gateway.
    case pep
}

/// The users in the store. Passwords and second factors are in folders of their own.
package struct Users: Sendable {
    private let context: EngineContext

    /// The users of a context's database.
    package init(_ context: EngineContext) {
        self.context = context
    }

    /// The user of that name in a realm, or `nil`.
    package func find(username: String, realm: String) async throws -> User? {
        try await context.database.run(
            .read("SELECT * FROM users WHERE realm = \(realm) AND username = \(username)")
        ).first.map(User.init)
    }

    /// A user of the realm whose name is the same when upper and lower case do not count, or `nil`. Names are ASCII.
    package func findIgnoringCase(username: String, realm: String) async throws -> User? {
        try await context.database.run(
            .read("SELECT * FROM users WHERE realm = \(realm) AND lower(username) = \(username.lowercased())")
        ).first.map(User.init)
    }

    /// The user with that id, or `nil`.
    package func find(id: String) async throws -> User? {
        try await context.database.run(.read("SELECT * FROM users WHERE id = \(id)")).first.map(User.init)
    }

    /// Makes a user if the realm has none of that name; `nil` when it has. The `passwordHash` is what `Passwords` made,
    /// or `nil` for a user without a password.
    package func create(
        username: String, realm: String, passwordHash: String?, roles: Set<Role> = [],
        attributes: JSONObject = JSONObject(), secondFactor: TOTP? = nil
    ) async throws -> User? {
        let statements = try creating(
            username: username, realm: realm, passwordHash: passwordHash, roles: roles, attributes: attributes,
            secondFactor: secondFactor)
        do {
            return try await context.database.run(statements).first?.first.map(User.init)
        } catch let error as StoreError where error.code == .unexpectedCount {
            return nil
        }
    }

    /// The statements that make a user together with the second factor, to be run as one transaction: a user who must
    /// have one is never there without it. They fail with `unexpectedCount` when the realm has a user of that name,
    /// also in other case.
    package func creating(
        username: String, realm: String, passwordHash: String?, roles: Set<Role>, attributes: JSONObject,
        secondFactor: TOTP?
    ) throws -> [SQLStatement] {
        let id = context.random.uuid()
        let user = SQLStatement(
            """
            INSERT INTO users (id, realm, username, password_hash, active, roles, attributes, created_at)
            SELECT \(id), \(realm), \(username), \(passwordHash), 1,
                \(roles.map(\.rawValue).sorted().joined(separator: " ")), \(JSONValue.object(attributes).serialized()),
                \(context.clock.epochSeconds)
            WHERE NOT EXISTS
                (SELECT 1 FROM users WHERE realm = \(realm) AND lower(username) = \(username.lowercased()))
            ON CONFLICT (realm, username) DO NOTHING RETURNING *
            """, expecting: .exactly(1))
        guard let secondFactor else { return [user] }
        return [user, try OneTimePasswords(context).enrolling(secondFactor, userID: id)]
    }

    /// Lets a user in again, or shuts them out: their sessions no longer count from that moment.
    package func setActive(_ active: Bool, userID: String) async throws {
        _ = try await context.database.run(
            SQLStatement(
                "UPDATE users SET active = \(active) WHERE id = \(userID)", expecting: .exactly(1))
        )
    }

    /// The stored password hash, or `nil` when the user has none or does not exist.
    package func passwordHash(userID: String) async throws -> String? {
        try await context.database.run(.read("SELECT password_hash FROM users WHERE id = \(userID)"))
            .first?.optionalText("password_hash")
    }

    /// Stores another hash of the same password, unless the stored one is no longer `old`.
    func replacePasswordHash(_ old: String, with new: String, userID: String) async throws {
        _ = try await context.database.run(
            SQLStatement(
                "UPDATE users SET password_hash = \(new) WHERE id = \(userID) AND password_hash = \(old)"))
    }

    /// What the stored passwords cost: usually one cost, more after the configured one was changed.
    func passwordCosts() async throws -> Set<PasswordHash.Cost> {
        // The longest beginning with a readable cost has 23 characters; of the salt as few as can be, for few rows.
        let rows = try await context.database.run(
            .read("SELECT DISTINCT substr(password_hash, 1, 23) AS start FROM users WHERE password_hash IS NOT NULL"))
        return Set(try rows.compactMap { PasswordHash.Cost(startOf: try $0.text("start")) })
    }
}

extension User {
    init(_ row: SQLRow) throws { try self.init(row, id: row.text("id")) }

    /// A user from ``UserSQL/columns``.
    init(_ row: SQLRow, id: String) throws {
        self.init(
            id: id, realm: try row.text("realm"), username: try row.text("username"),
            isActive: try row.bool("active"),
            roles: Set(try row.text("roles").split(separator: " ").compactMap { Role(rawValue: String($0)) }),
            attributes: try JSONValue.parse(row.text("attributes")).object ?? JSONObject(),
            epoch: try row.integer("epoch"))
    }
}
