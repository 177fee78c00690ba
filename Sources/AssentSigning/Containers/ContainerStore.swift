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

    func read<Part: MessagePart>(_ name: String) async throws -> Part? {
        guard let stored = try await store.value(name) else { return nil }
        return try parse(stored.value)
    }

    /// The records whose names begin so, sorted by name.
    func read<Part: MessagePart>(all prefix: String) async throws -> [Part] {
        var records: [Part] = []
        for name in try await store.names().sorted() where name.utf8.starts(with: prefix.utf8) {
            if let record: Part = try await read(name) { records.append(record) }
        }
        return records
    }

    /// Changes a record; somebody else's change in between is kept.
    ///
    /// - Throws: ``SigningError`` with `missing` if there is no such record; `SecretStoreError` `busy` with this
    ///   sentence if other writers are faster each time.
    @discardableResult
    func modify<Part: MessagePart>(
        _ name: String, missing: SigningError.Code, busy: String, _ change: (inout Part) throws -> Void
    ) async throws -> Part {
        for _ in 0..<16 {
            guard let stored = try await store.value(name) else { throw SigningError(missing) }
            var record: Part = try parse(stored.value)
            let before = record.encoded()
            try change(&record)
            let after = record.encoded()
            guard after != before else { return record }
            do {
                try await store.update(name, to: Secret(bytes: after), expected: .exactly(stored.version))
                return record
            } catch let error as SecretStoreError where error.code == .versionMismatch {
                continue
            }
        }
        throw SecretStoreError(.busy, busy)
    }

    // MARK: Containers

    /// All containers and unfinished enrolments, the oldest first.
    func all() async throws -> [ContainerRecord] {
        try await read(all: Self.prefix).sorted { (one: ContainerRecord, other: ContainerRecord) in
            (one.created, one.id.text) < (other.created, other.id.text)
        }
    }

    func load(_ id: SigningID) async throws -> ContainerRecord {
        guard let record: ContainerRecord = try await read(Self.name(id)) else {
            throw SigningError(.invalidContainer)
        }
        return record
    }

    func insert(_ record: ContainerRecord) async throws {
        try await store.update(Self.name(record.id), to: Secret(bytes: record.encoded()), expected: .absent)
    }

    /// Changes a container; somebody else's change in between is kept.
    @discardableResult
    func modify(_ id: SigningID, _ change: (inout ContainerRecord) throws -> Void) async throws -> ContainerRecord {
        try await modify(
            Self.name(id), missing: .invalidContainer, busy: "Others keep changing the container.", change)
    }

    func remove(_ id: SigningID) async throws {
        try await store.update(Self.name(id), to: nil, expected: .any)
    }

    // MARK: Decisions

    func decision(_ did: SigningID, _ txn: SigningID) async throws -> DecisionRecord? {
        try await read(Self.decision(did, txn))
    }

    /// Stores a decision. The caller has seen, while nobody else may sign one, that there is none about this
    /// transaction; or it has a newer evaluation than the one whose place it takes (`replacing`), which the server did
    /// not take for want of it.
    func keep(_ decision: DecisionRecord, replacing: Bool) async throws {
        try await store.update(
            Self.decision(decision.did, decision.txn), to: Secret(bytes: decision.encoded()),
            expected: replacing ? .any : .absent)
    }

    func decisions(of did: SigningID) async throws -> [DecisionRecord] {
        try await read(all: "\(Self.decisions)\(did.text).")
    }

    /// Removes a decision whose end is known. Another one that has taken its place meanwhile stays.
    func remove(_ decision: DecisionRecord) async throws {
        let name = Self.decision(decision.did, decision.txn)
        guard let stored = try await store.value(name) else { return }
        let now: DecisionRecord = try parse(stored.value)
        guard StrictJSON.same(now.decision, decision.decision) else { return }
        do {
            try await store.update(name, to: nil, expected: .exactly(stored.version))
        } catch let error as SecretStoreError where error.code == .versionMismatch {
            // It was replaced, or removed, just now.
        }
    }

    /// Removes all decisions of a container that has ended.
    func removeDecisions(of did: SigningID) async throws {
        for decision in try await decisions(of: did) {
            try await store.update(Self.decision(did, decision.txn), to: nil, expected: .any)
        }
    }
}
