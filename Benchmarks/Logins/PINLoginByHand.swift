import AssentCore
import AssentEngine
import AssentSigningProtocol
import AssentStore
import Crypto
import Foundation
import SigningTesting

/// The least that the three calls of a login with a PIN cost, on a container of its own: the signatures are verified
/// and made, requests opened and the PIN's element evaluated, and for each call the rows that name the keys are read
/// and what changes is written in one transaction.
struct PINLoginByHand: Sendable {
    private let did: String
    private let user: String
    private let instance: String
    private let cryptography: Cryptography

    init(_ enrolled: PINLoginWorld.Enrolled, instance: String) throws {
        (did, user, self.instance) = (enrolled.container.did.text, enrolled.container.sub, instance)
        cryptography = try Cryptography()
    }

    /// One of the calls.
    private struct Call: HandMadeRequest {
        let reads: [SQL]
        let rows: [SQL]
        let work: @Sendable () throws -> Void

        func calculate() throws { try work() }
    }

    /// The calls of one login.
    func calls() -> [any HandMadeRequest] {
        let (unl, time) = (SystemRandom().token(), Int64(Date().timeIntervalSince1970))
        return [unlock(at: time), confirmation(unl, at: time), token(unl, at: time)]
    }

    // MARK: - The calls

    private func unlock(at now: Int64) -> Call {
        let (request, next) = (SystemRandom().token(), SystemRandom().token())
        return Call(
            reads: [
                """
                SELECT c.device_jwk, c.state, s.sealed_k FROM signing_containers c
                JOIN signing_slots s ON s.did = c.did AND s.slot = 'signing' WHERE c.did = \(did)
                """
            ],
            rows: [
                count(at: now),
                """
                UPDATE signing_slots SET n = n + 1, unconfirmed = unconfirmed + 1, counted = 1, at = \(now),
                    request = \(request), blinded = \(request), cur = next, next = \(next)
                WHERE did = \(did) AND slot = 'signing' AND sealed_k IS NOT NULL AND n - floor < 5 AND unconfirmed < 20
                """,
                record("signing.slot", #"{"did":"\#(did)","slot":"signing","step":"evaluated"}"#),
            ],
            work: { [cryptography] in
                // The call's proof, and the evaluation before.
                try cryptography.verify(2)
                try cryptography.open()
                try cryptography.evaluate()
                try cryptography.sign()
            })
    }

    private func confirmation(_ unl: String, at now: Int64) -> Call {
        let text = String(repeating: "c", count: 700)
        return Call(
            reads: [
                """
                SELECT c.device_jwk, c.state, k.public_jwk FROM signing_containers c
                JOIN signing_keys k ON k.did = c.did AND k.label = 'sign-in' AND k.state = 'ACTIVE'
                WHERE c.did = \(did)
                """
            ],
            rows: [
                count(at: now),
                """
                INSERT INTO signing_confirms
                    (did, slot, n, unl, generation, evaluated_at, confirmed_at, eval, confirm)
                VALUES (\(did), 'signing', (SELECT n FROM signing_slots WHERE did = \(did) AND slot = 'signing'),
                    \(unl), 1, \(now), \(now), \(text), \(text))
                """,
                """
                UPDATE signing_slots SET unconfirmed = 0, cleared = n, floor = n, next_at = 0
                WHERE did = \(did) AND slot = 'signing'
                """,
                record("signing.slot", #"{"did":"\#(did)","slot":"signing","step":"confirmed"}"#),
            ],
            work: { [cryptography] in
                // The call's proof, the evaluation, and its confirmation.
                try cryptography.verify(3)
                try cryptography.open()
                try cryptography.sign()
            })
    }

    private func token(_ unl: String, at now: Int64) -> Call {
        let random = SystemRandom()
        let (login, session, grant) = (random.token(), random.token(), random.uuid())
        let rows: [SQL] = [
            """
            INSERT INTO client_assertions (id, realm, client_id, expires_at)
            VALUES (\(random.token()), '/alpha', \(instance), \(now + 60)) ON CONFLICT (id) DO NOTHING
            """,
            "UPDATE signing_containers SET seen_at = \(now) WHERE did = \(did) AND state = 'ACTIVE'",
            """
            UPDATE signing_keys SET used_at = \(now)
            WHERE did = \(did) AND label = 'sign-in' AND state = 'ACTIVE'
            """,
            """
            UPDATE signing_confirms SET taken_by = \("login:" + login)
            WHERE did = \(did) AND slot = 'signing' AND unl = \(unl) AND taken_by IS NULL
                AND n = (SELECT s.n FROM signing_slots s WHERE s.did = \(did) AND s.slot = 'signing')
            """,
            "INSERT INTO signing_proofs (jti, did, expires_at) VALUES (\(login), \(did), \(now + 600))",
            record("signing.login", #"{"did":"\#(did)","method":"pin","client":"\#(instance)"}"#),
            """
            INSERT INTO sessions
                (id, audit_id, user_id, realm, auth_level, created_at, latest_access, max_idle, expires_at, properties,
                epoch, kind, is_of_journey, journey_level, did)
            VALUES (\(session), \(random.uuid()), \(user), '/alpha', 3, \(now), \(now), 1800, \(now + 7200), '{}',
                (SELECT epoch FROM users WHERE id = \(user)), 'user', 0, 0, \(did))
            """,
            """
            INSERT INTO grants
                (id, realm, client_id, user_id, session_id, scope, is_offline, created_at, expires_at, epoch,
                instance_id)
            VALUES (\(grant), '/alpha', \(instance), \(user), \(session), 'accounts', 0, \(now), \(now + 3600), 0,
                \(instance))
            """,
            record("oauth.authorize", #"{"client":"\#(instance)","grant":"\#(grant)"}"#),
        ]
        return Call(
            reads: [
                "SELECT metadata FROM client_instances WHERE id = \(instance)",
                """
                SELECT c.instance_id, c.state, k.public_jwk, s.sealed_k, u.active FROM signing_containers c
                JOIN signing_keys k ON k.did = c.did AND k.label = 'sign-in' AND k.state = 'ACTIVE'
                JOIN signing_slots s ON s.did = c.did AND s.slot = 'signing'
                JOIN users u ON u.id = c.user_id WHERE c.did = \(did)
                """,
            ], rows: rows,
            work: { [cryptography] in
                // The client's assertion, the proof of its key, and the login.
                try cryptography.verify(3)
                try cryptography.sign()
            })
    }

    // MARK: - Rows of several calls

    /// The container's calls of this minute.
    private func count(at now: Int64) -> SQL {
        """
        INSERT INTO attempts (counter, window_start, count) VALUES (\("by hand:" + did), \(now - now % 60), 1)
        ON CONFLICT (counter, window_start) DO UPDATE SET count = attempts.count + 1
        """
    }

    private func record(_ event: String, _ detail: String) -> SQL {
        let time = Int64(Date().timeIntervalSince1970 * 1_000)
        return """
            INSERT INTO audit (id, at, event, outcome, realm, user_id, detail, node, position)
            VALUES (\(SystemRandom().uuid()), \(time), \(event), 'success', '/alpha', \(user), \(detail), 'by hand',
                \(time * 1_000))
            """
    }
}

extension PINLoginByHand {
    /// The operations by CryptoKit's own functions, and on messages of 700 bytes.
    private struct Cryptography: Sendable {
        private let key = P256.Signing.PrivateKey()
        private let signature: P256.Signing.ECDSASignature
        private let agreement = P256.KeyAgreement.PrivateKey()
        private let peer = P256.KeyAgreement.PrivateKey().publicKey
        private let sealed: AES.GCM.SealedBox
        /// Each user has one, and it is stored sealed.
        private let oblivious: AES.GCM.SealedBox
        private let sealing = SymmetricKey(size: .bits256)
        private let element: ObliviousElement

        private static let message = Data(repeating: 7, count: 700)

        init() throws {
            signature = try key.signature(for: Self.message)
            sealed = try AES.GCM.seal(Self.message, using: Self.secret(of: agreement, with: peer))
            oblivious = try AES.GCM.seal(ObliviousKey().secret.revealBytes(), using: sealing)
            element = try ObliviousInput(Secret("2580")).element
        }

        private static func secret(
            of key: P256.KeyAgreement.PrivateKey, with peer: P256.KeyAgreement.PublicKey
        ) throws -> SymmetricKey {
            try key.sharedSecretFromKeyAgreement(with: peer).hkdfDerivedSymmetricKey(
                using: SHA256.self, salt: Data(), sharedInfo: Data("by hand".utf8), outputByteCount: 32)
        }

        func verify(_ count: Int) throws {
            for _ in 0..<count {
                guard key.publicKey.isValidSignature(signature, for: Self.message) else {
                    throw BenchFailure("not signed")
                }
            }
        }

        func sign() throws {
            guard try key.signature(for: Self.message).rawRepresentation.count == 64 else {
                throw BenchFailure("not signed")
            }
        }

        /// Decrypts a request.
        func open() throws {
            let opened = try AES.GCM.open(sealed, using: Self.secret(of: agreement, with: peer))
            guard opened == Self.message else { throw BenchFailure("not opened") }
        }

        /// The step of the VOPRF that is the server's, with its proof, and with the user's key, which is opened for it.
        func evaluate() throws {
            let key = try ObliviousKey(secret: Secret(bytes: AES.GCM.open(oblivious, using: sealing)))
            guard try key.evaluate(element).proof.count == 96 else { throw BenchFailure("not evaluated") }
        }
    }
}
