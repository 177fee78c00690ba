import AssentCore
import AssentJourney
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

    /// The tokens' share of the settings.
    func tokenConfiguration(_ journeys: JourneyConfiguration) throws -> TokenConfiguration {
        var settings = try TokenConfiguration(
            issuer: issuer ?? "\(journeys.server)/oauth2/\(journeys.realm.path)", clientID: client.id,
            redirectURI: client.redirectURI, scopes: client.scopes, sessionCookieName: sessionCookieName)
        settings.renewBefore = renewBefore
        settings.patience = patience
        settings.authorizationParameters = authorizationParameters
        settings.trustedAudiences = trustedAudiences
        settings.dpop = dpop
        settings.clientAuthentication = clientAuthentication
        settings.registration = registration
        if registration?.softwareVersion == nil { settings.registration?.softwareVersion = client.version }
        return settings
    }
}
