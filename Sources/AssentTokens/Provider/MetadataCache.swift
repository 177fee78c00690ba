import AssentCore
import Foundation

/// What the provider says of itself, fetched when it is first needed, and again after a day.
actor MetadataCache {
    private static let lifetime: TimeInterval = 24 * 3600

    private let configuration: TokenConfiguration
    private let exchange: ProviderExchange
    private let clock: any WallClock
    private var cached: (metadata: ProviderMetadata, at: Date)?
    private var fetching: Task<ProviderMetadata, any Error>?

    init(_ configuration: TokenConfiguration, exchange: ProviderExchange, clock: any WallClock) {
        self.configuration = configuration
        self.exchange = exchange
        self.clock = clock
    }

    func metadata() async throws -> ProviderMetadata {
        if let cached, (0..<Self.lifetime).contains(clock.now.timeIntervalSince(cached.at)) {
            return cached.metadata
        }
        if let fetching { return try await fetching.value }
        let task = Task {
            defer { fetching = nil }
            let reply = try await exchange.get(configuration.discoveryURL)
            guard reply.status == 200, let object = reply.object else {
                throw TokenError(
                    .malformedReply, "The provider's description of itself cannot be read.", status: reply.status)
            }
            let metadata = try ProviderMetadata(object, issuer: configuration.issuer)
            cached = (metadata, clock.now)
            return metadata
        }
        fetching = task
        return try await task.value
    }
}
