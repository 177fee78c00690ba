import AssentCore
import AssentEnforcement

/// How a gateway without an engine is set up: the operator's YAML file, read and checked (`assent serve
/// --gateway-only`). It has no database, no master key and no journeys.
public struct GatewayServerConfiguration: Sendable {
    /// The file it was read from.
    public let file: String

    /// The address to listen on. The port is the gateway's.
    package var host: String

    /// The port of `/healthz` and `/readyz`; `nil` when nobody may ask.
    package var healthPort: Int?

    /// The PEM files of the certificate's chain and of its key.
    package let certificate: String
    package let privateKey: String

    /// The server that decides.
    package var engine: EngineSettings

    /// The address that clients know, and the routes.
    package var gateway: GatewayConfiguration

    /// The name of the session cookie, and of the field that carries a session; the same as the engine's.
    package var cookieName: String

    /// Further hosts that requests may name.
    package var hosts: [String] = []

    /// The proxies that are believed where requests come from.
    var trustedProxies = TrustedProxies()

    /// How many connections one address may have open; `nil` for a share of those that there can be.
    package var connectionsPerAddress: Int?

    /// Whether browsers are told to come by TLS only.
    package var sendsHSTS = true

    /// How long a connection may be silent, in seconds.
    package var idleSeconds = 35

    /// How long requests' bodies may take. The file does not change it.
    var bodies = BodyLimits()

    /// How long a stop waits for requests in progress, in seconds.
    package var drainSeconds = 35

    /// Seconds after the end of all connections in which the engine may still be told what became of requests. The file
    /// does not change it.
    package var reportingSeconds = 5

    /// How many decisions and how many outcomes are kept in memory at most.
    var memory = Memory()

    /// The bounds of what a gateway keeps in memory.
    struct Memory: Sendable {
        var decisions = DecisionCache.usualCapacity
        var outcomes = OutcomeReports.usualCapacity
    }
}

/// The server whose engine decides for a gateway elsewhere, and as whom the gateway comes.
package struct EngineSettings: Sendable {
    /// Where the gateway calls it, without a slash at the end.
    package var url: String

    /// Where clients find it (`am_uri`).
    package var publicURL: String

    /// The gateway's client in each realm whose policies its routes name.
    package var realms: [String: Client]

    /// Whom the gateway trusts, and the certificate by which it comes.
    package var tls = UpstreamSettings.TLS()

    /// How long each limit in time of a call to the server is at least; `nil` when the calls' own limits hold. The file
    /// does not change it.
    package var leastLimit: Duration?

    /// A client of a realm.
    package struct Client: Sendable {
        /// Its id.
        package let id: String

        /// What it proves itself with.
        let proof: Proof

        /// The key that its access tokens belong to; `nil` for bearer tokens.
        var proofKey: (any SigningKey)?
    }
}
