import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentStore

/// An issuer's keys at one time: all that its messages need.
struct SigningKeySet: Sendable {
    /// The identity keys, oldest first; the last one signs.
    let identities: [Identity]

    /// The online keys, newest first.
    let online: [OnlineKey]

    /// What earlier identity keys have certified.
    let earlierCertificates: [String]

    struct Identity: Sendable {
        let publicKey: ProtocolKey
        let key: SoftwareSigningKey
        let next: String?
        let previous: String?
    }

    struct OnlineKey: Sendable {
        let kid: KeyThumbprint
        let generation: Int
        let use: OnlineKeyUse
        let certificate: String
        let work: Work
        let createdAt: Int64
        let expiresAt: Int64
        let isRetired: Bool
        let publicKey: ProtocolKey

        /// What the key does: taken out of its bytes when it is read, and not for each message. `verifies` is the
        /// public half of the very key, and `named` that half's thumbprint, whatever another column says.
        enum Work: Sendable {
            case signs(SoftwareSigningKey, verifies: ProtocolKey)
            case opens(SoftwareAgreementKey, named: KeyThumbprint)
        }

        init(_ row: SQLRow, _ context: EngineContext) throws {
            kid = try row.value("kid")
            let privateKey = try context.masterKey.open(
                try row.blob("sealed_key"), for: .signingKey, context: kid.text)
            generation = Int(try row.integer("generation"))
            use = try row.value("key_use")
            certificate = try row.text("cert")
            createdAt = try row.integer("created_at")
            expiresAt = try row.integer("expires_at")
            isRetired = try row.optionalInteger("retired_at") != nil
            publicKey = try ProtocolKey(JSONValue.parse(try row.text("public_jwk")))
            switch use {
            case .sig:
                let key = try SoftwareSigningKey(algorithm: .es256, privateKey: privateKey)
                work = .signs(key, verifies: try ProtocolKey(key))
            case .enc:
                let key = try SoftwareAgreementKey(privateKey: privateKey)
                work = .opens(key, named: try ProtocolKey(key).thumbprint)
            }
        }
    }

    /// The identity key that devices pin.
    var identity: ProtocolKey? { identities.last?.publicKey }

    /// The same, which ``SigningServerKeys/current(fresh:)`` always has.
    ///
    /// - Throws: ``SigningRefusal`` `unavailable`.
    var requiredIdentity: ProtocolKey {
        get throws(SigningRefusal) {
            guard let identity else { throw SigningRefusal(.unavailable) }
            return identity
        }
    }

    /// The messages that lead from one identity key to the next, and back.
    var next: [String] { identities.compactMap(\.next) }
    var previous: [String] { identities.compactMap(\.previous) }

    /// The certificates of the keys that sign or open something, or have until lately.
    func certificates(at now: Int64) -> [String] {
        online.filter { !$0.isRetired && $0.expiresAt > now }.map(\.certificate)
    }

    /// The certificate of each key, also of those that are used no more: what they signed stays true.
    var allCertificates: [String] { online.map(\.certificate) + earlierCertificates }

    /// The least generation that counts: all below it were withdrawn.
    var minimum: Int { (online.filter(\.isRetired).map(\.generation).max() ?? 0) + 1 }

    /// The generation of the next online key.
    var nextGeneration: Int { (online.map(\.generation).max() ?? 0) + 1 }

    /// All certificates of the keys that have signed these messages.
    func certificates(of messages: [String]) throws -> [String] {
        let signers = Set(try messages.map { try Self.signer(of: $0) })
        return try allCertificates.filter {
            signers.contains(try UnverifiedMessage<KeyCertificate>($0).content.jwk.thumbprint.text)
        }
    }

    private static func signer(of compact: String) throws -> String {
        let header = compact.prefix { $0 != "." }
        return try JSONValue.parse(Base64URL.decode(String(header)) ?? [])["kid"]?.string ?? ""
    }

