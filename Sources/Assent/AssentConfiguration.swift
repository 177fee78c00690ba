public import AssentAuthorization
public import AssentCore
public import AssentJourney
public import AssentSigning
public import AssentTokens
public import AssentTrust
public import AssentVault
public import Foundation
public import Logging

extension Assent {
    /// The settings of the SDK. What an initialiser does not ask for has the safe value.
    ///
    /// ```swift
    /// var configuration = Assent.Configuration(
    ///     server: "https://am.bank.example/am", realm: "alpha", client: client, resources: resources, pins: pins,
    ///     vault: .file(at: directory, keys: .passphrase(passphrase)))
    /// configuration.acceptLanguage = "de, en;q=0.5"
    /// configuration.requiresBinding = true
    /// ```
    public struct Configuration: Sendable {
        /// AM's base URL, for example `https://am.example.com/am`.
        public var server: String

        /// The realm.
        public var realm: String

        /// The OAuth client.
        public var client: Client

        /// The origins of protected resources and what each gets. No other origin ever gets a credential.
        ///
        /// A resource is a whole origin and no path: paths of one origin are one server's, which sees every credential
        /// that reaches it, and two programs may read one path differently.
        public var resources: [String: ResourceAccess]

        /// How parts of the resources ask for the user's approval, and who answers for calls that bring no handler.
        ///
        /// ```swift
        /// configuration.policies = [
        ///     try AuthorizationPolicy("https://api.bank.example/transfers/") { approval in
        ///         if approval.isFirstStep {
        ///             guard await screen.confirm(approval.display) else { return .decline }
        ///         }
        ///         if let waiting = approval.waiting { await screen.show(waiting.text) }
        ///         approval.agree()
        ///         return .next
        ///     }
        /// ]
        /// ```
        public var policies: [AuthorizationPolicy] = []

        /// The address that paths of requests are appended to, for example `https://api.bank.example/v1`; without it
        /// every request says an absolute URL.
        public var resourceBase: String?

        /// The keys that each host's certificate chain must have, by `host` or `host:port`. A host that is not named is
        /// not called. A literal `[primary, backup]` means `.pins([primary, backup])`; an array of your own is written
        /// `.pins(keys)`.
        public var pins: [String: PinRequirement]

        /// The signed file that says which hosts are called, with which pins and whose credentials, in the place of
        /// ``pins``, ``resources`` and ``issuer``; `nil` for an app whose releases say it. Later versions of the file
        /// come without a release; see `docs/trust-file.md`.
        public var trust: TrustFile?

        /// The origins to which everything is sent sealed, inside of TLS (docs/payload-encryption.md); by default only
        /// those that a trust file names, unless it leaves that to the server, and the server has said otherwise
        /// (docs/device-configuration.md).
        /// It is for all calls to such an origin: sign-in, registration, tokens, the calls of ``Assent/Device`` and
        /// those to resources. Nothing plain is sent there.
        public var payloadEncryption: [String: PayloadEncryption] = [:]

        /// Is told of each sealed message. It must not wait.
        package var payloadTrace: (@Sendable (PayloadTrace) -> Void)?

        /// Where session and tokens are kept.
        public var vault: Vault

        /// What makes and holds the keys with which this app signs transactions (``Assent/Device``); `nil` for an app
        /// that signs none.
        public var deviceKeys: (any KeyProvider)?

        /// Where ``Assent/Device`` keeps its containers, when that is not ``vault``.
        public var deviceVault: Vault?

        /// What this app allows as a device that signs transactions: the issuers that it knows, how keys may be
        /// protected, how often a call is sent again. Without `issuers` any issuer's invite is taken, and the app must
        /// show its host first.
        ///
        /// ```swift
        /// configuration.deviceKeys = keys
        /// configuration.device.issuers = ["https://am.bank.example/am/signing/realms/root/realms/alpha"]
        /// configuration.device.modes = [.assisted]
        /// ```
        public var device = SigningDeviceConfiguration()

        /// The name of AM's session cookie. Identity Cloud tenants have one of their own.
        public var sessionCookieName = WireName.sessionCookie

        /// Names of the server's cookies that outlive the process although they have no lifetime: those with which load
        /// balancers find the node that has the user's session.
        public var persistentCookies: Set<String> = ["amlbcookie"]

        /// The issuer, when it is not `<server>/oauth2/<realm path>`.
        public var issuer: String?

        /// Whether new tokens are bound to a key of this app (DPoP, RFC 9449), so that a stolen token is worth nothing
        /// to anybody else. The server must support it. Off by default. Journeys are proved with the same key, and a
        /// server that knows that, as Assent's does, binds their session to it, too.
        /// Give it the provider that guards the vault: it then asks for its PIN or passphrase once.
        public var dpop = DPoPConfiguration.off

        /// How this app proves to the authorization server that it is the client that it says: by nothing, or by a key
        /// of a key provider (`private_key_jwt`). The server must know the key's public half. By default it is a
        /// public client.
        public var clientAuthentication = ClientAuthentication.none

        /// How this installation becomes a client of its own, with a key that only it has; `nil` for an app whose
        /// installations are all the same client. `client.id` is then the app's id at the server, and the first
        /// sign-in registers the installation. Give it the provider that guards the vault.
        public var registration: RegistrationConfiguration?

