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
    private let told: DeviceConfigurationKeeper?
    private let make: @Sendable (Origin, [ClientSession.Key]) throws -> PayloadOrigin

    /// - Parameters:
    ///   - keeper: says which file is in force.
    ///   - told: what the server says, where the file leaves it to the server.
    ///   - make: makes what seals, with these keys.
    init(
        _ keeper: TrustKeeper, _ told: DeviceConfigurationKeeper?,
        make: @escaping @Sendable (Origin, [ClientSession.Key]) throws -> PayloadOrigin
    ) {
        (self.keeper, self.told, self.make) = (keeper, told, make)
    }

    /// What seals a call to an origin; `nil` where the file does not name the origin, or leaves that to the server, and
    /// the server has said that they are not.
    /// Other keys begin other sessions.
    ///
    /// - Throws: `HTTPTransportError`: `trustExpired` where nothing is in force for the origin, so that nobody knows;
    ///   `timedOut` where that took longer to find out than the call may.
    func origin(of call: HTTPCall, at origin: Origin) async throws -> PayloadOrigin? {
        guard origin.isSecure else { return nil }
        try await keeper.prepare(origin, until: keeper.deadline(of: call))
        let name = origin.description
        guard let payload = try await payload(of: call, where: { $0.origins.contains(name) }) else { return nil }
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

    /// Whether calls are sealed at all, so that one to an origin that the file does not name must say that it may go
    /// unsealed.
    ///
    /// - Throws: as ``origin(of:at:)``.
    func isOn(for call: HTTPCall) async throws -> Bool {
        try await keeper.settle()
        return try await payload(of: call, where: { _ in true }) != nil
    }

    /// What the file in force says, if it is so and calls are sealed; else `nil`.
    private func payload(
        of call: HTTPCall, where isSo: (TrustedPayload) -> Bool
    ) async throws -> TrustedPayload? {
        while true {
            guard let payload = keeper.inForce.payload, isSo(payload) else { return nil }
            let isSealed = try await isSealed(by: payload, call)
            // While the server was asked, a file may have come into force that withdraws a key, or always seals.
            if keeper.inForce.payload == payload { return isSealed ? payload : nil }
        }
    }

    /// Whether calls are sealed by a trust file that has keys for it. Where the server decides it is asked, and where
    /// it was never heard they are.
    private func isSealed(by payload: TrustedPayload, _ call: HTTPCall) async throws -> Bool {
        guard payload.mode == .server, let told else { return true }
        do {
            let wishes = DeviceDecision.Wishes(implicit: false, stateless: false)
            return try await told.decision(wishes, until: told.deadline(of: call))?.seals ?? true
        } catch let error as HTTPTransportError {
            throw error
        } catch {
            throw HTTPTransportError(
                .trustExpired, "The vault, which may have a newer device configuration, cannot be read.",
                suggestion: "Make the vault readable, and call again.")
        }
    }
}
