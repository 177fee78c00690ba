package import AssentCore
package import AssentJOSE
package import AssentStore

/// The server's signing keys: one for each purpose and algorithm, made when it is first needed, sealed under the master
/// key, rotated at will.
///
/// All nodes share the keys in the store. Each keeps a copy for at most ``staleness`` seconds, so that it sees a
/// rotation on another node by then, and looks at once when a signature names a key that it does not know, or when
/// somebody wants the keys that are published.
package final class ServerKeys: Sendable {
    /// What a key signs. A signature made for one purpose is not valid for another.
    package enum Purpose: String, Sendable, Hashable, CaseIterable {
        /// ID tokens.
        case idToken = "id_token"
        /// Access tokens.
        case accessToken = "access_token"
        /// What the gateway tells services about who calls (``ServiceIdentity``). Its key is made when it is first
        /// needed.
        case gatewayIdentity = "gateway_identity"

        /// What its keys may sign with. Tokens always have a key for the first.
        package var algorithms: [SignatureAlgorithm] { self == .gatewayIdentity ? [.es256] : [.es256, .rs256] }

        /// The purposes of the provider's tokens, whose keys it publishes.
        static let tokens: Set<Self> = [.idToken, .accessToken]
    }

    /// One key signs for it at a time.
    private struct Slot: Sendable, Hashable {
        let purpose: Purpose
        let algorithm: SignatureAlgorithm
    }

    /// A class, since each request goes through them.
    private final class Entry: Sendable {
        let purpose: Purpose
        let jwk: JWK
        let key: SoftwareSigningKey?
        let retiredAt: Int64?

        init(purpose: Purpose, jwk: JWK, key: SoftwareSigningKey?, retiredAt: Int64?) {
            self.purpose = purpose
            self.jwk = jwk
            self.key = key
            self.retiredAt = retiredAt
        }
    }

    private struct Snapshot: Sendable {
        let readAt: Int64
        let entries: [Entry]

        /// Whether those are there that there always are.
        let isComplete: Bool

        init(readAt: Int64, entries: [Entry]) {
            self.readAt = readAt
            self.entries = entries
            isComplete = ServerKeys.always.allSatisfy { slot in entries.contains { Self.signs($0, slot) } }
        }

        /// The key that signs.
        func active(_ slot: Slot) -> Entry? { entries.first { Self.signs($0, slot) } }

        func hasActive(_ slot: Slot) -> Bool { entries.contains { Self.signs($0, slot) } }

        private static func signs(_ entry: Entry, _ slot: Slot) -> Bool {
            entry.purpose == slot.purpose && entry.retiredAt == nil && entry.key?.algorithm == slot.algorithm
        }
    }

    /// How many seconds a node may go by its copy of the keys.
    package static let staleness: Int64 = 30

    /// How many seconds a retired key is kept beyond its time, for `id_token_hint`s that have expired.
    package static let hintRetention: Int64 = 90 * 24 * 3600

    /// How many seconds a retired key stays published: no token may count longer.
    package let retention: Int64

    private static let algorithms = Set(Purpose.allCases.flatMap(\.algorithms))

    /// The keys that there always are.
    private static let always = Purpose.allCases.filter(Purpose.tokens.contains).compactMap { purpose in
        purpose.algorithms.first.map { Slot(purpose: purpose, algorithm: $0) }
    }

    private let context: EngineContext
    private let snapshot = Locked<Snapshot?>(nil)

    /// What is being made, once for all who wait for it.
    private let making = Locked<[Slot: Task<Void, any Error>]>([:])

    /// The keys of a context's database; a retired one stays published for `retention` seconds.
    package init(_ context: EngineContext, retention: Int64 = 24 * 3600) {
        self.context = context
        self.retention = retention
    }

    /// The public keys whose signatures are valid (RFC 7517 §5), among them keys for tokens with these algorithms: a
    /// client may read the keys before the first token is signed.
    ///
    /// RSA keys come first: some programs take the first key of a set, and expect RSA.
    package func published(
        idTokens: Set<SignatureAlgorithm> = [], accessTokens: Set<SignatureAlgorithm> = []
    ) async throws -> JWKSet {
        let now = context.clock.epochSeconds
        let wanted = [(Purpose.idToken, idTokens), (.accessToken, accessTokens)]
        let slots = wanted.flatMap { purpose, algorithms in
            algorithms.intersection(purpose.algorithms).map { Slot(purpose: purpose, algorithm: $0) }
        }
        let keys = try await latest(having: slots).entries
            .filter { Purpose.tokens.contains($0.purpose) && counts($0, at: now) }.map(\.jwk)
        return JWKSet(keys.filter { $0.algorithm == .rs256 } + keys.filter { $0.algorithm != .rs256 })
    }

    /// The public keys that services verify the gateway's ``ServiceIdentity`` with. They are in no other set: what
    /// they sign is no token of the provider.
    package func publishedIdentityKeys() async throws -> JWKSet {
        let now = context.clock.epochSeconds
        let entries = try await latest(having: [Slot(purpose: .gatewayIdentity, algorithm: .es256)]).entries
        return JWKSet(entries.filter { $0.purpose == .gatewayIdentity && counts($0, at: now) }.map(\.jwk))
    }

    /// The purposes that have a key, in the order of their declaration.
    package func purposesInUse() async throws -> [Purpose] {
        let known = try await read(at: context.clock.epochSeconds)
        return Purpose.allCases.filter { purpose in
            Purpose.tokens.contains(purpose)
                || purpose.algorithms.contains { known.hasActive(Slot(purpose: purpose, algorithm: $0)) }
        }
    }

    /// Signs claims as a JWT whose header's `typ` is `type`, for example `at+jwt`, with one of the algorithms of the
    /// purpose.
    package func sign(
        _ claims: JSONObject, type: String, for purpose: Purpose, with algorithm: SignatureAlgorithm = .es256
    ) async throws -> Secret {
        try await signer(for: purpose, with: algorithm).sign(claims, type: type)
    }

    /// The key that signs for a purpose, for callers that must not query the database when they sign.
    func signer(for purpose: Purpose, with algorithm: SignatureAlgorithm = .es256) async throws -> Signer {
        let slot = Slot(purpose: purpose, algorithm: algorithm)
        guard purpose.algorithms.contains(algorithm), let entry = try await current(having: [slot]).active(slot),
            let key = entry.key
        else { throw EngineError.internalFailure("there is no \(algorithm) key for \(purpose.rawValue)") }
        return Signer(key: key, keyID: entry.jwk.keyID)
    }

    /// A key that signs for a purpose, as it was when it was asked for.
    struct Signer: Sendable {
        fileprivate let key: SoftwareSigningKey
        fileprivate let keyID: String?

        /// Signs claims as a JWT whose header's `typ` is `type`.
        func sign(_ claims: JSONObject, type: String) async throws -> Secret {
            var header = JSONObject()
            header["typ"] = .string(type)
            header["kid"] = keyID.map(JSONValue.string)
            return Secret(try await JWS.sign(JSONValue.object(claims).serializedBytes(), header: header, with: key))
        }
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

    private struct AnotherNodeWasFaster: Sendable {}

    /// Makes new keys for a purpose, one for each algorithm that has one. The old ones sign no more and stay published
    /// until what they signed has expired. When another node rotates at the same moment, that counts for both. With
    /// `discardingOld` the old keys' signatures stop counting, on other nodes within ``staleness``: the key may be in
    /// other hands. The `accompanying` statements succeed or fail together with it. Returns whether it was this call
    /// that did it.
    @discardableResult
    package func rotate(
        _ purpose: Purpose, discardingOld: Bool = false, accompanying: [SQLStatement] = []
    ) async throws -> Bool {
        let now = context.clock.epochSeconds
        let known = try await read(at: now)
        let slots = purpose.algorithms.map { Slot(purpose: purpose, algorithm: $0) }
            .filter { known.active($0) != nil }
        // All nodes fight for the key that there always is.
        guard let old = slots.first.flatMap(known.active)?.jwk.keyID else {
            throw purpose == .gatewayIdentity
                ? EngineError(.invalidRequest, "Nothing was signed for \(purpose.rawValue) yet.")
                : EngineError.internalFailure("there is no key for \(purpose.rawValue)")
        }
        var insertions: [SQLStatement] = []
        for slot in slots { insertions.append(try await insertion(of: slot, at: now)) }
        let retire = GuardedStatement.one(
            "UPDATE server_keys SET retired_at = \(now) WHERE kid = \(old) AND retired_at IS NULL",
            else: AnotherNodeWasFaster())
        let retireOthers = SQLStatement(
            "UPDATE server_keys SET retired_at = \(now) WHERE purpose = \(purpose.rawValue) AND retired_at IS NULL")
        let discard = SQLStatement("DELETE FROM server_keys WHERE purpose = \(purpose.rawValue)")
        let rest = [discardingOld ? discard : retireOthers] + insertions + accompanying
        var isFirst = true
        if case .refused = try await context.database.attempt([retire] + rest.map(GuardedStatement.also)) {
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

    /// That a row is a key of one of the purposes. Other parts of the server have keys in the table as well.
    static let signsTokens: SQL =
        """
        purpose IN (\(Purpose.idToken.rawValue), \(Purpose.accessToken.rawValue), \(Purpose.gatewayIdentity.rawValue))
        """

    private func counts(_ entry: Entry, at now: Int64) -> Bool {
        // A node with an older copy may have signed with it for a while after it was retired.
        entry.retiredAt.map { now < $0 + retention + Self.staleness } ?? true
    }

    /// The keys as they were at most `age` seconds ago, with one for each of the slots.
    private func current(having slots: [Slot] = [], upTo age: Int64 = staleness) async throws -> Snapshot {
        let now = context.clock.epochSeconds
        if let known = snapshot.withLock({ $0 }), (0..<age).contains(now - known.readAt),
            known.isComplete, slots.allSatisfy(known.hasActive)
        {
            return known
        }
        let needed = Self.always + slots
        var fresh = try await read(at: now)
        let missing = needed.filter { fresh.active($0) == nil }
        if !missing.isEmpty {
            for slot in missing { try await make(slot) }
            fresh = try await read(at: now)
        }
        let result = fresh
        snapshot.withLock { $0 = result }
        return result
    }

    /// The keys as they are now, for others to verify with: another node may sign with a key that it has just made, and
    /// a verifier that does not know a key asks once, and then not again for minutes. While the database does not
    /// answer, those that this node goes by.
    private func latest(having slots: [Slot]) async throws -> Snapshot {
        do {
            return try await current(having: slots, upTo: 1)
        } catch let error as StoreError where error.code == .unavailable {
            return try await current(having: slots)
        }
    }

    /// Adds a key, unless another node is first. A caller that gives up does not stop it, since others wait for it.
    private func make(_ slot: Slot) async throws {
        let task = making.withLock { making in
            if let task = making[slot] { return task }
            let task = Task { [self] in
                defer { self.making.withLock { $0[slot] = nil } }
                _ = try await context.database.run([
                    try await insertion(of: slot, at: context.clock.epochSeconds)
                ])
            }
            making[slot] = task
            return task
        }
        try await task.value
    }

    /// The statement that adds a key, unless the slot has one.
    private func insertion(of slot: Slot, at now: Int64) async throws -> SQLStatement {
        let algorithm = slot.algorithm
        let key = try await ServerKeyGeneration.key(algorithm)
        let keyID = try JWK(publicKeyInfo: key.publicKeyInfo).thumbprint
        let jwk = try JWK(publicKeyInfo: key.publicKeyInfo, keyID: keyID, algorithm: algorithm, use: "sig")
        let sealed = try context.masterKey.seal(key.privateKey, for: .serverKey, context: keyID)
        return SQLStatement(
            """
            INSERT INTO server_keys (kid, purpose, algorithm, sealed_key, public_jwk, created_at)
            VALUES (\(keyID), \(slot.purpose.rawValue), \(algorithm.rawValue), \(sealed), \(jwk.json.serialized()), \(now))
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