        /// How many seconds before it expires an access token is renewed.
        public var renewBefore: TimeInterval = 60

        /// How many seconds a task waits for another one, in any process, that renews tokens, signs in or signs out.
        public var patience: TimeInterval = 120

        /// Audiences that an ID token may name besides this client: some providers add one of their own. A token for
        /// anybody else as well is refused.
        public var trustedAudiences: Set<String> = []

        /// More items of every authorization request, for example `acr_values`.
        public var authorizationParameters: [FormItems.Item] = []

        /// The authorities that a certificate chain must end in.
        public var trustRoots = TrustRoots.system

        /// Whether `http://` may be used to this machine itself, for a server under development.
        public var allowPlaintextLoopback = false

        /// Whether an approval is refused unless the server says that it is for all of this request. AM does not.
        public var requiresBinding = false

        /// The callback types that journeys know.
        public var callbacks = CallbackTypes.all

        /// The languages for the server's texts, as an `Accept-Language` field has them.
        public var acceptLanguage: String?

        /// Where the time comes from.
        public var clock: any WallClock = SystemClock()

        /// Where randomness comes from.
        public var random: any RandomSource = SystemRandom()

        /// Layers of the app's own around every call, outermost first: they may add header fields, look at replies, or
        /// turn an advice that a resource says in its own words into one that the SDK knows. `User-Agent` is
        /// `<app>/<version> Assent/<version> (<platform>)` unless a layer says another one.
        ///
        /// ```swift
        /// struct Channel: HTTPMiddleware {
        ///     func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply {
        ///         var call = call
        ///         call.request.headerFields[.userAgent] = "BankApp/7"
        ///         return try await next.send(call)
        ///     }
        /// }
        /// configuration.layers = [Channel()]
        /// ```
        ///
        /// They stand below the credentials, so they see the tokens that a call carries: let them log nothing. The
        /// calls of ``Assent/Device`` do not pass them: their content is sealed for the issuer, and no layer could add
        /// to it.
        public var layers: [any HTTPMiddleware] = []

        /// What the app looks for in its own process before each call: debuggers, libraries of others, a device whose
        /// protection is gone. By default findings are reported, and calls leave.
        public var integrity = Assent.Integrity()

        /// Is told what happens, never a secret.
        public var logger = Logger(label: "assent")

        /// Carries the calls instead of the pinned transport, for tests. Pins and trust roots are then not looked at.
        public var transport: (any HTTPTransport)?

        /// How long the pinned transport gives each limit in time of a call at least, and how long the file vault waits
        /// for its lock at least; `nil` when their own limits hold.
        package var leastLimit: Duration?

        /// A configuration; what is not named here has the safe value.
        public init(
            server: String, realm: String = "/", client: Client, resources: [String: ResourceAccess],
            pins: [String: PinRequirement], vault: Vault
        ) {
            self.server = server
            self.realm = realm
            self.client = client
            self.resources = resources
            self.pins = pins
            self.vault = vault
        }
    }

    /// The app as the server knows it. The client has no secret: it is public, or has a key of its own, see
    /// ``Configuration/clientAuthentication`` and ``Configuration/registration``.
    public struct Client: Hashable, Sendable {
        /// The client's id; the app's id where each installation registers.
        public var id: String

        /// The redirect URI exactly as it is registered.
        public var redirectURI: String

        /// What access is asked for.
        public var scopes: [String]

        /// The app's version, for example `3.2.0`. It is in `User-Agent`, and an installation registers with it unless
        /// its ``Configuration/registration`` says another one.
        public var version: String?

        /// A registration.
        public init(id: String, redirectURI: String, scopes: [String] = ["openid"], version: String? = nil) {
            self.id = id
            self.redirectURI = redirectURI
            self.scopes = scopes
            self.version = version
        }
    }

    /// Where secrets are kept.
    ///
    /// ```swift
    /// let hardware = Assent.Vault.file(at: directory, keys: .requireHardware)
    /// let fallback = Assent.Vault.file(
    ///     at: directory, keys: .preferHardware(otherwise: .passphrase(KnownSecret(passphrase))))
    /// ```
    public enum Vault: Sendable {
        /// In a sealed file vault in a directory of its own. `store` says which of the app's vaults it is: none can be
        /// put in another's place.
        case file(at: URL, keys: VaultKeys, store: String = "default")
        /// In this process's memory only: the user signs in at each start.
        case memory
        /// In a store of the app's own.
        case store(any SecretStore)

        func store(clock: any WallClock, random: any RandomSource, leastLimit: Duration?) -> any SecretStore {
            switch self {
            case .memory: return MemorySecretStore(clock: clock)
            case .store(let store): return store
            case .file(let directory, let keys, let store):
                let least = TimeInterval(leastLimit?.components.seconds ?? 0)
                return DeferredVault(
                    directory, store: store, keys: keys, lockTimeout: max(10, least), clock: clock, random: random)
            }
        }
    }
}

extension PinRequirement: ExpressibleByArrayLiteral {
    /// Any of these keys; at least two.
    public init(arrayLiteral elements: Pin...) { self = .pins(elements) }
}
