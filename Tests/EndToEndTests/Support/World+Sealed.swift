import Assent
import AssentCore
import AssentEngine
import AssentPayload
import AssentStore
import Foundation

@testable import AssentDemo
@testable import AssentServer

/// A world whose apps seal all that they send, from the first call on: so a story is told twice, plainly and sealed,
/// without a word of it changed.
extension World {
    /// Two keys of a world's server, made before it has an administrator who could.
    static func payloadKeys(of world: DemoWorld) async throws -> [PayloadKey] {
        let keys = PayloadKeys(world.server.context)
        let now = world.server.context.clock.epochSeconds
        var made: [PayloadKey] = []
        for _ in 0..<2 {
            let key = try await keys.add(notBefore: now, notAfter: now + 365 * 86_400) { _ in
                SQLStatement.read("SELECT 1 AS one")
            }
            made.append(try PayloadKey(Base64URL.decode(key.publicKey) ?? []))
        }
        return made
    }

    /// Where apps of a world send their calls.
    static func payloadOrigins(of world: DemoWorld) throws -> [Origin] {
        try [world.endpoints.server, world.endpoints.gateway].compactMap { $0 }.map { try Origin($0) }
    }
}

extension SealedWire {
    /// A way that seals all calls to these origins, and leads past here. Other calls go as they are: a gateway without
    /// a database has no keys.
    func sealing(
        _ network: any HTTPTransport, to origins: [Origin], with keys: [PayloadKey], clock: any WallClock
    ) -> any HTTPTransport {
        let passing = watching(network, to: origins)
        let sealed = origins.map { origin in
            PayloadOrigin(
                PayloadSettings(origin: origin, app: "bank", version: "1.0", platform: "linux"),
                keys: keys.map { .init($0, notAfter: .distantFuture) }, over: passing,
                seams: PayloadSeams(clock: clock, random: SystemRandom()))
        }
        return counting(PayloadTransport(passing, origins: sealed, isOn: { _ in false }), to: origins)
    }
}
