package import AssentCore
package import AssentEngine
package import AssentStore
import Foundation

/// How a server is set up: the operator's YAML file, read and checked.
public struct ServerConfiguration: Sendable {
    /// Whether example accounts, a generated CA and clear secrets are allowed. Then only loopback is listened on.
    public let isDevelopment: Bool

    /// The file it was read from.
    public let file: String

    /// Where clients find the server, with its path and without a slash at the end; port 0 stands for the one that it
    /// gets.
    package var publicURL: String

    /// Further hosts that requests may name, besides those of the public URLs.
    package var hosts: [String] = []

    /// The address to listen on.
    package var host: String

    /// The port to listen on; 0 takes a free one.
    package var port: Int

    /// Where the database, the master key and generated certificates are.
    package var dataDirectory: String

    /// The master key's file, when it is not in the data directory.
    package var masterKeyFile: String?

    /// The PostgreSQL database; `nil` for the SQLite file in the data directory.
    package var postgreSQL: PostgreSQLConfiguration?

    /// Whether a start that would make a new SQLite file is refused: the server had data, whose disk may be missing.
    package var requiresDatabase = false

    /// The certificate.
    package var tls: TLS

    /// The name of the session cookie and of the field that carries the session token.
    package var cookieName: String

    /// To which requests of other sites' pages browsers add the session cookie.
    package let cookieSameSite: SameSite

    /// Whether browsers keep a session cookie for each site whose pages call the server.
    package var isCookiePartitioned = false

    /// How dear a guess at a password is: scrypt's N.
    package let passwordCost: Int

    /// What passwords must be like.
    package var passwordRules = PasswordRequirements()

    /// How many codes of authenticator apps may be tried, and which are good. The file does not change it.
    package var oneTimePasswords = OneTimePasswordLimits()

    /// How many transactions a session may have made for one policy in a minute.
    package let transactionLimits: TransactionLimits

    /// How many journeys clients at one address may begin in a minute.
    package var journeyStartsPerMinute: Int

    /// How the hosted pages look.
    var pages = PageDesign()

    /// How many connections one address may have open; `nil` for a share of those that there can be.
    package var connectionsPerAddress: Int?

    /// How many password checks may be in progress for one address; `nil` for a share of those that there can be.
    package var checksPerAddress: Int?

    /// The proxies that are believed where requests come from.
    var trustedProxies = TrustedProxies()

    /// Whether browsers are told to come by TLS only.
    package var sendsHSTS = true

    /// How long a connection may be silent, in seconds. It is longer than a protected service may take to answer.
    package var idleSeconds = 35

    /// How long requests' bodies may take, at the server's address and at the gateway's. The file does not change it.
    var bodies = (server: BodyLimits.ofServer, gateway: BodyLimits())

    /// How long a stop waits for requests in progress, in seconds. The default is longer than a protected service may
    /// take.
    package var drainSeconds: Int

    /// Seconds after the end of all connections in which what has begun may still be recorded. The file does not change
    /// it.
    package var recordingSeconds = 5

    /// From which difference to the database server's clock on the node is not ready, in seconds; `nil` to
    /// compare nothing.
    package var clockDifferenceSeconds: Int? = 30

    /// Whom the server may call of itself.
    package var outbound = OutboundSettings()

    /// The service that brings users what concerns their devices; `nil` when that is only logged.
    var webhook: WebhookSettings?

    /// Whether the database server's clock goes as the nodes' do, so that it may say what they go by.
    var isDatabaseTimed: Bool { clockDifferenceSeconds != nil }

    /// The realms.
    package var realms: [RealmConfiguration]

    /// The gateway, if there is one.
    package var gateway: GatewayConfiguration?

    /// The directories with versions of trust files that are served, by name (docs/trust-file.md).
    package var trustFiles: [String: String] = [:]

    /// Where the certificate comes from.
    package enum TLS: Sendable, Hashable {
        /// Made here, for localhost.
        case generated
        /// The operator's own: chain and key as PEM files.
        case files(certificate: String, privateKey: String)
    }

    /// The PEM files of the certificates that the server shows, and of their key.
    package var certificateFiles: (chain: String, privateKey: String) {
        switch tls {
        case .generated:
            ("\(dataDirectory)/\(ServerCredentials.chainName)", "\(dataDirectory)/\(ServerCredentials.privateKeyName)")
        case .files(let certificate, let privateKey): (certificate, privateKey)
        }
    }

    init(
        isDevelopment: Bool, file: String, publicURL: String, host: String, port: Int, dataDirectory: String,
        masterKeyFile: String?, postgreSQL: PostgreSQLConfiguration? = nil, tls: TLS, cookieName: String,
        cookieSameSite: SameSite = .lax, passwordCost: Int,
        transactionLimits: TransactionLimits, journeyStartsPerMinute: Int,
        connectionsPerAddress: Int? = nil, drainSeconds: Int,
        realms: [RealmConfiguration],
        gateway: GatewayConfiguration?
    ) {
        self.isDevelopment = isDevelopment
        self.file = file
        self.publicURL = publicURL
        self.host = host
        self.port = port
        self.dataDirectory = dataDirectory
        self.masterKeyFile = masterKeyFile
        self.postgreSQL = postgreSQL
        self.tls = tls
        self.cookieName = cookieName
        self.cookieSameSite = cookieSameSite
        self.passwordCost = passwordCost
        self.transactionLimits = transactionLimits
        self.journeyStartsPerMinute = journeyStartsPerMinute
        self.connectionsPerAddress = connectionsPerAddress
        self.drainSeconds = drainSeconds
        self.realms = realms
        self.gateway = gateway
    }
}

