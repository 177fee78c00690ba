package import AssentCore
import AssentStore

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

/// The users in the store. Passwords and second factors have their own rooms.
package struct Users: Sendable {
    private let context: EngineContext

    /// The users of a context's database.
    package init(_ context: EngineContext) {
        self.context = context
    }

    /// The user of that name in a realm, or `nil`.
    package func find(username: String, realm: String) async throws -> User? {
        try await context.database.run(
            .read("SELECT * FROM users WHERE realm = ?1 AND username = ?2", [.text(realm), .text(username)])
        ).first.map(User.init)
    }

    /// The user with that id, or `nil`.
    package func find(id: String) async throws -> User? {
        try await context.database.run(.read("SELECT * FROM users WHERE id = ?1", [.text(id)])).first.map(User.init)
    }

    /// Makes a user if the realm has none of that name; `nil` when it has. The `passwordHash` is what `Passwords` made, or
    /// `nil` for a user without a password.
    package func create(
        username: String, realm: String, passwordHash: String?, roles: Set<Role> = [],
        attributes: JSONObject = JSONObject()
    ) async throws -> User? {
        try await context.database.run(
            SQLStatement(
                """
                INSERT INTO users (id, realm, username, password_hash, active, roles, attributes, created_at)
                VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?7) ON CONFLICT (realm, username) DO NOTHING RETURNING *
                """,
                [
                    .text(context.random.uuid()), .text(realm), .text(username), SQLValue(passwordHash),
                    .text(roles.map(\.rawValue).sorted().joined(separator: " ")),
                    .text(JSONValue.object(attributes).serialized()), .integer(context.clock.epochSeconds),
                ])
        ).first.map(User.init)
    }

    /// Lets a user in again, or shuts them out: their sessions no longer count from that moment.
    package func setActive(_ active: Bool, userID: String) async throws {
        _ = try await context.database.run(
            SQLStatement(
                "UPDATE users SET active = ?1 WHERE id = ?2", [SQLValue(active), .text(userID)], expecting: .exactly(1))
        )
    }

    /// The stored password hash, or `nil` when the user has none or does not exist.
    package func passwordHash(userID: String) async throws -> String? {
        try await context.database.run(.read("SELECT password_hash FROM users WHERE id = ?1", [.text(userID)]))
            .first?.optionalText("password_hash")
    }
}

extension User {
    init(_ row: SQLRow) throws {
        self.init(
            id: try row.text("id"), realm: try row.text("realm"), username: try row.text("username"),
            isActive: try row.bool("active"),
            roles: Set(try row.text("roles").split(separator: " ").compactMap { Role(rawValue: String($0)) }),
            attributes: try JSONValue.parse(row.text("attributes")).object ?? JSONObject())
    }
}
