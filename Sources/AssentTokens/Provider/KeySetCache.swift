import AssentCore
import AssentJOSE
import Foundation

/// A provider's public keys, fetched when they are needed and again when a signature names a key that is not among
/// them.
actor KeySetCache {
    /// How long keys are used without asking again, in seconds.
    static let lifetime: TimeInterval = 24 * 3600

    /// How many seconds lie at least between a fetch and one that a signature asks for, so that forged tokens cannot
    /// make us hammer the provider.
    static let pause: TimeInterval = 30

    private let exchange: ProviderExchange
    private let clock: any WallClock
    private var cached: (url: String, keys: JWKSet, at: Date)?
    private var fetching: (url: String, task: Task<JWKSet, any Error>)?
    private var lastFetch: (url: String, at: Date, failure: (any Error)?)?

    init(exchange: ProviderExchange, clock: any WallClock) {
        self.exchange = exchange
        self.clock = clock
    }

    /// Verifies a signature by the keys at `url`.
    ///
    /// - Throws: `JOSEError` when it does not hold, ``TokenError`` when the keys cannot be had: then nothing is known
    ///   of it.
    func verify(_ jws: UnverifiedJWS, keysAt url: String, algorithms: Set<SignatureAlgorithm>) async throws
        -> VerifiedJWS
    {
        let keys = try await keys(at: url)
        do throws(JOSEError) {
            return try jws.verified(with: keys, algorithms: algorithms)
        } catch {
            guard error.code == .noMatchingKey || error.code == .invalidSignature else { throw error }
            guard let newer = try await newerKeys(at: url, than: keys) else { throw error }
            return try jws.verified(with: newer, algorithms: algorithms)
        }
    }

    private func keys(at url: String) async throws -> JWKSet {
        if let cached, cached.url == url, (0..<Self.lifetime).contains(clock.now.timeIntervalSince(cached.at)) {
            return cached.keys
        }
        return try await fetch(url)
    }

    private func newerKeys(at url: String, than keys: JWKSet) async throws -> JWKSet? {
        if let lastFetch, lastFetch.url == url,
            (0..<Self.pause).contains(clock.now.timeIntervalSince(lastFetch.at))
        {
            if let failure = lastFetch.failure { throw failure }
            return cached.flatMap { $0.url == url && $0.keys != keys ? $0.keys : nil }
        }
        let newer = try await fetch(url)
        return newer == keys ? nil : newer
    }

    private func fetch(_ url: String) async throws -> JWKSet {
        if let fetching, fetching.url == url { return try await fetching.task.value }
        let task = Task {
            defer { fetching = nil }
            do {
                let keys = try await download(url)
                cached = (url, keys, clock.now)
                lastFetch = (url, clock.now, nil)
                return keys
            } catch {
                lastFetch = (url, clock.now, error)
                throw error
            }
        }
        fetching = (url, task)
        return try await task.value
    }

    private func download(_ url: String) async throws -> JWKSet {
        let reply = try await exchange.get(url)
        guard reply.status == 200, let object = reply.object else {
            throw TokenError(.malformedReply, "The provider's keys cannot be read.", status: reply.status)
        }
        do throws(JOSEError) {
            return try JWKSet(.object(object))
        } catch {
            throw TokenError(
                .malformedReply, "The provider's keys cannot be used: \(error.explanation)", status: reply.status)
        }
    }
}
