import AssentCore
import AssentPayload
package import AssentStore
import Crypto
import Foundation

/// The server's static keys for payload encryption (docs/payload-encryption.md, "Keys"), sealed under the master key.
///
/// All nodes share the keys in the store. Each has a copy for at most ``staleness`` seconds, and looks at once when a
/// handshake names a key that it does not know.
package final class PayloadKeys: Sendable {
    /// A key as an operator sees it. Times are seconds since 1970.
    package struct Listed: Sendable, Hashable {
        package let kid: String
        /// The 32 bytes of the public half as base64url, for the configuration of clients.
        package let publicKey: String
        /// From when on handshakes take it.
        package let notBefore: Int64
        /// From when on they do not.
        package let notAfter: Int64
        package let createdAt: Int64
        /// When it was withdrawn; `nil` when it was not.
        package let withdrawnAt: Int64?

        /// Whether handshakes take it at a time.
        package func isValid(at now: Int64) -> Bool { withdrawnAt == nil && notBefore <= now && now < notAfter }
    }

    private struct Snapshot: Sendable {
        let readAt: Int64
        let keys: [(key: ServerPayloadKey, notBefore: Int64)]
    }

    /// How many seconds a node may go by its copy of the keys.
    package static let staleness: Int64 = 30

    /// How many days before its end an operator is warned.
    package static let warningDays: Int64 = 30

    /// How many days what was withdrawn stays in the list.
    private static let listedDays: Int64 = 90

    let context: EngineContext
    private let snapshot = Locked<Snapshot?>(nil)

    /// The keys in a context's database.
    package init(_ context: EngineContext) { self.context = context }

    // MARK: - For handshakes

    /// The keys that handshakes take now. They are read anew where the copy is old, or lacks the key that is named.
    ///
    /// - Throws: ``StoreError``.
    func valid(for kid: String) async throws -> [ServerPayloadKey] {
        let now = context.clock.epochSeconds
        let isFresh = { (age: Int64, limit: Int64) in (0..<limit).contains(age) }
        if let known = snapshot.withLock({ $0 }), isFresh(now - known.readAt, Self.staleness),
            known.keys.contains(where: { $0.key.kid == kid }) || isFresh(now - known.readAt, 1)
        {
            return Self.valid(known, at: now)
        }
        let fresh = try await read(at: now)
        snapshot.withLock { $0 = fresh }
        return Self.valid(fresh, at: now)
    }

    private static func valid(_ snapshot: Snapshot, at now: Int64) -> [ServerPayloadKey] {
        snapshot.keys.filter { $0.notBefore <= now }.map(\.key)
    }

    private func read(at now: Int64) async throws -> Snapshot {
        let rows = try await context.database.run(
            .read(
                """
                SELECT kid, sealed_key, not_before, not_after FROM payload_keys
                WHERE withdrawn_at IS NULL AND not_after > \(now) ORDER BY kid
                """))
        return Snapshot(readAt: now, keys: try rows.map(key))
    }

    private func key(_ row: SQLRow) throws -> (key: ServerPayloadKey, notBefore: Int64) {
        let kid = try row.text("kid")
        let secret = try context.masterKey.open(try row.blob("sealed_key"), for: .payloadKey, context: kid)
        let notAfter = Date(timeIntervalSince1970: TimeInterval(try row.integer("not_after")))
        guard
            let key = try? secret.withUnsafeBytes({ try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: $0) }),
            PayloadKey(of: key).kid == kid
        else { throw StoreError(.corrupt, "the private half of payload key \(kid) is another key's") }
        return (ServerPayloadKey(key, notAfter: notAfter), try row.integer("not_before"))
    }

    // MARK: - For operators

    /// All keys, oldest first, also those that were withdrawn in the last months.
    ///
    /// - Throws: ``StoreError``.
    package func list() async throws -> [Listed] { try Self.listed(try await context.database.run(Self.listing)) }

    /// The statement that reads all keys of a database, for ``listed(_:)``.
    package static let listing = SQLStatement.read(
        """
        SELECT kid, public_key, not_before, not_after, created_at, withdrawn_at FROM payload_keys
        ORDER BY created_at, kid
        """)

    /// The rows of ``listing``.
    ///
    /// - Throws: ``StoreError``.
    package static func listed(_ rows: [SQLRow]) throws -> [Listed] {
        try rows.map { row in
            Listed(
                kid: try row.text("kid"), publicKey: try row.text("public_key"),
                notBefore: try row.integer("not_before"), notAfter: try row.integer("not_after"),
                createdAt: try row.integer("created_at"), withdrawnAt: try row.optionalInteger("withdrawn_at"))
        }
    }

    /// Makes a key. `record` makes the audit record that succeeds or fails together with it.
    ///
    /// - Parameters:
    ///   - notBefore: from when on handshakes take it, in seconds since 1970.
    ///   - notAfter: from when on they do not.
    ///   - record: the statement beside it, from the key's id.
    /// - Returns: the key.
    /// - Throws: ``StoreError``, ``EngineError``.
    package func add(
        notBefore: Int64, notAfter: Int64, noting record: (String) -> SQLStatement
    ) async throws -> Listed {
        let now = context.clock.epochSeconds
        let key: Curve25519.KeyAgreement.PrivateKey
        do {
            key = try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: context.random.bytes(32))
        } catch {
            throw EngineError.internalFailure("a key of payload encryption could not be made")
        }
        let made = PayloadKey(of: key)
        let listed = Listed(
            kid: made.kid, publicKey: Base64URL.encode(made.bytes), notBefore: notBefore, notAfter: notAfter,
            createdAt: now, withdrawnAt: nil)
        let sealed = try context.masterKey.seal(
            Secret(bytes: key.rawRepresentation), for: .payloadKey, context: listed.kid)
        _ = try await context.database.run([
            SQLStatement(
                """
                INSERT INTO payload_keys (kid, public_key, sealed_key, not_before, not_after, created_at)
                VALUES (\(listed.kid), \(listed.publicKey), \(sealed), \(notBefore), \(notAfter), \(now))
                """, expecting: .exactly(1)),
            record(listed.kid),
        ])
        snapshot.withLock { $0 = nil }
        return listed
    }

    /// Takes a key back for good: its private half is deleted. ``PayloadSessions/end(ofKey:)`` is due then.
    ///
    /// - Returns: whether there was such a key that was not withdrawn before.
    /// - Throws: ``StoreError``.
    package func withdraw(_ kid: String, noting record: SQLStatement) async throws -> Bool {
        do {
            _ = try await context.database.run([
                SQLStatement(
                    """
                    UPDATE payload_keys SET withdrawn_at = \(context.clock.epochSeconds), sealed_key = NULL
                    WHERE kid = \(kid) AND withdrawn_at IS NULL
                    """, expecting: .exactly(1)),
                record,
            ])
        } catch let error as StoreError where error.code == .unexpectedCount {
            return false
        }
        snapshot.withLock { $0 = nil }
        return true
    }

    /// What an operator has to do about the keys, one sentence each; nothing where there are none at all.
    ///
    /// - Throws: ``StoreError``.
    package func warnings() async throws -> [String] {
        let now = context.clock.epochSeconds
        let all = try await list()
        guard !all.isEmpty else { return [] }
        let valid = all.filter { $0.isValid(at: now) }
        var warnings: [String] = []
        if valid.count < 2 {
            warnings.append(
                """
                there are \(valid.count) valid keys for payload encryption: have two, both known to clients, so that one \
                can be withdrawn ('assent admin payload-keys add')
                """)
        }
        for key in valid where key.notAfter - now < Self.warningDays * 86_400 {
            let days = (key.notAfter - now) / 86_400
            warnings.append(
                """
                the key \(key.kid) for payload encryption ends in \(days) days: add another one and give it to clients \
                before that
                """)
        }
        return warnings
    }

    /// Whether there is no key that handshakes take.
    ///
    /// - Throws: ``StoreError``.
    package var isEmpty: Bool {
        get async throws {
            try Self.isEmpty(try await context.database.run(Self.counting(at: context.clock.epochSeconds)))
        }
    }

    /// The statement for ``isEmpty(_:)``.
    package static func counting(at now: Int64) -> SQLStatement {
        .read(
            """
            SELECT count(*) AS valid FROM payload_keys
            WHERE withdrawn_at IS NULL AND not_before <= \(now) AND not_after > \(now)
            """)
    }

    /// Whether the row says that there is no key.
    ///
    /// - Throws: ``StoreError``.
    package static func isEmpty(_ rows: [SQLRow]) throws -> Bool { try rows.first?.integer("valid") ?? 0 == 0 }

    /// Deletes the keys that have ended.
    ///
    /// - Throws: ``StoreError``.
    package func purge() async throws {
        let now = context.clock.epochSeconds
        _ = try await context.database.run(
            SQLStatement(
                """
                DELETE FROM payload_keys
                WHERE not_after <= \(now - 86_400) OR withdrawn_at <= \(now - Self.listedDays * 86_400)
                """))
    }

    /// Those of some keys that were withdrawn or are gone.
    ///
    /// - Throws: ``StoreError``.
    func withdrawn(among kids: Set<String>) async throws -> Set<String> {
        guard !kids.isEmpty else { return [] }
        let rows = try await context.database.run(
            .read("SELECT kid FROM payload_keys WHERE withdrawn_at IS NULL"))
        return kids.subtracting(try rows.map { try $0.text("kid") })
    }
}
