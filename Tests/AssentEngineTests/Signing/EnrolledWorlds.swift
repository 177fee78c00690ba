import AssentCore
import AssentSigning
import StoreTesting

@testable import AssentEngine

/// Worlds in which a device of the SDK's has enrolled, all alike, for tests of what comes after it. To enrol costs many
/// times as much as to copy files: on SQLite one world is made, and the others begin with what it has left. On
/// PostgreSQL each is made.
struct EnrolledWorlds: Sendable {
    /// Without a PIN. Sessions are fresh for as long as keys are good.
    static let plain = EnrolledWorlds { try await SigningWorld { $0.freshness = 20 * 365 * 86400 } }

    /// The same with the PIN 271828.
    static let withPIN = EnrolledWorlds(pin: Secret("271828")) {
        try await SigningWorld.withPIN(change: { $0.freshness = 20 * 365 * 86400 })
    }

    private let pin: Secret?
    private let make: @Sendable () async throws -> SigningWorld
    private let first: Task<SDKWorld.Left, any Error>?

    private init(pin: Secret? = nil, _ make: @escaping @Sendable () async throws -> SigningWorld) {
        self.pin = pin
        self.make = make
        first = TestDatabase.isPostgreSQL ? nil : Task { try await Self.left(by: make, pin) }
    }

    private static func enrolled(
        in world: SigningWorld, _ pin: Secret?
    ) async throws -> (sdk: SDKWorld, container: SigningContainer) {
        let sdk = try SDKWorld(world)
        let container = try await sdk.enrolled(sdk.device(), pin: pin)
        return (sdk, container)
    }

    private static func left(
        by make: @Sendable () async throws -> SigningWorld, _ pin: Secret?
    ) async throws -> SDKWorld.Left {
        let (sdk, container) = try await enrolled(in: try await make(), pin)
        return try await sdk.left(with: container)
    }

    /// One more world, and the container of its device.
    func next() async throws -> (sdk: SDKWorld, container: SigningContainer) {
        guard let first else { return try await Self.enrolled(in: try await make(), pin) }
        let left = try await first.value
        let sdk = try await SDKWorld(beginningWith: left)
        let container = try await sdk.device().container(left.container)
        return (sdk, container)
    }
}
