import AssentCore
import AssentJourney
import AssentPayload
import AssentTrust

extension Assent.Configuration {
    /// The way to the network, which seals what goes to the origins of ``payloadEncryption``, and to those that the
    /// trust file in force names.
    ///
    /// - Parameters:
    ///   - network: carries what was sealed, and all other calls.
    ///   - prover: proves the installation's key.
    ///   - keeper: says which trust file is in force.
    ///   - told: what the server says, where the trust file leaves it to the server.
    /// - Returns: the way.
    /// - Throws: `JourneyFailure` with code `invalidConfiguration`.
    func sealing(
        _ network: any HTTPTransport, _ prover: InstallationProver, _ keeper: TrustKeeper?,
        _ told: DeviceConfigurationKeeper?
    ) throws -> any HTTPTransport {
        guard keeper != nil || !payloadEncryption.isEmpty else { return network }
        let seams = PayloadSeams(clock: clock, random: random, observe: payloadTrace)
        var origins: [Origin: PayloadOrigin] = [:]
        for (address, sealed) in payloadEncryption {
            guard let origin = try? Origin(headerValue: address), origin.isSecure else {
                throw Self.mistake("\(address) is not an https origin", "Write it as in https://api.bank.example.")
            }
            guard !sealed.keys.isEmpty else {
                throw Self.mistake("\(origin) has no key", "Name the server's public keys, at least two.")
            }
            guard sealed.role == .app || registration != nil else {
                throw Self.mistake("\(origin) has the role device, and this app does not register", "Use the role app.")
            }
            let settings = settings(origin, sealed)
            guard settings.isSayable else {
                throw Self.mistake(
                    "app, version or platform of \(origin) cannot be said in a handshake",
                    "Each has 1 to 128 printable ASCII characters.")
            }
            let made = PayloadOrigin(
                settings, keys: sealed.keys.map { ClientSession.Key($0.key, notAfter: $0.notAfter) },
                prover: sealed.role == .device ? prover : nil, over: network, seams: seams)
            guard origins.updateValue(made, forKey: origin) == nil else {
                throw Self.mistake("\(origin) is named twice", "Name it once.")
            }
        }
        let made = Array(origins.values)
        guard let keeper else { return PayloadTransport(network, origins: made) }
        let trusted = TrustedPayloadOrigins(keeper, told) { [self] origin, keys in
            let settings = settings(origin, Assent.PayloadEncryption(keys: []))
            guard settings.isSayable else {
                throw HTTPTransportError(
                    .payloadEncryptionFailed, "The app or its version cannot be said in a handshake.")
            }
            return PayloadOrigin(
                settings, keys: keys, prover: registration == nil ? nil : prover, over: network, seams: seams)
        }
        let isSealing = !made.isEmpty
        return PayloadTransport(
            network, origins: made, others: { try await trusted.origin(of: $0, at: $1) },
            isOn: { call in
                if isSealing { return true }
                return try await trusted.isOn(for: call)
            })
    }

    /// What the app says that it is.
    private func settings(_ origin: Origin, _ sealed: Assent.PayloadEncryption) -> PayloadSettings {
        PayloadSettings(
            origin: origin, app: sealed.app ?? client.id,
            version: sealed.version ?? appVersion, platform: sealed.platform)
    }

    private static func mistake(_ what: String, _ suggestion: String) -> JourneyFailure {
        JourneyFailure(.invalidConfiguration, "Payload encryption: \(what).", suggestion: suggestion)
    }
}

extension PayloadSettings {
    /// Whether a handshake can say this.
    fileprivate var isSayable: Bool {
        [app, version, platform].allSatisfy { text in
            1...128 ~= text.utf8.count && text.utf8.allSatisfy { 0x20...0x7E ~= $0 }
        }
    }
}
