import AssentCore
import AssentJourney
import AssentSigning
import AssentTokens

extension Assent.Configuration {
    /// The journeys' share of the settings.
    func journeyConfiguration() throws -> JourneyConfiguration {
        var settings = try JourneyConfiguration(server: server, realm: realm, sessionCookieName: sessionCookieName)
        settings.callbacks = callbacks
        settings.acceptLanguage = acceptLanguage
        return settings
    }

    /// Says who sends a call, on every way to the network.
    var userAgent: UserAgentMiddleware {
        UserAgentMiddleware(app: client.id, version: client.version ?? registration?.softwareVersion)
    }

    /// - Throws: `JourneyFailure` with code `invalidConfiguration` for a server to which nothing may be sent.
    static func check(_ server: Origin) throws {
        guard server.isSecure || server.host.isLoopback else {
            throw JourneyFailure(
                .invalidConfiguration, "The server is neither https nor on this machine.",
                suggestion: "Give the server's https URL.")
        }
    }

    private func issuer(_ journeys: JourneyConfiguration) -> String {
        issuer ?? "\(journeys.server)/oauth2/\(journeys.realm.path)"
    }

    /// What tells the server what probes have found; `nil` where it is not told.
    func integrityReporter(
        _ journeys: JourneyConfiguration, _ prover: InstallationProver, over transport: any HTTPTransport
    ) -> IntegrityReporter? {
        guard integrity.tellsServer else { return nil }
        return IntegrityReporter(
            .init(id: client.id, version: appVersion, issuer: issuer(journeys)), prover: prover, over: transport,
            clock: clock, logger: logger)
    }

    /// The tokens' share of the settings.
    func tokenConfiguration(
        _ journeys: JourneyConfiguration, _ admission: DeviceAdmission?, _ integrity: IntegrityGuard
    ) throws -> TokenConfiguration {
        var settings = try TokenConfiguration(
            issuer: issuer(journeys), clientID: client.id,
            redirectURI: client.redirectURI, scopes: client.scopes, sessionCookieName: sessionCookieName)
        settings.renewBefore = renewBefore
        settings.patience = patience
        settings.authorizationParameters = authorizationParameters
        settings.trustedAudiences = trustedAudiences
        settings.dpop = dpop
        settings.clientAuthentication = clientAuthentication
        settings.registration = registration
        if let admission {
            settings.registration?.admit = { () async throws(HTTPTransportError) in
                try integrity.examine()
                try await admission.admitRegistration()
            }
        }
        if registration?.softwareVersion == nil { settings.registration?.softwareVersion = client.version }
        return settings
    }

    /// This app as a signing device; `nil` for an app that signs none.
    func signingDevice(_ store: any SecretStore, over transport: any HTTPTransport) -> SigningDevice? {
        deviceKeys.map { keys in
            SigningDevice(
                store: deviceVault?.store(clock: clock, random: random, leastLimit: leastLimit) ?? store, keys: keys,
                transport: transport, configuration: device, clock: clock, random: random, logger: logger)
        }
    }
}
