package import AssentCore
package import AssentJOSE
package import AssentStore

/// The server's signing keys: one for each purpose, made at the first start, sealed under the master key, rotated at
/// will.
///
/// All nodes share the keys in the store. Each keeps a copy for at most ``staleness`` seconds, so that it sees a
/// rotation on another node by then, and looks at once when a signature names a key that it does not know.
package final class ServerKeys: Sendable {
    /// What a key signs. A signature made for one purpose is not valid for another.
    package enum Purpose: String, Sendable, Hashable, CaseIterable {
        /// ID tokens.
        case idToken = "id_token"
        /// Access tokens.
        case accessToken = "access_token"
    }

    private struct Entry: Sendable {
        let purpose: Purpose
        let jwk: JWK
        let key: SoftwareSigningKey?
        let retiredAt: Int64?
    }

    private struct Snapshot: Sendable {
        let readAt: Int64
        let entries: [Entry]
    }

    /// How many seconds a node may go by its copy of the keys.
    package static let staleness: Int64 = 30

    /// How many seconds a retired key is kept beyond its time, for `id_token_hint`s that have expired.
    package static let hintRetention: Int64 = 90 * 24 * 3600

    /// What new keys sign with: ES256 or RS256.
    package let algorithm: SignatureAlgorithm

    /// How many seconds a retired key stays published: no token may count longer.
    package let retention: Int64

    private static let algorithms: Set<SignatureAlgorithm> = [.es256, .rs256]

    private let context: EngineContext
    private let snapshot = Locked<Snapshot?>(nil)

    /// The keys of a context's database.
    ///
    /// - Parameters:
    ///   - context: what the engine stands on.
    ///   - algorithm: what new keys sign with, ES256 or RS256.
    ///   - retention: how many seconds a retired key stays published.
    /// - Throws: ``EngineError`` for another algorithm.
    package init(_ context: EngineContext, algorithm: SignatureAlgorithm = .es256, retention: Int64 = 24 * 3600) throws
    {
        guard Self.algorithms.contains(algorithm) else {
            throw EngineError.internalFailure("server keys sign with ES256 or RS256, not with \(algorithm)")
        }
        self.context = context
        self.algorithm = algorithm
        self.retention = retention
    }

    /// The public keys whose signatures still count (RFC 7517 §5).
    package func published() async throws -> JWKSet {
        let now = context.clock.epochSeconds
        return JWKSet(try await current().entries.filter { counts($0, at: now) }.map(\.jwk))
    }

    /// Signs claims as a JWT whose header's `typ` is `type`, for example `at+jwt`.
    package func sign(_ claims: JSONObject, type: String, for purpose: Purpose) async throws -> Secret {
        guard let entry = active(purpose, in: try await current().entries), let key = entry.key else {
            throw EngineError.internalFailure("there is no key for \(purpose.rawValue)")
        }
        var header = JSONObject()
        header["typ"] = .string(type)
        header["kid"] = entry.jwk.keyID.map(JSONValue.string)
        return Secret(try await JWS.sign(JSONValue.object(claims).serializedBytes(), header: header, with: key))
    }

    /// The claims of a JWT that a key of this purpose has signed; `nil` for anything else. Whether the claims still
    /// count is the caller's to check. With `includesExpiredKeys`, keys count that are no longer published.
    package func claims(
        of token: Secret, type: String, for purpose: Purpose, includesExpiredKeys: Bool = false
    ) async throws -> JWTClaims? {
        try await verified(token, type: type, for: purpose, includesExpiredKeys: includesExpiredKeys)?.claims
    }

    /// Whether signatures of this key count for a purpose now, as far as this node knows.
    func counts(keyID: String, for purpose: Purpose) async throws -> Bool {
        let now = context.clock.epochSeconds
        return try await current().entries.contains {
            $0.jwk.keyID == keyID && $0.purpose == purpose && counts($0, at: now)
        }
    }

    /// As ``claims(of:type:for:includesExpiredKeys:)``, with the id of the key that has signed.
    func verified(
        _ token: Secret, type: String, for purpose: Purpose, includesExpiredKeys: Bool = false
    ) async throws -> (claims: JWTClaims, keyID: String)? {
        guard let unverified = try? UnverifiedJWS.parse(token.reveal(), limit: 16 << 10), unverified.type == type,
            let keyID = unverified.keyID
        else { return nil }
        var entries = try await current().entries
        if !entries.contains(where: { $0.jwk.keyID == keyID }) {
            entries = try await current(upTo: 1).entries
        }
        let now = context.clock.epochSeconds
        let keys = entries.filter { $0.purpose == purpose && (includesExpiredKeys || counts($0, at: now)) }.map(\.jwk)
        guard let verified = try? unverified.verified(with: JWKSet(keys), algorithms: Self.algorithms) else {
            return nil
        }
        return (try? JWTClaims(payload: verified.payload)).map { ($0, keyID) }
    }

    /// Makes a new key for a purpose. The old one signs no more and stays published until what it signed has expired.
    /// When another node rotates at the same moment, that counts for both. With `discardingOld` the old keys'
    /// signatures stop counting, on other nodes within ``staleness``: the key may be in other hands. The `accompanying`
    /// statements succeed or fail together with it. Returns whether it was this call that did it.
    @discardableResult
    package func rotate(
        _ purpose: Purpose, discardingOld: Bool = false, accompanying: [SQLStatement] = []
    ) async throws -> Bool {
        let now = context.clock.epochSeconds
        guard let old = active(purpose, in: try await read(at: now).entries)?.jwk.keyID else {
            throw EngineError.internalFailure("there is no key for \(purpose.rawValue)")
        }
        let retire = SQLStatement(
            "UPDATE server_keys SET retired_at = \(now) WHERE kid = \(old) AND retired_at IS NULL",
            expecting: .exactly(1))
        let retireOthers = SQLStatement(
            "UPDATE server_keys SET retired_at = \(now) WHERE purpose = \(purpose.rawValue) AND retired_at IS NULL")
        let discard = SQLStatement("DELETE FROM server_keys WHERE purpose = \(purpose.rawValue)")
        var isFirst = true
        do {
            _ = try await context.database.run(
                [retire, discardingOld ? discard : retireOthers, try insertion(of: purpose, at: now)] + accompanying)
        } catch let error as StoreError where error.code == .unexpectedCount && error.statement == 0 {
            guard !discardingOld else { throw EngineError.unavailable }
            isFirst = false
        }
        let fresh = try await read(at: now)
        snapshot.withLock { $0 = fresh }
        return isFirst
    }

    /// Deletes the keys whose signatures nobody can need any more. Returns how many.
    package func purge() async throws -> Int {
        try await context.database.run(
            SQLStatement(
                """
                DELETE FROM server_keys WHERE \(Self.signsTokens)
                    AND retired_at <= \(context.clock.epochSeconds - retention - Self.staleness - Self.hintRetention)
                RETURNING kid
                """)
        ).count
    }

    private static let signsTokens: SQL =
        "purpose IN (\(Purpose.idToken.rawValue), \(Purpose.accessToken.rawValue))"

    private func counts(_ entry: Entry, at now: Int64) -> Bool {
        // A node with an older copy may have signed with it for a while after it was retired.
        entry.retiredAt.map { now < $0 + retention + Self.staleness } ?? true
    }

    private func active(_ purpose: Purpose, in entries: [Entry]) -> Entry? {
        entries.first { $0.purpose == purpose && $0.retiredAt == nil && $0.key?.algorithm == algorithm }
    }

    /// The keys as they were at most `age` seconds ago.
    private func current(upTo age: Int64 = staleness) async throws -> Snapshot {
        let now = context.clock.epochSeconds
        if let known = snapshot.withLock({ $0 }), (0..<age).contains(now - known.readAt) { return known }
        var fresh = try await read(at: now)
        let missing = Purpose.allCases.filter { active($0, in: fresh.entries) == nil }
        if !missing.isEmpty {
            _ = try await context.database.run(missing.map { try insertion(of: $0, at: now) })
            fresh = try await read(at: now)
        }
        let result = fresh
        snapshot.withLock { $0 = result }
        return result
    }

    /// The statement that adds a key, unless the purpose has one (another node was first).
    private func insertion(of purpose: Purpose, at now: Int64) throws -> SQLStatement {
        let key = try SoftwareSigningKey.generate(algorithm)
        let keyID = try JWK(publicKeyInfo: key.publicKeyInfo).thumbprint
        let jwk = try JWK(publicKeyInfo: key.publicKeyInfo, keyID: keyID, algorithm: algorithm, use: "sig")
        let sealed = try context.masterKey.seal(key.privateKey, for: .serverKey, context: keyID)
        return SQLStatement(
            """
            INSERT INTO server_keys (kid, purpose, algorithm, sealed_key, public_jwk, created_at)
            VALUES (\(keyID), \(purpose.rawValue), \(algorithm.rawValue), \(sealed), \(jwk.json.serialized()), \(now))
            ON CONFLICT DO NOTHING
            """)
    }

    private func read(at now: Int64) async throws -> Snapshot {
        let rows = try await context.database.run(
            .read("SELECT * FROM server_keys WHERE \(Self.signsTokens) ORDER BY created_at DESC, kid"))
        return Snapshot(readAt: now, entries: try rows.map(entry))
    }

    private func entry(_ row: SQLRow) throws -> Entry {
        let keyID = try row.text("kid")
        let algorithm = SignatureAlgorithm(rawValue: try row.text("algorithm"))
        guard let purpose = Purpose(rawValue: try row.text("purpose")) else {
            throw StoreError(.corrupt, "unknown purpose of a server key")
        }
        let jwk = try JWK(JSONValue.parse(row.text("public_jwk")))
        let retiredAt = try row.optionalInteger("retired_at")
        guard retiredAt == nil else { return Entry(purpose: purpose, jwk: jwk, key: nil, retiredAt: retiredAt) }
        let sealed = try context.masterKey.open(try row.blob("sealed_key"), for: .serverKey, context: keyID)
        let key = try SoftwareSigningKey(algorithm: algorithm, privateKey: sealed)
        // What is published must be the key that signs: the public half in the database is not sealed.
        guard key.publicKeyInfo == jwk.publicKeyInfo, jwk.keyID == keyID else {
            throw StoreError(.corrupt, "the public half of server key \(keyID) is another key's")
        }
        return Entry(purpose: purpose, jwk: jwk, key: key, retiredAt: nil)
    }
}
