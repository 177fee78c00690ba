package import AssentCore

/// What a route's file says of the services behind it.
package struct UpstreamSettings: Sendable, Hashable {
    /// Scheme, host and port of each service, all of which do the same.
    package var addresses: [String]

    /// How the gateway asks them whether they are well; `nil` when it does not.
    package var check: HealthCheck?

    /// How long each part of a call may take.
    package var timeouts = Timeouts()

    /// What TLS to them needs beside the authorities of the system; only for `https`.
    package var tls = TLS()

    /// More services than a route has.
    package static let maximumAddresses = 8

    /// Services with nothing else said of them.
    package init(_ addresses: [String]) { self.addresses = addresses }

    /// By the addresses alone, since each request looks for the services of its route.
    package func hash(into hasher: inout Hasher) { hasher.combine(addresses) }

    /// A request that the gateway sends by itself.
    package struct HealthCheck: Sendable, Hashable {
        /// Where, from the slash on.
        package var path: String
        /// How often, in seconds.
        package var everySeconds: Int
        /// How many seconds an answer may take; `nil` for five, or until the next one is due. The file does not change
        /// it.
        package var limitSeconds: Int?
    }

    /// How long each part of a call may take, in seconds.
    package struct Timeouts: Sendable, Hashable {
        /// Until the connection is there, with TLS: until then nothing has happened.
        package var connect = 5
        /// From the end of the request to the end of the reply's header.
        package var head = 30
        /// While content is on its way, in either direction, and nothing moves.
        package var silence = 30
        /// From the start to the last byte of the reply; `nil` when a reply may stream all day.
        package var total: Int?
    }

    /// Whom the gateway trusts, and as whom it comes.
    package struct TLS: Sendable, Hashable {
        /// The authorities that a service's certificate must end in.
        package var authorities = TrustRoots.system
        /// Keys of which one must stand in a service's chain; none are looked for when there are none.
        package var pins: [Pin] = []
        /// The gateway's own certificate, for services that ask for one.
        package var certificate: Certificate?

        /// The files of a certificate, the gateway's own first, and of its key.
        package struct Certificate: Sendable, Hashable {
            package var chain: String
            package var privateKey: String
        }
    }
}
