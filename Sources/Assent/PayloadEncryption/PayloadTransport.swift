package import AssentCore
package import AssentPayload
import HTTPTypes

/// Seals all calls to the origins of payload encryption. It stands right above the pinned transport and below
/// everything else, so that no other layer knows of it (docs/payload-encryption.md).
package struct PayloadTransport: HTTPTransport {
    private let network: any HTTPTransport
    private let origins: [Origin: PayloadOrigin]
    private let others: (@Sendable (HTTPCall, Origin) async throws -> PayloadOrigin?)?
    private let isOn: @Sendable (HTTPCall) async throws -> Bool

    /// - Parameters:
    ///   - network: carries sealed calls, and those to all other origins.
    ///   - origins: where calls are sealed. Nothing plain is ever sent there.
    ///   - others: says of any other origin, for each call to it, whether it is sealed.
    ///   - isOn: whether calls are sealed at all, so that one that must be is not sent as it is; `nil` for whether
    ///     there are `origins`.
    package init(
        _ network: any HTTPTransport, origins: [PayloadOrigin],
        others: (@Sendable (HTTPCall, Origin) async throws -> PayloadOrigin?)? = nil,
        isOn: (@Sendable (HTTPCall) async throws -> Bool)? = nil
    ) {
        self.network = network
        self.others = others
        let isSealing = !origins.isEmpty
        if let isOn { self.isOn = isOn } else { self.isOn = { _ in isSealing } }
        self.origins = Dictionary(origins.map { ($0.origin, $0) }, uniquingKeysWith: { first, _ in first })
    }

    /// - Throws: `HTTPTransportError`.
    @concurrent package func send(_ call: HTTPCall) async throws -> HTTPReply {
        guard let origin = try await sealed(call) else {
            if call.mustBeSealed, try await isOn(call) { throw Self.unsealed }
            return try await network.send(call)
        }
        try await call.control?.whenRunning()
        let channel = try await origin.channel()
        do {
            return try await channel.exchange(call, mayRepeat: call.mayBeRepeated)
        } catch let unanswered as PayloadChannel.Unanswered {
            guard !RequestRules.carriesProof(call.request.headerFields) else {
                // Its layer makes another proof: this one may be spent.
                throw unanswered.error
            }
        }
        return try await channel.exchange(call, mayRepeat: false)
    }

    private static let unsealed = HTTPTransportError(
        .payloadEncryptionFailed, "Calls to this origin are not sealed, and the request may not go unsealed.",
        suggestion: "Name the origin among those that are sealed, or set allowsUnsealed of the request.")

    private func sealed(_ call: HTTPCall) async throws -> PayloadOrigin? {
        guard let origin = try? call.origin else { return nil }
        if let known = origins[origin] { return known }
        return try await others?(call, origin)
    }
}

/// One origin where calls are sealed, and the sessions there.
package struct PayloadOrigin: Sendable {
    package let origin: Origin
    private let app: PayloadChannel
    private let device: InstallationChannels?

    /// - Parameters:
    ///   - settings: what a client is there.
    ///   - keys: the server's.
    ///   - prover: proves the installation's key; `nil` for an app whose installations prove nothing.
    ///   - network: carries handshakes and messages.
    ///   - seams: clock, randomness, and who is told.
    package init(
        _ settings: PayloadSettings, keys: [ClientSession.Key], prover: (any PayloadProver)? = nil,
        over network: any HTTPTransport, seams: PayloadSeams
    ) {
        origin = settings.origin
        app = PayloadChannel(HandshakeCalls(settings, over: network, seams: seams), keys: keys)
        device = prover.map { prover in
            InstallationChannels(prover: prover) {
                PayloadChannel(HandshakeCalls(settings, prover: prover, over: network, seams: seams), keys: keys)
            }
        }
    }

    /// The sessions that calls go through now: those of the installation, once there is one. What a handshake of the
    /// installation itself asks goes through those of the app, or it would wait for itself.
    func channel() async throws -> PayloadChannel {
        guard let device, !HandshakeCalls.isAsking else { return app }
        return await device.current() ?? app
    }
}

/// The sessions of the installation at one origin. When it has registered anew they are others: the server takes its
/// credentials in its own sessions only.
private final class InstallationChannels: Sendable {
    private let prover: any PayloadProver
    private let make: @Sendable () -> PayloadChannel
    private let known = Locked<(client: String, channel: PayloadChannel)?>(nil)

    init(prover: any PayloadProver, make: @escaping @Sendable () -> PayloadChannel) {
        (self.prover, self.make) = (prover, make)
    }

    /// Those of the installation as it is registered now; `nil` when it is not.
    func current() async -> PayloadChannel? {
        guard let client = try? await prover.clientID() else { return nil }
        return known.withLock { known in
            if let known, known.client == client { return known.channel }
            let channel = make()
            known = (client, channel)
            return channel
        }
    }
}

/// What a client says that it is, at one origin.
package struct PayloadSettings: Sendable {
    package let origin: Origin
    package let app: String
    package let version: String
    package let platform: String

    package init(origin: Origin, app: String, version: String, platform: String) {
        (self.origin, self.app, self.version, self.platform) = (origin, app, version, platform)
    }

    /// Who a session is between.
    func peer(client: String?) -> PayloadPeer {
        PayloadPeer(
            role: client == nil ? .app : .device, origin: origin.description, client: client, app: app,
            version: version, platform: platform)
    }
}

/// What payload encryption gets from outside.
package struct PayloadSeams: Sendable {
    package let clock: any WallClock
    package let random: any RandomSource
    /// Is told what is sent and what has come. It must not wait.
    package let observe: (@Sendable (PayloadTrace) -> Void)?

    package init(
        clock: any WallClock, random: any RandomSource, observe: (@Sendable (PayloadTrace) -> Void)? = nil
    ) {
        (self.clock, self.random, self.observe) = (clock, random, observe)
    }
}

/// What others can see of a sealed message, and the age of its session.
package struct PayloadTrace: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable {
        case handshake
        case request
        case reply
    }

    package let kind: Kind
    package let origin: Origin
    /// Its bytes; `nil` for a request whose length is not known before.
    package let length: Int?
    /// Which request of its session it is, or answers; `nil` for a handshake.
    package var number: UInt64?
    /// How many seconds ago the session was begun; `nil` for a handshake.
    package var age: Int?
}

/// Proves the key of a registered installation.
package protocol PayloadProver: Sendable {
    /// The client id of the installation; `nil` when it is not registered. Nothing is sent.
    func clientID() async throws -> String?

    /// A DPoP proof by the registered key for a POST, with the claim `pe`.
    func proof(url: String, claim: String, nonce: String?) async throws -> String

    /// What the server says of the registration.
    func registration() async -> ClientSession.Registration
}