    func newest(_ use: OnlineKeyUse) -> OnlineKey? { online.first { $0.use == use && !$0.isRetired } }

    /// The key to which a request is encrypted, and its thumbprint.
    func opening(_ kid: KeyThumbprint) -> (key: SoftwareAgreementKey, name: KeyThumbprint)? {
        let found = online.first { $0.use == .enc && $0.kid == kid && !$0.isRetired }
        guard case .opens(let key, named: let name)? = found?.work else { return nil }
        return (key, name)
    }

    /// The public key of a key that signs or has signed; `nil` for one that is unknown or was withdrawn.
    func verifying(_ kid: KeyThumbprint) -> ProtocolKey? {
        let found = online.first { $0.use == .sig && $0.kid == kid && !$0.isRetired }
        guard case .signs(_, verifies: let key)? = found?.work else { return nil }
        return key
    }
}

/// The keys of an issuer: an identity key that devices pin, and online keys that it certifies, sealed under the master
/// key. All nodes share them; each keeps a copy for some seconds.
final class SigningServerKeys: Sendable {
    /// Seconds for which a node may go by its copy.
    static let staleness: Int64 = 30

    /// Seconds for which an online key signs before another one is made.
    static let renewal: Int64 = 200 * 86400

    /// Seconds before the making of a key from which its certificate counts.
    private static let backdating: Int64 = 2 * 3600

    let store: SigningStore
    var context: EngineContext { store.context }
    var issuer: SigningIssuer { store.issuer }
    private let copy = Locked<(readAt: Int64, keys: SigningKeySet)?>(nil)

    /// The keys of the issuer whose data these are.
    init(_ store: SigningStore) { self.store = store }

    /// The keys as they are now. What is missing is made; when several nodes do that at once, one of them counts.
    func current(fresh: Bool = false) async throws -> SigningKeySet {
        let now = context.clock.epochSeconds
        if !fresh, let known = copy.withLock({ $0 }), abs(now - known.readAt) < Self.staleness { return known.keys }
        var keys = try await read()
        if keys.identities.isEmpty {
            try await makeIdentity(at: now)
            keys = try await read()
        }
        for use in OnlineKeyUse.allCases where keys.newest(use).map({ now - $0.createdAt >= Self.renewal }) ?? true {
            let made = try await making(
                use, keys: keys, generation: keys.nextGeneration, minimum: keys.minimum, at: now)
            _ = try await store.succeeds([try holdingIdentity(of: keys)] + made)
            keys = try await read()
        }
        copy.withLock { [keys] in $0 = (now, keys) }
        return keys
    }

    /// The public key of an online key that signs or has signed; `nil` when it is unknown, or was withdrawn.
    func signer(_ kid: KeyThumbprint) async throws -> ProtocolKey? {
        if let found = try await current().verifying(kid) { return found }
        return try await current(fresh: true).verifying(kid)
    }

    /// Signs a message as the server.
    func sign<Content: SignedContent>(_ content: Content) async throws -> String {
        guard case .signs(let key, verifies: let publicKey)? = try await current().newest(.sig)?.work else {
            throw EngineError.internalFailure("there is no key to sign with")
        }
        return try await SignedMessage.sign(content, with: key, named: publicKey.thumbprint).compact
    }

    private func makeIdentity(at now: Int64) async throws {
        let key = try SoftwareSigningKey.generate(.es256)
        let publicKey = try ProtocolKey(key)
        let kid = publicKey.thumbprint.text
        let sealed = try context.masterKey.seal(key.privateKey, for: .signingKey, context: kid)
        _ = try await store.succeeds([
            SQLStatement(
                """
                INSERT INTO signing_identities (iss, seq, kid, public_jwk, sealed_key, created_at)
                VALUES (\(issuer.name), 0, \(kid), \(publicKey.json.serialized()), \(sealed), \(now))
                ON CONFLICT DO NOTHING
                """, expecting: .exactly(1)), note(kid, "identity"),
        ])
    }

