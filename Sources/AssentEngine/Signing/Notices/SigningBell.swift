import AssentCore
import AssentSigningProtocol
import AssentStore
import Foundation
import Logging

/// Lets calls wait for what other nodes do, without holding a connection to the database: one look every 250 ms for
/// all that wait on this node.
final class SigningBell: Sendable {
    /// What a call waits for.
    enum Topic: Hashable, Sendable {
        /// An open transaction of a container, or a notice for it.
        case container(SigningID)
        /// The end of a transaction.
        case transaction(SigningID)
    }

    /// Seconds between two looks.
    static let interval: TimeInterval = 0.25

    /// The longest wait, in seconds.
    static let longest = 25

    /// For how many topics one statement asks: with what each of them knows besides, fewer parameters than databases
    /// take.
    static let pieceLimit = 500

    private struct Waiter {
        let id: UInt64
        let topic: Topic
        /// Transactions that do not wake it.
        let known: [SigningID]
        /// How long it waits.
        let time: WaitingTime
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var next: UInt64 = 0
        var waiting: [Waiter] = []
        var isLooking = false
        /// Those who stopped waiting before they had begun.
        var gone: Set<UInt64> = []
    }

    private let context: EngineContext
    private let state = Locked(State())

    init(_ context: EngineContext) {
        self.context = context
    }

    /// Waits until there is something to see besides these transactions, at most so many seconds. A second call that
    /// waits for one container ends the first one's waiting.
    func wait(for topic: Topic, besides known: [SigningID] = [], seconds: Int) async {
        guard seconds > 0 else { return }
        let time = WaitingTime(TimeInterval(min(seconds, Self.longest)), from: context.clock.now)
        let id = state.withLock { state in
            state.next += 1
            return state.next
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let waiter = Waiter(id: id, topic: topic, known: known, time: time, continuation: continuation)
                let (starts, released) = state.withLock { state -> (Bool, [Waiter]) in
                    if state.gone.remove(id) != nil { return (false, [waiter]) }
                    var released: [Waiter] = []
                    if case .container = topic { released = Self.remove(&state) { $0.topic == topic } }
                    state.waiting.append(waiter)
                    defer { state.isLooking = true }
                    return (!state.isLooking, released)
                }
                for waiter in released { waiter.continuation.resume() }
                if starts { Task { await look() } }
            }
        } onCancel: {
            let waiter = state.withLock { state -> [Waiter] in
                let found = Self.remove(&state) { $0.id == id }
                if found.isEmpty { state.gone.insert(id) }
                return found
            }
            for waiter in waiter { waiter.continuation.resume() }
        }
        state.withLock { _ = $0.gone.remove(id) }
    }

    private static func remove(_ state: inout State, where isIt: (Waiter) -> Bool) -> [Waiter] {
        let found = state.waiting.filter(isIt)
        state.waiting.removeAll(where: isIt)
        return found
    }

    /// Looks until nobody waits any more.
    private func look() async {
        while true {
            let (now, waiting, late) = state.withLock { state -> (Date, [Topic: [SigningID]], [Waiter]) in
                // Read in here: nobody who waits has begun later.
                let now = context.clock.now
                let late = Self.remove(&state) { $0.time.isOver(at: now) }
                if state.waiting.isEmpty { state.isLooking = false }
                // A container can only have one that waits, and the others know of nothing besides.
                let waiting = Dictionary(
                    state.waiting.map { ($0.topic, $0.known) }, uniquingKeysWith: { first, _ in first })
                return (now, waiting, late)
            }
            for waiter in late { waiter.continuation.resume() }
            if waiting.isEmpty { return }
            do {
                try await context.clock.sleep(until: now.addingTimeInterval(Self.interval))
                let ready = try await ready(waiting)
                let rung = state.withLock { state in Self.remove(&state) { ready.contains($0.topic) } }
                for waiter in rung { waiter.continuation.resume() }
            } catch {
                // A database that does not answer is asked again; waiting ends by its time.
                context.logger.warning("waiting calls cannot look", metadata: ["error": "\(error)"])
            }
        }
    }

    /// Which topics have something to see, besides what is known of each.
    private func ready(_ waiting: [Topic: [SigningID]]) async throws -> Set<Topic> {
        var found: Set<Topic> = []
        var rest = Array(waiting)[...]
        while !rest.isEmpty {
            found.formUnion(try await ready(among: rest.prefix(Self.pieceLimit)))
            rest = rest.dropFirst(Self.pieceLimit)
        }
        return found
    }

    private func ready(among piece: ArraySlice<(key: Topic, value: [SigningID])>) async throws -> Set<Topic> {
        let now = context.clock.epochSeconds
        var (dids, txns, known): ([SQLValue], [SQLValue], [SQLValue]) = ([], [], [])
        for (topic, others) in piece {
            switch topic {
            case .container(let did):
                dids.append(.text(did.text))
                known += others.map { SQLValue.text("\(did) \($0)") }
            case .transaction(let txn): txns.append(.text(txn.text))
            }
        }
        let (containers, transactions) = (Self.list(dids), Self.list(txns))
        let rows = try await context.database.run(
            .read(
                """
                SELECT DISTINCT c.did AS id, 1 AS is_container FROM signing_containers c
                JOIN signing_transactions t ON t.user_id = c.user_id AND t.iss = c.iss
                WHERE c.did IN (\(containers)) AND c.state = \(ContainerState.active)
                    AND t.state = \(SigningTransactionRecord.State.pending) AND t.expires_at > \(now)
                    AND (t.did IS NULL OR t.did = c.did) AND (t.claimed_by IS NULL OR t.claimed_by = c.did)
                    AND c.did || ' ' || t.txn NOT IN (\(Self.list(known)))
                    AND \(SigningTransactionSQL.hasKey(for: "t.kind", did: "c.did"))
                UNION ALL
                SELECT DISTINCT n.did AS id, 1 AS is_container FROM signing_notices n WHERE n.did IN (\(containers))
                UNION ALL
                SELECT txn AS id, 0 AS is_container FROM signing_transactions
                WHERE txn IN (\(transactions)) AND (state <> \(SigningTransactionRecord.State.pending) OR expires_at <= \(now))
                """))
        return Set(
            try rows.map { row in
                let id: SigningID = try row.value("id")
                return try row.bool("is_container") ? .container(id) : .transaction(id)
            })
    }

    /// The values of `IN`; a text that nothing is named by when there are none.
    private static func list(_ values: [SQLValue]) -> SQL { values.isEmpty ? "''" : SQL(list: values) }
}
