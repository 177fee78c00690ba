import AssentCore
import AssentStore

/// A key for one-time codes that a container has.
package struct SigningOneTimeSecret: Sendable {
    /// Its name in the container.
    let label: String

    /// The id of the policy that protects it.
    let policy: String

    /// The key, as the device gets it.
    let uri: Secret

    /// The least counter value or time step whose code was not used yet.
    var counter: Int64 = 0
}

extension SigningStore {
    /// The statements that give a new container its keys. The secrets are sealed under the master key.
    func inserting(_ keys: [SigningOneTimeSecret], of did: String, at now: Int64) throws -> [SQLStatement] {
        try keys.enumerated().map { position, key in
            let sealed = try context.masterKey.seal(
                key.uri, for: .signingContainer, context: Self.sealing(did, key.label))
            return SQLStatement(
                """
                INSERT INTO signing_otp_keys (did, label, position, policy, sealed_uri, counter, created_at)
                VALUES (\(did), \(key.label), \(position), \(key.policy), \(sealed), 0, \(now))
                ON CONFLICT DO NOTHING
                """, expecting: .exactly(1))
        }
    }

    /// The keys of a container, in the order of its offer; none when it has ended.
    func oneTimeKeys(did: String) async throws -> [SigningOneTimeSecret] {
        try await context.database.run(
            .read("SELECT * FROM signing_otp_keys WHERE did = \(did) ORDER BY position")
        ).map { row in
            SigningOneTimeSecret(
                label: try row.text("label"), policy: try row.text("policy"),
                uri: try Self.openOneTimeKey(row, context), counter: try row.integer("counter"))
        }
    }

    /// The key in a row with `did`, `label` and `sealed_uri`.
    static func openOneTimeKey(_ row: SQLRow, _ context: EngineContext) throws -> Secret {
        try context.masterKey.open(
            try row.blob("sealed_uri"), for: .signingContainer,
            context: sealing(try row.text("did"), try row.text("label")))
    }

    /// Spends a code and all older ones of its key.
    ///
    /// - Returns: false when it or a newer one was spent before, or the container is not active any more.
    func spend(
        counter: Int64, of label: String, container: SigningContainerRecord, at now: Int64
    ) async throws -> Bool {
        try await succeeds([
            SQLStatement(
                """
                UPDATE signing_otp_keys SET counter = \(counter + 1)
                WHERE did = \(container.did) AND label = \(label) AND counter <= \(counter)
                    AND EXISTS (SELECT 1 FROM signing_containers c
                        WHERE c.did = \(container.did) AND c.state = 'ACTIVE' AND c.expires_at > \(now))
                """, expecting: .exactly(1)),
            audit.statement(record(.otpVerify, user: container.userID, did: container.did, ["label": label])),
        ])
    }

    private static func sealing(_ did: String, _ label: String) -> String { "otp \(did) \(label)" }
}

extension SigningSQL {
    /// Destroys the secrets of a user's containers that are void.
    static func deleteOneTimeKeysOfVoid(user: String) -> SQL {
        """
        DELETE FROM signing_otp_keys WHERE did IN
            (SELECT c.did FROM signing_containers c WHERE c.user_id = \(user) AND c.state = 'VOID')
        """
    }

    /// Destroys the secrets of a container that has ended.
    static func deleteOneTimeKeys(of did: String) -> SQL {
        """
        DELETE FROM signing_otp_keys WHERE did = \(did) AND EXISTS (
            SELECT 1 FROM signing_containers c WHERE c.did = \(did) AND c.state IN ('REVOKED', 'VOID'))
        """
    }
}
