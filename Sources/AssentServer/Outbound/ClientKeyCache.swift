import AssentCore
import AssentEngine
import AssentJOSE
import Foundation

/// The key sets that clients publish, fetched and kept for a while. There is one for a process, and it knows no more
/// addresses than the file has.
actor ClientKeyCache: ClientKeySets {
    typealias Fetch = @Sendable (String) async throws -> [UInt8]

    /// Why there is no set.
    enum Failure: Error, Hashable {
        /// It could not be fetched a moment ago, and is not asked for again yet.
        case triedRecently
    }

    /// Seconds for which a set is used: so long does a key work that its client has withdrawn.
    static let freshness: Double = 600

    /// Seconds from one attempt to fetch a set to the next, however many unknown keys are named.
    static let floor: Double = 30

    private struct Entry {
        var set: JWKSet?
        var fetchedAt: Double
        var triedAt: Double
        var running: Task<JWKSet, any Error>?
    }

    private let clock: any WallClock
    private let fetch: Fetch
    private var entries: [String: Entry] = [:]

    init(clock: any WallClock, fetch: @escaping Fetch) {
        self.clock = clock
        self.fetch = fetch
    }

    /// The sets that `calls` can fetch.
    init(clock: any WallClock, calls: OutboundCalls) {
        self.init(clock: clock) {
            try await calls.fetch($0, accepting: "application/jwk-set+json, application/json")
        }
    }

    func keys(at url: String, keyID: String?, algorithm: SignatureAlgorithm) async throws -> JWKSet {
        let fresh = freshSet(at: url)
        if let fresh, !fresh.candidates(keyID: keyID, algorithm: algorithm).isEmpty { return fresh }
        if let running = entries[url]?.running { return try await Self.outcome(of: running, or: fresh) }
        if let tried = entries[url]?.triedAt, (0..<Self.floor).contains(now - tried) {
            guard let fresh else { throw Failure.triedRecently }
            return fresh
        }
        let running = Task { [fetch] in try ClientKeys.published(try await fetch(url)) }
        entries[url, default: Entry(fetchedAt: now, triedAt: now)].running = running
        entries[url]?.triedAt = now
        // The fetch goes on when the request that has begun it is given up: others wait for it.
        let result = await running.result
        entries[url]?.running = nil
        if case .success(let set) = result {
            entries[url]?.set = set
            entries[url]?.fetchedAt = now
        }
        return try await Self.outcome(of: running, or: fresh)
    }

    private var now: Double { clock.now.timeIntervalSince1970 }

    /// The set that is known, while it may be used. A clock that was put back makes it old.
    private func freshSet(at url: String) -> JWKSet? {
        guard let entry = entries[url], let set = entry.set, (0..<Self.freshness).contains(now - entry.fetchedAt)
        else { return nil }
        return set
    }

    /// What a fetch brings, or the set that is known and lacks the key: then the assertion is refused.
    private static func outcome(of running: Task<JWKSet, any Error>, or fresh: JWKSet?) async throws -> JWKSet {
        do {
            return try await running.value
        } catch {
            guard let fresh else { throw error }
            return fresh
        }
    }
}
