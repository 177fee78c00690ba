import AssentCore
import AssentSigningProtocol

/// The device's records in a store of secrets. Each change is stored before what follows from it is done.
struct ContainerStore: Sendable {
    let store: any SecretStore

    private static let prefix = "signing.container."
    private static let decisions = "signing.decision."
    private static let limit = 1 << 20

    private static func name(_ id: SigningID) -> String { prefix + id.text }

    private static func decision(_ did: SigningID, _ txn: SigningID) -> String {
        "\(decisions)\(did.text).\(txn.text)"
    }

    func parse<Part: MessagePart>(_ secret: Secret) throws(SigningError) -> Part {
        do {
            return try Part(plaintext: secret.revealBytes(), limit: Self.limit)
        } catch {
            throw SigningError(.secureData, "A record of the store cannot be read. \(error.detail)")
        }
    }

    /// All containers and unfinished enrolments, the oldest first.
    func all() async throws -> [ContainerRecord] {
        var records: [ContainerRecord] = []
        for name in try await store.names() where name.utf8.starts(with: Self.prefix.utf8) {
            guard let stored = try await store.value(name) else { continue }
            records.append(try parse(stored.value))
        }
        return records.sorted { ($0.created, $0.id.text) < ($1.created, $1.id.text) }
    }

    func load(_ id: SigningID) async throws -> ContainerRecord {
        guard let stored = try await store.value(Self.name(id)) else { throw SigningError(.invalidContainer) }
        return try parse(stored.value)
    }

    func insert(_ record: ContainerRecord) async throws {
        try await store.update(Self.name(record.id), to: Secret(bytes: record.encoded()), expected: .absent)
    }

    /// Changes a record; somebody else's change in between is kept.
    @discardableResult
    func modify(_ id: SigningID, _ change: (inout ContainerRecord) throws -> Void) async throws -> ContainerRecord {
        for _ in 0..<16 {
            guard let stored = try await store.value(Self.name(id)) else { throw SigningError(.invalidContainer) }
            var record: ContainerRecord = try parse(stored.value)
            let before = record.encoded()
            try change(&record)
            let after = record.encoded()
            guard after != before else { return record }
            do {
                try await store.update(Self.name(id), to: Secret(bytes: after), expected: .exactly(stored.version))
                return record
            } catch let error as SecretStoreError where error.code == .versionMismatch {
                continue
            }
        }
        throw SecretStoreError(.busy, "Others keep changing the container.")
    }

    func remove(_ id: SigningID) async throws {
        try await store.update(Self.name(id), to: nil, expected: .any)
    }

    // MARK: Decisions

    func decision(_ did: SigningID, _ txn: SigningID) async throws -> DecisionRecord? {
        guard let stored = try await store.value(Self.decision(did, txn)) else { return nil }
        return try parse(stored.value)
    }

    /// Stores a decision. The caller has seen, while nobody else may sign one, that there is none about this
    /// transaction.
    func keep(_ decision: DecisionRecord) async throws -> DecisionRecord {
        try await store.update(
            Self.decision(decision.did, decision.txn), to: Secret(bytes: decision.encoded()), expected: .absent)
        return decision
    }

    /// Puts a decision with a newer evaluation in the place of one that the server did not take for want of it.
    func replace(_ earlier: DecisionRecord, by decision: DecisionRecord) async throws -> DecisionRecord {
        try await store.update(
            Self.decision(earlier.did, earlier.txn), to: Secret(bytes: decision.encoded()), expected: .any)
        return decision
    }

    func decisions(of did: SigningID) async throws -> [DecisionRecord] {
        var records: [DecisionRecord] = []
        let prefix = "\(Self.decisions)\(did.text)."
        for name in try await store.names() where name.utf8.starts(with: prefix.utf8) {
            guard let stored = try await store.value(name) else { continue }
            records.append(try parse(stored.value))
        }
        return records
    }

    func remove(_ decision: DecisionRecord) async throws {
        try await store.update(Self.decision(decision.did, decision.txn), to: nil, expected: .any)
    }
}
