import AssentCore
import AssentPayload
import AssentStore
import Foundation

/// A session of payload encryption as it is in the table that nodes share.
///
/// The statements change only that table, whose rows a crash may take, and may be run twice.
struct StoredPayloadSession: Sendable {
    let id: [UInt8]
    /// The static key that it was made with.
    let kid: String
    let secrets: PayloadSecrets
    let peer: PayloadPeer
    /// The thumbprint of the key by which the installation of ``peer`` has made it; `nil` where it is of none.
    let clientKey: String?
    /// When it was made, and when it was last used as far as the table knows, in seconds since 1970.
    let begunAt: Int64
    let usedAt: Int64

    static func name(_ id: [UInt8]) -> String { Base64URL.encode(id) }

    /// Whether the installation of the row `s` is still registered with the key that has made the session, or the
    /// session is of none.
    private static let hasInstallation: SQL = """
        (s.client IS NULL OR EXISTS (
            SELECT 1 FROM client_instances i WHERE i.id = s.client AND i.key_thumbprint = s.client_key))
        """

    /// The statement that stores it, which returns a row unless its key was withdrawn, or its installation has ended or
    /// has another key.
    func insertion(_ masterKey: MasterKey) throws -> SQLStatement {
        let name = Self.name(id)
        var content = secrets.stored.revealBytes()
        peer.json.append(to: &content)
        let sealed = try masterKey.seal(Secret(bytes: content), for: .payloadSession, context: name)
        let text = peer.client == nil ? Self.insertionOfApp : Self.insertionOfDevice
        return .unlogged(
            text.with([
                .text(name), .text(kid), SQLValue(peer.client), SQLValue(clientKey), .blob(sealed),
                .integer(begunAt), .integer(usedAt),
            ]))
    }

    private static let insertionOfApp = inserting(isOfDevice: false)
    private static let insertionOfDevice = inserting(isOfDevice: true)

    /// The text of ``insertion(_:)``, which each handshake runs: it is put together once.
    private static func inserting(isOfDevice: Bool) -> SQLTemplate {
        let (name, kid, client, key): (SQLValue, SQLValue, SQLValue, SQLValue) = ("name", "kid", "client", "key")
        let (sealed, begunAt, usedAt): (SQLValue, SQLValue, SQLValue) = ("sealed", "begunAt", "usedAt")
        let isRegistered: SQL =
            isOfDevice
            ? "EXISTS (SELECT 1 FROM client_instances WHERE id = \(client) AND key_thumbprint = \(key))" : "TRUE"
        return SQLTemplate(
            """
            INSERT INTO payload_sessions (id, kid, client, client_key, sealed, begun_at, used_at)
            SELECT \(name), \(kid), \(client), \(key), \(sealed), \(begunAt), \(usedAt)
            WHERE EXISTS (SELECT 1 FROM payload_keys WHERE kid = \(kid) AND withdrawn_at IS NULL) AND \(isRegistered)
            ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at WHERE payload_sessions.sealed = excluded.sealed
            RETURNING id
            """, standIns: [name, kid, client, key, sealed, begunAt, usedAt])
    }

    /// The statement that reads one for ``init(_:_:_:)``.
    static func reading(_ id: [UInt8]) -> SQLStatement {
        .read(
            """
            SELECT s.kid, s.client_key, s.sealed, s.begun_at, s.used_at FROM payload_sessions s
            JOIN payload_keys k ON k.kid = s.kid
            WHERE s.id = \(name(id)) AND k.withdrawn_at IS NULL AND \(hasInstallation)
            """)
    }

    /// The statement that spends the number of a message once for all nodes, and returns whether that was done
    /// (`claimed`) and whether there is such a session (`known`), 1 or 0. Requests wait for each other at the row. A
    /// second run does not get the number again.
    static func spending(_ head: FrameHead) -> SQLStatement {
        .unlogged(spendingText.with([.text(name(head.session)), .text(head.number.description)]))
    }

    private static let spendingText: SQLTemplate = {
        let (session, digits): (SQLValue, SQLValue) = ("session", "digits")
        let number: SQL = "CAST(\(digits) AS NUMERIC)"
        let size = SQL(verbatim: NumberWindow.size.description)
        // Counted from the highest number, whose bit is the last one.
        let bit: SQL = "CAST(\(size) - 1 - (spent_highest - \(number)) AS INTEGER)"
        return SQLTemplate(
            """
            WITH claimed AS (
                UPDATE payload_sessions SET
                    spent = CASE WHEN \(number) > spent_highest
                        THEN set_bit(
                            spent << CAST(LEAST(\(number) - spent_highest, \(size)) AS INTEGER),
                            CAST(\(size) - 1 AS INTEGER), 1)
                        ELSE set_bit(spent, \(bit), 1) END,
                    spent_highest = GREATEST(spent_highest, \(number))
                WHERE id = \(session) AND CASE
                    WHEN \(number) > spent_highest THEN TRUE
                    WHEN spent_highest - \(number) >= \(size) THEN FALSE
                    ELSE get_bit(spent, \(bit)) = 0 END
                RETURNING id
            )
            SELECT (SELECT count(*) FROM claimed) AS claimed,
                (SELECT count(*) FROM payload_sessions WHERE id = \(session)) AS known
            """, standIns: [session, digits])
    }()