    /// The statement that fails unless the identity key that certifies is still the last one, and keeps it that until
    /// the transaction ends: devices take nothing that an earlier one has certified.
    func holdingIdentity(of keys: SigningKeySet) throws -> SQLStatement {
        guard let identity = keys.identities.last else { throw EngineError.internalFailure("no identity key") }
        return SQLStatement(
            """
            UPDATE signing_identities SET next = next
            WHERE iss = \(issuer.name) AND kid = \(identity.publicKey.thumbprint.text) AND next IS NULL
            """, expecting: .exactly(1))
    }

    /// The statements that make an online key. They fail as a whole when another node was faster.
    func making(
        _ use: OnlineKeyUse, keys: SigningKeySet, generation: Int, minimum: Int, at now: Int64
    ) async throws -> [SQLStatement] {
        guard let identity = keys.identities.last else { throw EngineError.internalFailure("no identity key") }
        let (publicKey, privateKey) = try Self.pair(use)
        let kid = publicKey.thumbprint.text
        // What is signed now may name a time a little before: a transaction's, or that of a clock that is late.
        let from = now - Self.backdating
        let expires = from + Int64(KeyCertificate.lifetime)
        let certificate = try await SignedMessage.sign(
            KeyCertificate(
                issuer: issuer.name, issuedAt: Int(from), expiresAt: Int(expires), use: use, generation: generation,
                minimum: minimum, jwk: publicKey), with: identity.key)
        let sealed = try context.masterKey.seal(privateKey, for: .signingKey, context: kid)
        return [
            SQLStatement(
                """
                INSERT INTO signing_online_keys
                    (kid, iss, generation, key_use, public_jwk, sealed_key, cert, created_at, expires_at)
                VALUES (\(kid), \(issuer.name), \(generation), \(use.rawValue), \(publicKey.json.serialized()),
                    \(sealed), \(certificate.compact), \(now), \(expires))
                ON CONFLICT DO NOTHING
                """, expecting: .exactly(1)), note(kid, use.rawValue),
        ]
    }

    private static func pair(_ use: OnlineKeyUse) throws -> (ProtocolKey, Secret) {
        switch use {
        case .sig:
            let key = try SoftwareSigningKey.generate(.es256)
            return (try ProtocolKey(key), key.privateKey)
        case .enc:
            let key = SoftwareAgreementKey.generate()
            return (try ProtocolKey(key), key.privateKey)
        }
    }

    func note(_ kid: String, _ kind: String, by actor: String? = nil) -> SQLStatement {
        store.audit.statement(store.record(.signingKeys, user: nil, ["kid": kid, "key": kind, "by": actor]))
    }

    private func read() async throws -> SigningKeySet {
        let identities = try await store.all(
            "SELECT * FROM signing_identities WHERE iss = \(issuer.name) ORDER BY seq")
        let online = try await store.all(
            "SELECT * FROM signing_online_keys WHERE iss = \(issuer.name) ORDER BY generation DESC")
        let earlier = try await store.all(
            "SELECT cert FROM signing_certificates WHERE iss = \(issuer.name) ORDER BY kid, identity")
        return SigningKeySet(
            identities: try identities.map(identity),
            online: try online.map { try SigningKeySet.OnlineKey($0, context) },
            earlierCertificates: try earlier.map { try $0.text("cert") })
    }

    private func identity(_ row: SQLRow) throws -> SigningKeySet.Identity {
        let kid = try row.text("kid")
        let sealed = try context.masterKey.open(try row.blob("sealed_key"), for: .signingKey, context: kid)
        let key = try SoftwareSigningKey(algorithm: .es256, privateKey: sealed)
        let publicKey = try ProtocolKey(key)
        guard publicKey.thumbprint.text == kid else { throw StoreError(.corrupt, "identity key \(kid) is another one") }
        return SigningKeySet.Identity(
            publicKey: publicKey, key: key, next: try row.optionalText("next"),
            previous: try row.optionalText("previous"))
    }
}