/// One realm: its journeys, clients, policies and the users to begin with.
package struct RealmConfiguration: Sendable {
    /// Its name, for example `/alpha`.
    package let name: String

    /// Its journeys, by name.
    package let journeys: [JourneyDefinition]

    /// The journey that is meant when none is named.
    package let defaultJourney: String?

    /// How long sessions live.
    package let sessionLimits: SessionLimits

    /// Whether a refresh or a question to the userinfo endpoint is a use of the session.
    package let tokensKeepSessions: Bool

    /// Whether proofs of keys must have a nonce.
    package var requiresNonce = false

    /// The HTTP status that ends a transaction's journey in failure: AM's is 200, ours can be 401.
    package let transactionFailureStatus: Int

    /// What clients may ask for and are told about how users signed in.
    package let contexts: AuthenticationContexts

    /// What scopes mean to people.
    package let scopeTexts: [String: String]

    /// The web origins whose pages may use sessions of the realm.
    package let allowedOrigins: [String]

    /// The OAuth clients.
    package var clients: [OAuthClient]

    /// The apps whose instances register as clients.
    package var apps: [OAuthApp]

    /// How installations of the apps are told what they may do; `nil` when they are not.
    package var deviceConfiguration: DeviceConfigurationSettings?

    /// Whether apps may say what their probes have found.
    package var takesIntegrityReports = false

    /// Whether the file names it as the realm whose roles are also about what all realms share.
    var isAdministrationRealm = false

    /// The policy sets.
    package let policySets: [PolicySet]

    /// How the realm offers transaction signing; `nil` when it does not. The issuer's name is known when the server
    /// starts.
    package var signing: SigningSettings?

    /// The groups of gateways elsewhere that may ask about its policy sets.
    package var enforcement: [EnforcementGroup] = []

    /// The users that are made when the realm has none of their name.
    package let users: [UserSeed]
}

/// A user to begin with.
package struct UserSeed: Sendable, Hashable {
    /// The name to sign in with.
    package let username: String

    /// Where the password comes from.
    package let password: Password

    /// The file that holds the base 32 of the TOTP seed, when it is not generated.
    package let totpSeedFile: String?

    /// What the user may do on the server itself.
    package let roles: Set<Role>

    /// Further attributes.
    package let attributes: JSONObject

    /// Where a password comes from.
    package enum Password: Sendable, Hashable {
        /// None: the user cannot sign in with one.
        case none
        /// Made at the first start, with a TOTP seed, and shown once. For development.
        case generated
        /// Its hash.
        case hash(String)
        /// A file that holds it.
        case file(String)
    }
}

/// The gateway's part.
package struct GatewayConfiguration: Sendable {
    /// Scheme, host and port under which clients know it; port 0 stands for the one that it gets.
    package var publicURL: String

    /// The port to listen on, on the server's address; 0 takes a free one.
    package var port: Int

    /// What it protects.
    package var routes: [GatewayRoute]

    /// Scheme, host and port of a route's service, when it is known only when the server starts.
    package mutating func setUpstream(_ upstream: String, ofRoute name: String) {
        for index in routes.indices where routes[index].name == name { routes[index].upstream.addresses = [upstream] }
    }

    /// The same for all routes to the service of this one.
    package mutating func setUpstream(_ upstream: String, likeRoute name: String) {
        let services = Set(routes.filter { $0.name == name }.map(\.upstream.addresses))
        for index in routes.indices where services.contains(routes[index].upstream.addresses) {
            routes[index].upstream.addresses = [upstream]
        }
    }
}

extension ServerConfiguration {
    /// What a password check costs, and how many may be in progress.
    var passwordPolicy: PasswordPolicy {
        PasswordPolicy(logN: passwordCost.trailingZeroBitCount, checksPerAddress: checksPerAddress)
    }

    /// Where clients find the server, and the gateway if there is one.
    var publicURLs: [String] { [publicURL, gateway?.publicURL].compactMap(\.self) }

    /// Each realm with the name of its OpenID provider, for a server that clients find at `server`.
    package func issuers(at server: String) -> [(realm: String, issuer: String)] {
        realms.map { ($0.name, "\(server)/oauth2\(RealmPath.path(of: $0.name))") }
    }

    /// The first client that an app without a secret can use, and the journey that signs its users in.
    package var firstPublicClient: (realm: String, id: String, redirectURI: String, scopes: [String], journey: String)?
    {
        for realm in realms {
            guard let client = realm.clients.first(where: { $0.kind == .public }),
                let redirectURI = client.redirectURIs.first
            else { continue }
            return (realm.name, client.id, redirectURI, client.scopes, realm.defaultJourney ?? "Login")
        }
        return nil
    }
}
