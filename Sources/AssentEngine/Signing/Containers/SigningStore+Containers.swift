import AssentCore
import AssentSigningProtocol
import AssentStore

/// What somebody does to a container.
package enum ContainerChange: Sendable, Hashable {
    /// It may do nothing but ask how it stands.
    case block
    /// It may again do what it did.
    case unblock
    /// It ends.
    case revoke
    /// It has another name.
    case rename(String)
}

extension SigningStore {
    /// A container, whatever its state.
    package func container(did: String) async throws -> SigningContainerRecord? {
        try await first("SELECT * FROM signing_containers WHERE did = \(did) AND iss = \(issuer.name)")
            .map(SigningContainerRecord.init)
    }

    /// The containers of a user, oldest first; at most 100, without those that never became active.
    package func containers(user: String) async throws -> [SigningContainerRecord] {
        try await context.database.run(
            .read(
                """
                SELECT * FROM signing_containers
                WHERE iss = \(issuer.name) AND user_id = \(user) AND state <> 'VOID'
                ORDER BY CASE WHEN number IS NULL THEN 1 ELSE 0 END, created_at, did LIMIT 100
                """)
        ).map(SigningContainerRecord.init)
    }

    /// The keys of a container that count or have counted, in the order of its offers.
    package func keys(did: String) async throws -> [SigningKeyRow] {
        try await context.database.run(
            .read("SELECT * FROM signing_keys WHERE did = \(did) AND state <> 'PENDING' ORDER BY position, kid")
        ).map(SigningKeyRow.init)
    }

    /// How many open transactions a container could fetch; at most 1000.
    package func pending(_ container: SigningContainerRecord, at now: Int64) async throws -> Int {
        let row = try await first(
            """
            SELECT count(*) AS pending FROM signing_transactions
            WHERE \(SigningSQL.isOpen(for: container, at: now))
            """)
        return Int(min(1000, try row?.integer("pending") ?? 0))
    }

    /// Changes a container. The `proof` is there when its device asks.
    ///
    /// - Returns: false when its state does not allow that.
    /// - Throws: ``SigningRefusal`` `replay`.
    package func change(
        _ container: SigningContainerRecord, _ change: ContainerChange, by actor: String, reason: String? = nil,
        proof: SpentProof? = nil, at now: Int64
    ) async throws -> Bool {
        let did = container.did
        let (sql, step): (SQL, String) =
            switch change {
            case .block: (SigningSQL.block(did: did), "blocked")
            case .unblock: (SigningSQL.unblock(did: did), "unblocked")
            case .revoke: (SigningSQL.revoke(did: did, at: now), "revoked")
            case .rename(let name): (SigningSQL.update(did: did, name: name, pushID: nil, properties: nil), "renamed")
            }
        var statements = [SQLStatement(sql, expecting: .exactly(1))]
        if change == .revoke {
            statements += [
                SQLStatement(SigningSQL.retireKeys(did: did)), SQLStatement(SigningSQL.destroySlots(of: did)),
                SQLStatement(SigningSQL.deleteOneTimeKeys(of: did)), telling(.removed, about: did, at: now),
            ]
        }
        let spend = spending(proof, at: now)
        let note = audit.statement(
            record(
                .signingContainer, user: container.userID, did: did, ["step": step, "by": actor, "why": reason]))
        switch try await attempt(statements + spend + [note]) {
        case .done: return true
        case .refused(by: 0): return false
        case .refused: throw SigningRefusal(.replay)
        }
    }

    /// What a device says anew of its container; `nil` leaves a value as it is, an empty push address removes it.
    ///
    /// - Throws: ``SigningRefusal`` `replay`.
    package func update(
        _ container: SigningContainerRecord, name: String?, pushID: String?, properties: String?, proof: SpentProof?,
        at now: Int64
    ) async throws -> Bool {
        let update = SigningSQL.update(did: container.did, name: name, pushID: pushID, properties: properties)
        let note = audit.statement(
            record(.signingContainer, user: container.userID, did: container.did, ["step": "updated"]))
        switch try await attempt([SQLStatement(update, expecting: .exactly(1))] + spending(proof, at: now) + [note]) {
        case .done: return true
        case .refused(by: 0): return false
        case .refused: throw SigningRefusal(.replay)
        }
    }
}

extension SigningSQL {
    static func update(did: String, name: String?, pushID: String?, properties: String?) -> SQL {
        """
        UPDATE signing_containers SET name = coalesce(\(name), name),
            push_id = CASE WHEN \(pushID ?? "") <> '' THEN \(pushID ?? "") WHEN \(pushID != nil) = 1 THEN NULL
                ELSE push_id END,
            properties = coalesce(\(properties), properties)
        WHERE did = \(did) AND state NOT IN ('REVOKED', 'VOID')
        """
    }
}
