import AssentCore
import AssentSigningProtocol
import AssentStore

/// A key for one-time codes that a container has.
struct SigningOneTimeSecret: Sendable {
    let label: String
    /// The id of the policy that protects it.
    let policy: String
    /// The key, as the device gets it.
    let uri: Secret
    /// The least counter value or time step whose code was not used yet.
    var counter: Int64 = 0
}

extension SigningOneTimeSecret {
    init(_ row: SQLRow, _ context: EngineContext) throws {
        self.init(
            label: try row.text("label"), policy: try row.text("policy"), uri: try Self.open(row, context),
            counter: try row.integer("counter"))
    }

    /// The key in a row with `did`, `label` and `sealed_uri`.
    static func open(_ row: SQLRow, _ context: EngineContext) throws -> Secret {
        try context.masterKey.open(
            try row.blob("sealed_uri"), for: .signingContainer,
            context: sealing(try row.value("did"), try row.text("label")))
    }

    /// The statement that gives a new container the key. The secret is sealed under the master key.
    func inserting(
        of did: SigningID, position: Int, _ context: EngineContext, at now: Int64
    ) throws -> SQL {
        let sealed = try context.masterKey.seal(uri, for: .signingContainer, context: Self.sealing(did, label))
        return """
            INSERT INTO signing_otp_keys (did, label, position, policy, sealed_uri, counter, created_at)
            VALUES (\(did), \(label), \(position), \(policy), \(sealed), 0, \(now))
            ON CONFLICT DO NOTHING
            """
    }

    private static func sealing(_ did: SigningID, _ label: String) -> String { "otp \(did) \(label)" }
}

enum OneTimeKeySQL {
    /// The keys of a container, in the order of its offer.
    static func keys(of did: SigningID) -> SQL {
        "SELECT * FROM signing_otp_keys WHERE did = \(did) ORDER BY position"
    }

    /// The keys of that name which the containers of a user have, in whatever state.
    static func keys(_ label: String, ofUser user: String, issuer: String) -> SQL {
        """
        SELECT k.* FROM signing_otp_keys k JOIN signing_containers c ON c.did = k.did
        WHERE c.iss = \(issuer) AND c.user_id = \(user) AND k.label = \(label)
        """
    }

    /// Destroys the secrets of a container that has ended.
    static func delete(of did: SigningID) -> SQL {
        """
        DELETE FROM signing_otp_keys WHERE did = \(did) AND EXISTS (
            SELECT 1 FROM signing_containers c WHERE c.did = \(did) AND c.state IN (\(ContainerState.ended)))
        """
    }
}
