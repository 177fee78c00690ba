import AssentCore
import AssentSigningProtocol
import AssentStore

extension SigningSQL {
    /// Seconds for which a notice waits for its device.
    private static let noticeLifetime: Int64 = 90 * 86400

    /// A notice for each other active device of the user, in the transaction of what it tells.
    static func tell(
        _ event: DeviceEvent, about did: String, id: SigningID, when condition: SQL = "1 = 1", at now: Int64
    ) -> SQL {
        """
        INSERT INTO signing_notices (id, did, event, about, name, at, expires_at)
        SELECT \(id.text), c.did, \(event.rawValue), a.did, a.name, \(now), \(now + noticeLifetime)
        FROM signing_containers a
        JOIN signing_containers c ON c.iss = a.iss AND c.user_id = a.user_id AND c.did <> a.did
        WHERE a.did = \(did) AND c.state = 'ACTIVE' AND \(condition)
        """
    }
}

extension SigningStore {
    /// The statement that tells a user's other devices.
    func telling(
        _ event: DeviceEvent, about did: String, when condition: SQL = "1 = 1", at now: Int64
    ) -> SQLStatement {
        SQLStatement(
            SigningSQL.tell(event, about: did, id: SigningID(random: context.random), when: condition, at: now))
    }

    /// What a device has not said that it knows, the oldest first.
    func notices(for did: String) async throws -> [Notice] {
        let rows = try await context.database.run(
            .read(
                """
                SELECT * FROM signing_notices WHERE did = \(did) ORDER BY at, id LIMIT \(Notice.limit)
                """))
        return try rows.compactMap { row in
            guard let id = SigningID(text: try row.text("id")), let about = SigningID(text: try row.text("about")),
                let event = DeviceEvent(rawValue: try row.text("event"))
            else { throw StoreError(.corrupt, "unknown notice") }
            return Notice(id: id, at: Int(try row.integer("at")), event: event, did: about, name: try row.text("name"))
        }
    }

    /// Forgets notices that a device has got.
    func forget(notices: [SigningID], for did: String) async throws {
        let list = notices.reduce("''" as SQL) { "\($0), \($1.text)" }
        _ = try await context.database.run(
            SQLStatement("DELETE FROM signing_notices WHERE did = \(did) AND id IN (\(list))"))
    }
}
