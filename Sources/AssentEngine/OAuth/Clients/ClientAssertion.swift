import AssentCore
import AssentJOSE
import AssentStore
import Crypto
import Foundation

/// A verified assertion of a client: its proof that it holds its key (RFC 7523 §3, OpenID Connect Core §9). It is not
/// spent yet.
struct ClientAssertion: Sendable, Hashable {
    /// The value of `client_assertion_type`.
    static let parameterType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

    /// How many seconds an assertion may be valid.
    static let longestLifetime: Int64 = 3600

    /// How many seconds the client's clock may differ from ours. FAPI 2.0 (5.3.2.1) accepts at least 10 and at most 60.
    static let leeway: Int64 = 30

    /// How many seconds the clocks of two nodes may differ.
    private static let tolerance = NodeClocks.difference

    /// The values of `typ` that an assertion can have. Many clients write none; what is made for something else says
    /// so.
    private static let types = ["jwt", "client-authentication+jwt"]

    private static let nameLimit = 512

    /// Who has signed it.
    let clientID: String

    /// What it is remembered by, together with the client.
    let jti: String

    /// When it could have been accepted first, by any node, in seconds since 1970.
    let earliest: Int64

    /// From when on no node accepts it any more, in seconds since 1970.
    let expiresAt: Int64

    /// Which client an assertion says that it comes from. Nothing is proved yet.
    static func subject(of message: UnverifiedJWS) throws(JOSEError) -> String {
        let claims = try JWTClaims(payload: message.payload)
        guard let subject = claims.sub else { throw JOSEError(.missingClaim("sub")) }
        return subject
    }

    /// Verifies an assertion of a client.
    ///
    /// - Parameters:
    ///   - message: the assertion.
    ///   - clientID: who must have signed it.
    ///   - keys: the client's keys.
    ///   - algorithms: what the client signs with.
    ///   - audiences: what it may be meant for; anything else beside them is refused as well.
    ///   - clock: where the time comes from.
    /// - Throws: ``/AssentJOSE/JOSEError`` with the code of what is wrong.
    init(
        _ message: UnverifiedJWS, of clientID: String, keys: JWKSet, algorithms: Set<SignatureAlgorithm>,
        audiences: Set<String>, clock: any WallClock
    ) throws(JOSEError) {
        let verified = try message.verified(with: keys, algorithms: algorithms)
        guard verified.type.map({ Self.types.contains($0.lowercased()) }) ?? true else {
            throw JOSEError(.wrongType, "The header's typ is of something else than an assertion.")
        }
        let claims = try JWTValidation(
            issuer: clientID, audiences: audiences, clock: clock, leeway: TimeInterval(Self.leeway),
            requiredClaims: ["iss", "sub", "aud", "exp", "jti"]
        ).validate(verified)
        guard let subject = claims.sub, subject.utf8.elementsEqual(clientID.utf8) else {
            throw JOSEError(.malformedClaim("sub"))
        }
        // Who receives an assertion that also names a foreign server could use it there, and the other way round.
        let accepted = audiences.map { Array($0.utf8) }
        guard claims.aud.allSatisfy({ accepted.contains(Array($0.utf8)) }) else { throw JOSEError(.wrongAudience) }
        guard let jti = claims.jti, (1...Self.nameLimit).contains(jti.utf8.count) else {
            throw JOSEError(.malformedClaim("jti"))
        }
        guard let exp = claims.exp else { throw JOSEError(.malformedClaim("exp")) }
        let end = Int64(exp.timeIntervalSince1970.rounded(.up))
        guard end <= clock.epochSeconds + Self.longestLifetime + Self.leeway else {
            throw JOSEError(.malformedClaim("exp"))
        }
        self.clientID = clientID
        self.jti = jti
        expiresAt = end + Self.leeway + Self.tolerance
        let begin = [claims.iat, claims.nbf].compactMap { $0.map { Int64($0.timeIntervalSince1970) } }
        earliest =
            ([end - Self.longestLifetime] + begin).reduce(Int64.min, max) - Self.leeway - Self.tolerance
    }
}

// MARK: - Used once

extension ClientAssertion {
    /// The name of the row with the time of a restore. No assertion has it: theirs have 43 characters.
    private static let restored = "restored"

    /// From the time of a restore on, for how many seconds there may be assertions that were used before it.
    private static let memory = longestLifetime + 2 * (leeway + tolerance)

    /// The statement that spends it, in the transaction of what the request does. It affects no row, so that all of the
    /// transaction fails, when the assertion was used before, by whichever node, or may have been before a restore.
    func spending(realm: String) -> SQLStatement {
        SQLStatement(
            """
            INSERT INTO client_assertions (id, realm, client_id, expires_at)
            SELECT \(id(in: realm)), \(realm), \(clientID), \(expiresAt)
            WHERE NOT EXISTS (
                SELECT 1 FROM client_assertions
                WHERE id = \(Self.restored) AND expires_at - \(Self.memory) > \(earliest))
            ON CONFLICT (id) DO NOTHING RETURNING id
            """, expecting: .exactly(1))
    }

    /// The statement that finds it when it was used before. Only ``spending(realm:)`` decides.
    func finding(realm: String) -> SQLStatement {
        .read("SELECT id FROM client_assertions WHERE id = \(id(in: realm))")
    }

    /// What it is remembered by.
    private func id(in realm: String) -> String {
        let name = ["client assertion", realm, clientID, jti].map { "\($0.utf8.count):\($0)" }.joined()
        return Base64URL.encode(Array(SHA256.hash(data: Array(name.utf8))))
    }

    /// The statement that has assertions refused that may have been used before a restore: the backup does not know it.
    static func refusingEarlier(at now: Int64) -> SQLStatement {
        SQLStatement(
            """
            INSERT INTO client_assertions (id, realm, client_id, expires_at)
            VALUES (\(restored), '', '', \(now + memory))
            ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at RETURNING id
            """)
    }

    /// Forgets the assertions that nobody accepts any more, a limited number of rows at a time.
    ///
    /// - Throws: ``StoreError``.
    static func purge(_ context: EngineContext) async throws {
        let now = context.clock.epochSeconds
        _ = try await context.delete(from: "client_assertions", where: "expires_at <= \(now)")
    }
}