    init(
        id: [UInt8], kid: String, secrets: PayloadSecrets, peer: PayloadPeer, clientKey: String?, begunAt: Int64,
        usedAt: Int64
    ) {
        (self.id, self.kid, self.secrets, self.peer) = (id, kid, secrets, peer)
        (self.clientKey, self.begunAt, self.usedAt) = (clientKey, begunAt, usedAt)
    }

    /// - Throws: ``StoreError``, ``EngineError`` for a row that does not open.
    init(_ id: [UInt8], _ row: SQLRow, _ masterKey: MasterKey) throws {
        let opened = try masterKey.open(try row.blob("sealed"), for: .payloadSession, context: Self.name(id))
        let content = opened.withUnsafeBytes { Array($0) }
        let json = try? JSONValue.parse(Array(content.dropFirst(PayloadSecrets.storedLength)))
        let stored = Secret(bytes: content.prefix(PayloadSecrets.storedLength))
        guard let peer = json.flatMap(PayloadPeer.init(json:)),
            let secrets = try? PayloadSecrets(session: id, stored: stored)
        else { throw StoreError(.corrupt, "a session of payload encryption cannot be read") }
        self.init(
            id: id, kid: try row.text("kid"), secrets: secrets, peer: peer,
            clientKey: try row.optionalText("client_key"), begunAt: try row.integer("begun_at"),
            usedAt: try row.integer("used_at"))
    }

    /// The statement that ends the sessions of an installation, in the transaction that ends the installation or gives
    /// it another key.
    static func ending(client: String) -> SQLStatement {
        SQLStatement(
            """
            DELETE FROM payload_sessions WHERE id IN (
                SELECT id FROM payload_sessions WHERE client = \(client) ORDER BY id FOR UPDATE)
            """)
    }

    /// The statement that notes when sessions were used, in seconds since 1970 by their ids, and returns those that
    /// are gone, or whose key was withdrawn, or whose installation has ended or has another key. All who write to
    /// several rows lock them in the order of their ids, so that no two nodes wait for each other.
    static func touching(_ uses: [[UInt8]: Int64]) -> SQLStatement {
        let json = JSONValue.object(
            JSONObject(uses.map { id, usedAt in .init(name: name(id), value: .integer(usedAt)) }))
        return .unlogged(
            """
            WITH known AS (
                SELECT CAST(key AS TEXT) COLLATE "C" AS id, CAST(value AS BIGINT) AS used_at
                FROM json_each_text(CAST(\(json.serialized()) AS JSON))
            ), locked AS (
                SELECT s.id, known.used_at FROM payload_sessions s JOIN known ON known.id = s.id
                WHERE s.used_at < known.used_at ORDER BY s.id FOR UPDATE OF s
            ), touched AS (
                UPDATE payload_sessions SET used_at = locked.used_at FROM locked
                WHERE payload_sessions.id = locked.id AND payload_sessions.used_at < locked.used_at
                RETURNING payload_sessions.id
            )
            SELECT known.id FROM known WHERE NOT EXISTS (
                SELECT 1 FROM payload_sessions s JOIN payload_keys k ON k.kid = s.kid
                WHERE s.id = known.id AND k.withdrawn_at IS NULL AND \(hasInstallation))
            """)
    }
}

extension PayloadPeer {
    fileprivate var json: JSONValue {
        JSONValue(omittingNil: [
            "role": .string(role.rawValue), "origin": .string(origin), "client": client.map { .string($0) },
            "app": .string(app), "version": .string(version), "platform": .string(platform),
        ])
    }

    fileprivate convenience init?(json: JSONValue) {
        guard let role = json["role"]?.string.flatMap(Role.init(rawValue:)), let origin = json["origin"]?.string,
            let app = json["app"]?.string, let version = json["version"]?.string,
            let platform = json["platform"]?.string
        else { return nil }
        self.init(
            role: role, origin: origin, client: json["client"]?.string, app: app, version: version,
            platform: platform)
    }
}
