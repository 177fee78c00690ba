import AssentCore
import AssentJOSE
import Foundation

/// A provider's public keys, fetched when they are needed and again when a signature names a key that is not among them.
actor KeySetCache {
    /// How long keys are used without asking again, in seconds.
    static let lifetime: TimeInterval = 24 * 3600

    /// How many seconds lie at least between two fetches, so that forged tokens cannot make us hammer the provider.
    static let pause: TimeInterval = 30

    private let exchange: ProviderExchange
    private let clock: any WallClock
    private var cached: (url: String, keys: JWKSet, at: Date)?
    private var fetching: Task<JWKSet, any Error>?

    init(exchange: ProviderExchange, clock: any WallClock) {
        self.exchange = exchange
        self.clock = clock
    }

    func verify(_ jws: UnverifiedJWS, keysAt url: String, algorithms: Set<SignatureAlgorithm>) async throws
        -> VerifiedJWS
    {
        let keys = try await keys(at: url, olderThan: Self.lifetime)
        do throws(JOSEError) {
            return try jws.verified(with: keys, algorithms: algorithms)
        } catch {
            guard error.code == .noMatchingKey || error.code == .invalidSignature else { throw error }
            let newer = try await self.keys(at: url, olderThan: Self.pause)
            guard newer != keys else { throw error }
            return try jws.verified(with: newer, algorithms: algorithms)
        }
    }

    private func keys(at url: String, olderThan age: TimeInterval) async throws -> JWKSet {
        if let cached, cached.url == url, (0..<age).contains(clock.now.timeIntervalSince(cached.at)) {
            return cached.keys
        }
        if let fetching { return try await fetching.value }
        let task = Task {
            defer { fetching = nil }
            let keys = try await fetch(url)
            cached = (url, keys, clock.now)
            return keys
        }
        fetching = task
        return try await task.value
    }

    private func fetch(_ url: String) async throws -> JWKSet {
        let reply = try await exchange.get(url)
        guard reply.status == 200, let object = reply.object else {
            throw TokenError(.malformedReply, "the provider's keys cannot be read", status: reply.status)
        }
        do throws(JOSEError) {
            return try JWKSet(.object(object))
        } catch {
            throw TokenError(.malformedReply, "the provider's keys: \(error)", status: reply.status)
        }
    }
}
