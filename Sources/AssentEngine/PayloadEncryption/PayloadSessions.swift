import AssentCore
package import AssentPayload
import AssentStore
import Foundation

/// The sessions of payload encryption at one node (docs/payload-encryption.md, "Single use" and "Several nodes").
///
/// Their secrets are in the database once where nodes share one, and in memory alone where one process has it. Which
/// numbers were used is in each node's memory: what another node has seen of unsafe calls is told by
/// ``spendOnce(_:)``. A session authenticates nobody.
package final class PayloadSessions: Sendable {
    private struct Entry: Sendable {
        var session: ServerSession
        let kid: String
        /// The thumbprint of the installation's key that has made it; `nil` where it is of no installation.
        let clientKey: String?
        /// Its place among all that this node was told of.
        let place: Int
        /// When it was last used, as far as this node has seen it or the database knows, in seconds since 1970. It is
        /// what the database is told: that it may have been used elsewhere is only supposed.
        var usedAt: Int64
        /// What its messages derive their keys with; `nil` where that is not kept.
        var keys: SessionKeys?

        /// When it was last in use: a message that is running uses it.
        func lastUse(at now: Int64) -> Int64 { session.isRunning ? now : usedAt }
    }

    /// How many sessions a node has in memory.
    package static let limit = 200_000

    /// What is left of an installation that was told of.
    private enum Left: Hashable, Sendable {
        case nothing
        /// It has this key now, by its thumbprint; sessions that were made by another one have ended.
        case key(String, Change)
    }

    /// When an installation got a key, by the places of the sessions that were there.
    private struct Change: Hashable, Sendable {
        /// The first place behind them.
        let end: Int
        /// Sessions before this place have ended, whichever key has made them: a key that comes back does not bring
        /// back what it had made before it was replaced.
        let replaced: Int
    }

    /// How many seconds may pass until what a node knows of a session's use is in the database.
    package static let touchInterval: Int64 = 60

    private static let batch = 5_000

    /// For how many sessions it is kept what their messages derive their keys with. It takes 600 bytes for each.
    static let keptKeysLimit = 4096

    /// How many installations that have ended or changed are noted before all sessions are looked through for theirs.
    static let endedLimit = 4096

    private let context: EngineContext
    private let keys: PayloadKeys
    private let names: SessionName
    private let versions: SealedVersions
    private let limit: Int
    private let entries = Locked<[[UInt8]: Entry]>([:])
    /// The sessions whose entries have ``Entry/keys``: the first that were used since the last look.
    private let sessionsWithKeys = Locked<[[UInt8]]>([])
    /// The names of the static keys that sessions were made with, each text once: one of its own is a tenth of what a
    /// session takes.
    private let keyNames = Locked<Set<String>>([])
    /// The place of the next session.
    private let nextPlace = Locked(0)
    /// The installations that have ended, or got another key, at this node since all sessions were last looked through.
    /// Many end at once when unused ones are purged, and to look through all sessions for each would stop every message
    /// meanwhile.
    private let ended = Locked<[String: Left]>([:])
    /// When all sessions were last looked through for such as have ended, in seconds since 1970.
    private let sweptAt = Locked<Int64?>(nil)

    /// The sessions of a process; there is one such value in it.
    ///
    /// - Parameters:
    ///   - context: the database and the clock.
    ///   - keys: the static keys.
    ///   - versions: which versions of apps have none: their sessions end with the start of a node that says so.
    ///   - limit: how many sessions are in memory at most.
    package init(
        _ context: EngineContext, keys: PayloadKeys, versions: SealedVersions = SealedVersions([:]),
        limit: Int = PayloadSessions.limit
    ) {
        self.context = context
        self.keys = keys
        self.versions = versions
        self.limit = limit
        names = SessionName(key: context.masterKey.derivedSecret(for: .payloadSessionName).symmetricKey)
        context.ended.listen { [weak self] client, newKey in
            self?.note(client, newKey: newKey)
        }
    }

    /// How many sessions this node knows.
    package var count: Int { entries.withLock { $0.count } }

    /// For how many of them it is kept what their messages derive their keys with.
    var keptKeys: Int { entries.withLock { $0.values.count(where: { $0.keys != nil }) } }

    // MARK: - Handshakes

    /// A new id.
    func makeName() -> [UInt8] { names.make(random: context.random) }

    /// Keeps a session that was agreed on.
    ///
    /// - Parameters:
    ///   - secrets: what was agreed on.
    ///   - peer: who it is with.
    ///   - kid: the static key that it was made with.
    ///   - clientKey: the thumbprint of the key that the installation of `peer` has proved.
    /// - Throws: ``PayloadRefusal``: `busy` when there are too many, `unknownKey` when the key was withdrawn meanwhile,
    ///   or the installation has ended or has another key; ``StoreError``.
    func keep(_ secrets: PayloadSecrets, peer: PayloadPeer, kid: String, clientKey: String? = nil) async throws {
        let now = context.clock.epochSeconds
        let stored = StoredPayloadSession(
            id: secrets.session, kid: kid, secrets: secrets, peer: peer, clientKey: clientKey, begunAt: now,
            usedAt: now)
        guard makeRoom() else { throw PayloadRefusal.busy }
        if context.database.isShared {
            let rows = try await context.database.run(try stored.insertion(context.masterKey))
            guard !rows.isEmpty else { throw PayloadRefusal.unknownKey }
        }
        remember(stored, lastUse: now)
        guard !context.database.isShared, let client = peer.client else { return }
        // Asked when the session is there: an installation that ends or changes later takes it along.
        let rows = try await context.database.run(
            .read("SELECT id FROM client_instances WHERE id = \(client) AND key_thumbprint = \(clientKey)"))
        guard !rows.isEmpty else {
            entries.withLock { $0[stored.id] = nil }
            throw PayloadRefusal.unknownKey
        }
    }

    // MARK: - Messages

    /// What opens the request that begins with `head`, at the listener of `origin`. A session that this node does not
    /// know is read from the database once; an id that no node has made costs no look at it.
    ///
    /// - Throws: ``PayloadRefusal``, ``StoreError``.
    package func opener(_ head: FrameHead, origin: String) async throws -> FrameOpener {
        if let opener = try known(head, origin: origin) { return opener }
        guard context.database.isShared, names.isOurs(head.session) else { throw PayloadRefusal.unknownSession }
        guard let row = try await context.database.run(StoredPayloadSession.reading(head.session)).first else {
            throw PayloadRefusal.unknownSession
        }
        let stored = try StoredPayloadSession(head.session, row, context.masterKey)
        guard !versions.isOff(stored.peer.app, version: stored.peer.version) else {
            throw PayloadRefusal.unknownSession
        }
        let now = context.clock.epochSeconds
        guard makeRoom() else { throw PayloadRefusal.unknownSession }
        // Another node may have seen it be used without having said so yet.
        remember(stored, lastUse: min(now, stored.usedAt + Self.touchInterval))
        guard let opener = try known(head, origin: origin) else { throw PayloadRefusal.unknownSession }
        return opener
    }

    /// `nil` for a session that has ended here or is not known.
    private func known(_ head: FrameHead, origin: String) throws(PayloadRefusal) -> FrameOpener? {
        let now = context.clock.now
        let found = entries.withLock { entries -> (session: ServerSession, keys: SessionKeys?)? in
            guard let entry = entries[head.session] else { return nil }
            if entry.session.isLive(at: now), !hasEnded(entry) { return (entry.session, entry.keys) }
            entries[head.session] = nil
            return nil
        }
        guard let found else { return nil }
        guard found.session.peer.origin == origin else { throw .unknownSession }
        return try found.session.opener(head, at: now, keys: found.keys)
    }

    /// Who a session is with; `nil` for one that has ended here.
    package func peer(of head: FrameHead) -> PayloadPeer? {
        entries.withLock { entries in
            guard let entry = entries[head.session], !hasEnded(entry) else { return nil }
            return entry.session.peer
        }
    }

    /// Takes the number of a message whose first chunk has opened; ``end(_:)`` is due for it then.
    ///
    /// - Returns: what seals its reply.
    /// - Throws: ``PayloadRefusal``.
    package func claim(_ head: FrameHead) throws(PayloadRefusal) -> FrameSealer {
        let (now, random) = (context.clock.now, context.random)
        let result = entries.withLock { entries -> Result<(ServerSession, SessionKeys?), PayloadRefusal> in
            Result { () throws(PayloadRefusal) in
                // Changed where it lies: the window of an entry that is taken out and put back is copied.
                guard let place = entries.index(forKey: head.session), !hasEnded(entries.values[place]) else {
                    throw .unknownSession
                }
                try entries.values[place].session.claim(head.number, at: now)
                entries.values[place].usedAt = max(entries.values[place].usedAt, Int64(now.timeIntervalSince1970))
                return (entries.values[place].session, entries.values[place].keys)
            }
        }
        // Its key is derived when nobody waits for the lock.
        let (session, known) = try result.get()
        return session.sealer(replyTo: head, keys: known ?? kept(session, of: head), random: random)
    }

    /// Keeps what the messages of a session derive their keys with: only somebody who can seal has come here. `nil`
    /// when the cache is full: keys for both directions that are not kept take longer to make than one reply's.
    private func kept(_ session: ServerSession, of head: FrameHead) -> SessionKeys? {
        guard sessionsWithKeys.withLock({ $0.count < Self.keptKeysLimit }) else { return nil }
        let keys = session.keys
        entries.withLock { entries in
            guard let place = entries.index(forKey: head.session), entries.values[place].keys == nil else { return }
            let hasRoom = sessionsWithKeys.withLock { sessions -> Bool in
                guard sessions.count < Self.keptKeysLimit else { return false }
                sessions.append(head.session)
                return true
            }
            if hasRoom { entries.values[place].keys = keys }
        }
        return keys
    }

    /// Makes room for the keys of the sessions that are used from now on.
    private func forgetKeys() {
        let sessions = sessionsWithKeys.withLock { sessions -> [[UInt8]] in
            defer { sessions = [] }
            return sessions
        }
        entries.withLock { entries in for session in sessions { entries[session]?.keys = nil } }
    }

    /// The reply to a message has ended, or was aborted.
    package func end(_ head: FrameHead) {
        let now = context.clock.now
        entries.withLock { entries in
            guard let place = entries.index(forKey: head.session), entries.values[place].session.isRunning else {
                return
            }
            entries.values[place].session.end(at: now)
            entries.values[place].usedAt = max(entries.values[place].usedAt, Int64(now.timeIntervalSince1970))
        }
    }

    /// Spends the number of a message for all nodes: for a call that must not run twice. One process needs no statement
    /// for it.
    ///
    /// - Throws: ``PayloadRefusal``: `repeated`, also for a number too old to tell, or `unknownSession` when what was
    ///   spent is lost with the session; ``StoreError``.
    package func spendOnce(_ head: FrameHead) async throws {
        guard context.database.isShared else { return }
        let row = try await context.database.run(StoredPayloadSession.spending(head)).first
        guard try row?.integer("known") == 1 else {
            entries.withLock { $0[head.session] = nil }
            throw PayloadRefusal.unknownSession
        }
        guard try row?.integer("claimed") == 1 else { throw PayloadRefusal.repeated }
    }

    // MARK: - The end

    /// Ends the sessions of a key that was withdrawn; other nodes learn it by ``look()``.
    ///
    /// - Throws: ``StoreError``.
    package func end(ofKey kid: String) async throws {
        forget(keys: [kid])
        guard context.database.isShared else { return }
        _ = try await context.database.run(
            .unlogged(
                """
                DELETE FROM payload_sessions WHERE id IN (
                    SELECT id FROM payload_sessions WHERE kid = \(kid) ORDER BY id FOR UPDATE)
                RETURNING id
                """))
    }

    /// Due each minute: tells the other nodes which sessions were used here, and forgets those that have ended.
    ///
    /// - Throws: ``StoreError``.
    package func look() async throws {
        let now = context.clock.now
        let noted = ended.withLock { $0 }
        let (uses, kids) = entries.withLock { entries in
            // One that has become idle here may have been used elsewhere: it is read again when it is needed.
            entries = entries.filter { $0.value.session.isLive(at: now) && !hasEnded($0.value) }
            let seconds = Int64(now.timeIntervalSince1970)
            return (entries.mapValues { $0.lastUse(at: seconds) }, Set(entries.values.map(\.kid)))
        }
        forget(noted)
        forgetKeys()
        guard !uses.isEmpty else { return }
        guard context.database.isShared else { return forget(keys: try await keys.withdrawn(among: kids)) }
        let gone = try await context.database.run(StoredPayloadSession.touching(uses)).compactMap { row in
            Base64URL.decode(try row.text("id"))
        }
        entries.withLock { entries in for id in gone { entries[id] = nil } }
    }

    /// Deletes what has ended from the database, a limited number of rows at a time.
    ///
    /// - Throws: ``StoreError``.
    package func purge() async throws {
        guard context.database.isShared else { return }
        let now = context.clock.epochSeconds
        let idle = now - Int64(ServerSession.idleLimit) - 2 * Self.touchInterval
        while true {
            let deleted = try await context.database.run(
                .unlogged(
                    """
                    DELETE FROM payload_sessions WHERE id IN (
                        SELECT id FROM payload_sessions
                        WHERE used_at <= \(idle) OR begun_at <= \(now - Int64(ServerSession.lifetime))
                        LIMIT \(Self.batch) FOR UPDATE SKIP LOCKED)
                    RETURNING id
                    """))
            guard deleted.count == Self.batch else { return }
        }
    }

    /// Ends the sessions of an installation that has ended, or that its old key has made: the next look forgets them.
    private func note(_ client: String, newKey: String?) {
        let end = nextPlace.withLock { $0 }
        let isFull = ended.withLock { ended in
            switch (ended[client], newKey) {
            // A change that is told late does not bring back what has ended.
            case (.nothing?, _), (_, nil): ended[client] = .nothing
            case (.key(_, let last)?, let key?): ended[client] = .key(key, Change(end: end, replaced: last.end))
            case (nil, let key?): ended[client] = .key(key, Change(end: end, replaced: 0))
            }
            return ended.count >= Self.endedLimit
        }
        // A purge of many may run between two looks.
        guard isFull else { return }
        let noted = ended.withLock { $0 }
        entries.withLock { entries in entries = entries.filter { !hasEnded($0.value) } }
        forget(noted)
    }

    /// Whether the installation of a session has ended at this node, or has another key here than has made it.
    private func hasEnded(_ entry: Entry) -> Bool {
        guard let client = entry.session.peer.client else { return false }
        switch ended.withLock({ $0[client] }) {
        case nil: return false
        case .nothing?: return true
        case .key(let key, let change)?: return entry.clientKey != key || entry.place < change.replaced
        }
    }

    /// What all sessions were looked through for. An installation that has changed once more since then stays.
    private func forget(_ noted: [String: Left]) {
        ended.withLock { ended in ended = ended.filter { noted[$0.key] != $0.value } }
    }

    private func forget(keys kids: Set<String>) {
        guard !kids.isEmpty else { return }
        entries.withLock { entries in entries = entries.filter { !kids.contains($0.value.kid) } }
    }

    /// Whether one more session fits. Where nodes share a database some that are there and have no message running are
    /// forgotten for it. To look through all of them costs too much to be done for each that comes.
    private func makeRoom() -> Bool {
        guard count >= limit else { return true }
        let now = context.clock.now
        let second = context.clock.epochSeconds
        let isDue = sweptAt.withLock { sweptAt in
            defer { sweptAt = second }
            return sweptAt != second
        }
        return entries.withLock { entries in
            if isDue { entries = entries.filter { $0.value.session.isLive(at: now) && !hasEnded($0.value) } }
            guard entries.count >= limit else { return true }
            guard context.database.isShared else { return false }
            let idle = entries.lazy.filter { !$0.value.session.isRunning }.map(\.key)
            let forgotten = Array(idle.prefix(max(1, limit / 64)))
            for id in forgotten { entries[id] = nil }
            return !forgotten.isEmpty
        }
    }

    /// Two requests may have read the same session: the numbers that the first one has seen stay.
    private func remember(_ stored: StoredPayloadSession, lastUse: Int64) {
        let session = ServerSession(
            stored.secrets, peer: stored.peer, begun: Date(timeIntervalSince1970: TimeInterval(stored.begunAt)),
            lastUse: Date(timeIntervalSince1970: TimeInterval(lastUse)))
        let place = nextPlace.withLock { place in
            defer { place += 1 }
            return place
        }
        let kid = keyNames.withLock { $0.insert(stored.kid).memberAfterInsert }
        let entry = Entry(
            session: session, kid: kid, clientKey: stored.clientKey, place: place, usedAt: stored.usedAt)
        entries.withLock { entries in
            if entries[stored.id] == nil { entries[stored.id] = entry }
        }
    }
}
