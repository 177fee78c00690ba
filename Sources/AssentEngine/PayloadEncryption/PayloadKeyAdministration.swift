import AssentCore

/// What administrators do with the static keys of payload encryption, which all realms share, each act with its audit
/// record. All others get `forbidden`, also administrators whose realm does not change what all realms share.
package struct PayloadKeyAdministration: Sendable {
    private let administration: Administration
    private let keys: PayloadKeys
    private let sessions: PayloadSessions

    /// How many days a key may be valid.
    package static let days: ClosedRange<Int64> = 1...3650

    private static let event = AuditEvent.adminPayloadKeys

    package init(_ administration: Administration, keys: PayloadKeys, sessions: PayloadSessions) {
        (self.administration, self.keys, self.sessions) = (administration, keys, sessions)
    }

    /// All keys, oldest first.
    ///
    /// - Throws: ``EngineError`` `forbidden`.
    package func list(by session: LiveSession) async throws -> [PayloadKeys.Listed] {
        try await administration.demandSharedAdministrator(Self.event, session)
        return try await administration.context.translatingStoreErrors {
            let listed = try await keys.list()
            try await administration.audit.write(administration.record(Self.event, by: session, about: nil))
            return listed
        }
    }

    /// Makes a key that handshakes take from now on, for so many days.
    ///
    /// - Throws: ``EngineError``: `forbidden`, `invalidRequest`.
    package func add(days: Int64, by session: LiveSession) async throws -> PayloadKeys.Listed {
        try await administration.demandSharedAdministrator(Self.event, session)
        guard Self.days.contains(days) else { throw EngineError.invalidRequest("A key is valid for 1 to 3650 days.") }
        let now = administration.context.clock.epochSeconds
        return try await administration.context.translatingStoreErrors {
            try await keys.add(notBefore: now, notAfter: now + days * 86_400) { kid in
                administration.audit.statement(record("add", kid, by: session))
            }
        }
    }

    /// Takes a key back for good, and ends its sessions: here at once, at other nodes within a minute.
    ///
    /// - Throws: ``EngineError``: `forbidden`, `notFound` when the key is unknown or was withdrawn before.
    package func withdraw(_ kid: String, by session: LiveSession) async throws {
        try await administration.demandSharedAdministrator(Self.event, session)
        try await administration.context.translatingStoreErrors {
            let isDone = try await keys.withdraw(
                kid, noting: administration.audit.statement(record("withdraw", kid, by: session)))
            guard isDone else {
                throw EngineError(.notFound, "The server has no key with that id, or it was already withdrawn.")
            }
            try await sessions.end(ofKey: kid)
        }
    }

    private func record(_ act: String, _ kid: String, by session: LiveSession) -> AuditRecord {
        var record = administration.record(Self.event, by: session, about: nil)
        record.detail["act"] = .string(act)
        record.detail["kid"] = .string(kid)
        return record
    }
}
