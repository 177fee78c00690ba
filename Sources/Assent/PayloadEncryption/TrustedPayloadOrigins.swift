import AssentCore
import AssentPayload
import AssentTrust
import Foundation

/// The origins to which everything is sealed because the trust file in force says so.
final class TrustedPayloadOrigins: Sendable {
    private struct Made {
        let keys: [TrustedPayloadKey]
        let origin: PayloadOrigin
    }

    private let made = Locked<[Origin: Made]>([:])
    private let keeper: TrustKeeper
    private let make: @Sendable (Origin, [ClientSession.Key]) throws -> PayloadOrigin

    /// - Parameters:
    ///   - keeper: says which file is in force.
    ///   - make: makes what seals, with these keys.
    init(_ keeper: TrustKeeper, make: @escaping @Sendable (Origin, [ClientSession.Key]) throws -> PayloadOrigin) {
        (self.keeper, self.make) = (keeper, make)
    }

    /// What seals calls to an origin; `nil` where the file leaves that to the server, or does not name the origin.
    /// Other keys begin other sessions.
    ///
    /// - Throws: `HTTPTransportError`: `trustExpired` where nothing is in force for the origin, so that nobody knows.
    func origin(_ origin: Origin) async throws -> PayloadOrigin? {
        guard origin.isSecure else { return nil }
        try await keeper.prepare(origin)
        guard let payload = keeper.inForce.payload, payload.mode == .always,
            payload.origins.contains(origin.description)
        else { return nil }
        if let known = made.withLock({ $0[origin] }), known.keys == payload.keys { return known.origin }
        let keys = try payload.keys.map { key in
            ClientSession.Key(
                try PayloadKey(key.x), notAfter: Date(timeIntervalSince1970: TimeInterval(key.notAfter)))
        }
        let new = Made(keys: payload.keys, origin: try make(origin, keys))
        return made.withLock { made in
            // Another call may have been first: one handshake serves both.
            if let known = made[origin], known.keys == new.keys { return known.origin }
            made[origin] = new
            return new.origin
        }
    }
}
