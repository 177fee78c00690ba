import AssentCore
import AssentSigningProtocol
import AssentStore
import Logging

/// What users hear of their devices: by the notifier at once, and by their other devices when these ask.
struct SigningNotices: SigningPart {
    /// Seconds for which a notice waits for its device.
    private static let lifetime: Int64 = 90 * 86400

    let realm: SigningRealm

    /// The statement that leaves a notice for each other active device of the user, in the transaction of what it
    /// tells.
    func telling(_ event: DeviceEvent, about did: SigningID, when condition: SQL = "1 = 1", at now: Int64) -> SQL {
        """
        INSERT INTO signing_notices (id, did, event, about, name, at, expires_at, position)
        SELECT \(SigningID(random: context.random)), c.did, \(event), a.did, a.name, \(now), \(now + Self.lifetime),
            \(context.auditSeries.next(at: 1000 * context.clock.epochMilliseconds))
        FROM signing_containers a
        JOIN signing_containers c ON c.iss = a.iss AND c.user_id = a.user_id AND c.did <> a.did
        WHERE a.did = \(did) AND c.state = \(ContainerState.active) AND \(condition)
        """
    }

    /// What a device has not said that it knows, the oldest first. Of one second, what one node has told comes in its
    /// order, and what several have told in that of their clocks.
    func waiting(for did: SigningID) async throws -> [Notice] {
        try await store.all(
            "SELECT * FROM signing_notices WHERE did = \(did) ORDER BY at, position, id LIMIT \(Notice.limit)"
        ).map { row in
            Notice(
                id: try row.value("id"), at: Int(try row.integer("at")), event: try row.value("event"),
                did: try row.value("about"), name: try row.text("name"))
        }
    }

    /// Forgets notices that a device has got.
    func forget(_ notices: [SigningID], for did: SigningID) async throws {
        let list = notices.reduce("''" as SQL) { "\($0), \($1)" }
        _ = try await context.database.run(
            SQLStatement("DELETE FROM signing_notices WHERE did = \(did) AND id IN (\(list))"))
    }

    /// Tells the user what has happened to a device.
    func tell(_ event: DeviceEvent, _ container: SigningContainerRecord) async {
        await realm.notifier.notify(
            DeviceNews(
                event: event, issuer: iss, userID: container.userID, did: container.did.text, name: container.name,
                pushID: container.pushID, at: now))
    }

    /// The same if this record is what has made the device's keys count.
    func tell(_ event: DeviceEvent, _ did: SigningID, ifBy activation: SigningActivation) async throws {
        guard let container = try await devices.find(did), container.record == activation.hash else { return }
        await tell(event, container)
    }

    /// Tells the user that a transaction waits. One that is to be scanned has no user yet.
    func tell(of made: SigningTransactionRecord) async {
        guard !made.userID.isEmpty else { return }
        // Nothing but its log would use them: that saves each transaction a look-up.
        let pushIDs = realm.notifier is LogNotifier ? [] : await pushIDs(for: made)
        await realm.notifier.notify(
            TransactionNews(
                issuer: iss, userID: made.userID, txn: made.txn.text, did: made.did?.text, expiresAt: made.expiresAt,
                pushIDs: pushIDs))
    }

    /// Where push messages to the devices go that may answer: active ones whose keys have not expired. What made the
    /// transaction does not fail with this.
    private func pushIDs(for made: SigningTransactionRecord) async -> [String] {
        do {
            return try await store.all(
                """
                SELECT push_id FROM signing_containers
                WHERE iss = \(iss) AND user_id = \(made.userID) AND state = \(ContainerState.active)
                    AND expires_at > \(now) AND push_id IS NOT NULL
                    AND \(made.did.map { "did = \($0)" as SQL } ?? "1 = 1")
                ORDER BY number
                """
            ).map { try $0.text("push_id") }
        } catch {
            context.logger.warning("push addresses cannot be read", metadata: ["error": "\(error)"])
            return []
        }
    }
}
