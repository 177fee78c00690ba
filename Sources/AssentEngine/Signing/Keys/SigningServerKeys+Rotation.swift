import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentStore

extension SigningServerKeys {
    /// How many identity keys may follow the first one.
    private static let successors = 16

    /// Makes a new identity key. The old one names it, it names the old one, and it certifies the online keys anew:
    /// devices walk to it by themselves, and evidence from before is judged with it, too.
    ///
    /// - Parameter actor: the administrator, for the audit log.
    /// - Throws: ``SigningRefusal``: `invalid_request` after 16 successors, `busy` when another call was faster.
    func rotateIdentity(by actor: String) async throws {
        let keys = try await current(fresh: true)
        let now = context.clock.epochSeconds
        guard let old = keys.identities.last else { throw SigningRefusal(.unavailable) }
        let sequence = keys.identities.count
        guard sequence <= Self.successors else {
            throw SigningRefusal(
                .invalidRequest, "An identity key has at most 16 successors: all devices must enrol again.")
        }
        let key = try SoftwareSigningKey.generate(.es256)
        let publicKey = try ProtocolKey(key)
        let kid = publicKey.thumbprint.text
        let next = try await SignedMessage.sign(
            NextIdentity(issuer: issuer.name, issuedAt: Int(now), sequence: sequence, jwk: publicKey), with: old.key)
        let previous = try await SignedMessage.sign(
            PreviousIdentity(
                issuer: issuer.name, issuedAt: Int(now), sequence: sequence, jwk: old.publicKey, until: Int(now)),
            with: key)
        let sealed = try context.masterKey.seal(key.privateKey, for: .signingKey, context: kid)
        var statements = [
            SQLStatement(
                """
                UPDATE signing_identities SET next = \(next.compact)
                WHERE iss = \(issuer.name) AND kid = \(old.publicKey.thumbprint.text) AND next IS NULL
                """, expecting: .exactly(1)),
            // Online keys that were made meanwhile would lack a certificate of the new key, also those of a withdrawal.
            // A caller that makes some holds the row above, so this statement sees what that one has waited for.
            SQLStatement(
                """
                UPDATE signing_online_keys SET generation = generation
                WHERE iss = \(issuer.name) AND generation = \(keys.nextGeneration - 1) AND NOT EXISTS (
                    SELECT 1 FROM signing_online_keys later
                    WHERE later.iss = \(issuer.name) AND later.generation >= \(keys.nextGeneration))
                """, expecting: .exactly(1)),
            SQLStatement(
                """
                INSERT INTO signing_identities
                    (iss, seq, kid, public_jwk, sealed_key, previous, created_at)
                VALUES (\(issuer.name), \(sequence), \(kid), \(publicKey.json.serialized()), \(sealed),
                    \(previous.compact), \(now))
                ON CONFLICT DO NOTHING
                """, expecting: .exactly(1)),
        ]
        for online in keys.online where !online.isRetired && online.expiresAt > now {
            statements += try await certifyingAgain(online, keys: keys, old: old, key)
        }
        statements.append(note(kid, "identity", by: actor))
        guard try await store.succeeds(statements) else { throw SigningRefusal(.busy) }
        _ = try await current(fresh: true)
    }

    /// The certificate of a new identity key has the times of the old one's: what the key has signed before counts.
    private func certifyingAgain(
        _ online: SigningKeySet.OnlineKey, keys: SigningKeySet, old: SigningKeySet.Identity, _ key: SoftwareSigningKey
    ) async throws -> [SQLStatement] {
        let before = try UnverifiedMessage<KeyCertificate>(online.certificate).content
        let certificate = try await SignedMessage.sign(
            KeyCertificate(
                issuer: issuer.name, issuedAt: before.issuedAt, expiresAt: before.expiresAt, use: online.use,
                generation: online.generation, minimum: keys.minimum, jwk: online.publicKey), with: key)
        return [
            SQLStatement(
                """
                INSERT INTO signing_certificates (kid, iss, identity, cert)
                SELECT kid, iss, \(old.publicKey.thumbprint.text), cert FROM signing_online_keys
                WHERE kid = \(online.kid.text)
                """, expecting: .exactly(1)),
            SQLStatement(
                """
                UPDATE signing_online_keys SET cert = \(certificate.compact)
                WHERE kid = \(online.kid.text) AND cert = \(online.certificate)
                """, expecting: .exactly(1)),
        ]
    }

    /// Withdraws all online keys, because one may be stolen, and makes new ones. Their certificates say that no lower
    /// generation counts; a device that has seen one takes nothing from the old keys any more.
    ///
    /// - Parameter actor: the administrator, for the audit log.
    /// - Throws: ``SigningRefusal`` `busy` when another call was faster.
    func withdrawOnlineKeys(by actor: String) async throws {
        let keys = try await current(fresh: true)
        let now = context.clock.epochSeconds
        let minimum = keys.nextGeneration
        var statements = [
            try holdingIdentity(of: keys),
            SQLStatement(
                """
                UPDATE signing_online_keys SET retired_at = \(now)
                WHERE iss = \(issuer.name) AND retired_at IS NULL
                """),
        ]
        for (index, use) in OnlineKeyUse.allCases.enumerated() {
            statements += try await making(
                use, keys: keys, generation: minimum + index, minimum: minimum, at: now)
        }
        for online in keys.online where !online.isRetired {
            statements.append(note(online.kid.text, "withdrawn", by: actor))
        }
        guard try await store.succeeds(statements) else { throw SigningRefusal(.busy) }
        _ = try await current(fresh: true)
    }
}
