import AssentCore
import AssentEnforcement
import Crypto
import Foundation

/// Grants that may be used again, for a route with `cacheSeconds`. Nothing else is kept: no advice, no refusal, and
/// nothing that a transaction or a proof was for.
///
/// A grant is found by a keyed hash of the whole question, so that what is in memory names no credential, and nobody
/// can choose questions that collide.
struct DecisionCache: Sendable {
    /// Names one question, whatever its attempt.
    struct Key: Hashable, Sendable {
        fileprivate let code: [UInt8]
    }

    private struct Entry {
        let grant: EnforcementAnswer.Grant
        let ends: Date
    }

    private struct State {
        var entries: [Key: Entry] = [:]
        /// The keys in the order of their entries; those before `first` are gone.
        var order: [Key] = []
        var first = 0
        /// The latest time at which something was looked up or kept.
        var latest = Date.distantPast

        /// Forgets everything when the clock was set back: nobody knows then how old a grant is, and each would be used
        /// for too long, or again when its time comes a second time.
        mutating func forget(setBackTo now: Date) {
            if now < latest { (entries, order, first) = ([:], [], 0) }
            latest = now
        }
    }

    /// How many grants are kept, unless a test says otherwise; then the oldest one goes.
    static let usualCapacity = 10_000

    private let capacity: Int
    private let clock: any WallClock
    private let key: SymmetricKey
    private let state = Locked(State())

    /// An empty cache with a key of its own.
    init(capacity: Int = Self.usualCapacity, clock: any WallClock, random: any RandomSource) {
        self.capacity = max(1, capacity)
        self.clock = clock
        key = SymmetricKey(data: random.bytes(32))
    }

    /// The key of a question, which has everything that the answer depends on: credentials, resource, method, address,
    /// and what the route asks for. The realm stands in no question: it says who is asked.
    func key(of question: EnforcementQuestion, realm: String) -> Key {
        var question = question
        question.attempt = ""
        let whole = JSONValue.array([.string(realm), question.json])
        let code = HMAC<SHA256>.authenticationCode(for: whole.serializedBytes(), using: key)
        return Key(code: Array(code))
    }

    /// A grant that was kept and has not ended.
    func grant(_ key: Key) -> EnforcementAnswer.Grant? {
        state.withLock { state in
            // Within the lock: else a task that is overtaken would have the clock seem to go back.
            let now = clock.now
            state.forget(setBackTo: now)
            return state.entries[key].flatMap { $0.ends > now ? $0.grant : nil }
        }
    }

    /// Keeps a grant for some seconds from `asked` on: the time at which it was asked for, and not the one at which the
    /// answer came.
    func keep(_ grant: EnforcementAnswer.Grant, _ key: Key, seconds: Int, from asked: Date) {
        let ends = asked.addingTimeInterval(TimeInterval(seconds))
        state.withLock { state in
            let now = clock.now
            state.forget(setBackTo: now)
            guard asked <= now, ends > now else { return }
            if state.entries.updateValue(Entry(grant: grant, ends: ends), forKey: key) == nil {
                state.order.append(key)
            }
            while state.entries.count > capacity, state.first < state.order.count {
                state.entries[state.order[state.first]] = nil
                state.first += 1
            }
            guard state.first > capacity else { return }
            state.order.removeFirst(state.first)
            state.first = 0
        }
    }

    /// How many grants are kept, ended ones included.
    var count: Int { state.withLock { $0.entries.count } }
}
