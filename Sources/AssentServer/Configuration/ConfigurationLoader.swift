import AssentConfiguration
import AssentCore
import AssentEngine
import Foundation

extension ServerConfiguration {
    /// Reads and checks a file.
    ///
    /// Relative paths in it are relative to the file's own directory.
    /// - Throws: ``/AssentConfiguration/ConfigurationError`` with file, line and what to do.
    public static func load(file: String) throws -> ServerConfiguration {
        try parse(ConfigurationFile.text(of: file), file: file)
    }

    /// Reads and checks the text of a file.
    static func parse(_ text: String, file: String) throws -> ServerConfiguration {
        try ConfigurationFile.read(text, file: file) { try configuration($0, file: file) }
    }

    private static func configuration(_ root: SettingsReader<Void>, file: String) throws -> ServerConfiguration {
        if root.has("client"), !root.has("realms") {
            throw root.issue(
                "client", "belongs in a client's file: name the server's own file, for example assent.yaml, here")
        }
        if root.has("engine") {
            throw root.issue("engine", "belongs in the file of a gateway alone: assent serve --gateway-only")
        }
        let isDevelopment = root.bool("development", default: false)
        let paths = ConfigurationPaths(file: file)
        let listen = root.optionalMapping("listen")
        let host = listen?.optionalString("host") ?? "127.0.0.1"
        let port = listen?.optionalInteger("port", in: 0...65_535) ?? 8443
        listen?.finish()
        if isDevelopment, !["127.0.0.1", "::1", "localhost"].contains(host) {
            throw (listen ?? root).issue("host", "development: true listens on loopback only; host must be 127.0.0.1")
        }
        let publicURL = try Self.publicURL(root, "publicURL", allowsPath: true)
        let (cookieName, sameSite) = try cookie(root)
        let cost = root.integer("passwordCost", default: 1 << 17, in: 1 << 10...1 << 20)
        guard cost.nonzeroBitCount == 1 else { throw root.issue("passwordCost", "must be a power of two") }
        let policy = PasswordPolicy(logN: cost.trailingZeroBitCount)
        if let issue = policy.issues(development: isDevelopment).first { throw root.issue("passwordCost", issue) }
        let realms = try realms(root, paths, isDevelopment: isDevelopment)
        if let confusion = DeviceConfigurationLoader.confusion(among: realms) { throw root.issue("realms", confusion) }
        var gateway: GatewayConfiguration?
        if let reader = root.optionalMapping("gateway") {
            gateway = try GatewayLoader(realms: .known(realms), paths: paths).gateway(reader, besides: port)
        }
        let urls = [publicURL] + [gateway?.publicURL].compactMap(\.self)
        if let fault = EnforcementLoader.fault(among: realms, of: urls) { throw root.issue("realms", fault) }
        let postgreSQL = try DatabaseLoader(paths: paths).postgreSQL(root)
        let masterKeyFile = root.optionalString("masterKeyFile").map(paths.resolve)
        if postgreSQL != nil, masterKeyFile == nil {
            throw root.issue("masterKeyFile", "is missing: all nodes of one database have the same master key")
        }
        var configuration = ServerConfiguration(
            isDevelopment: isDevelopment, file: file, publicURL: publicURL, host: host, port: port,
            dataDirectory: paths.resolve(root.string("dataDirectory")),
            masterKeyFile: masterKeyFile, postgreSQL: postgreSQL,
            tls: try tls(root, paths: paths, isDevelopment: isDevelopment), cookieName: cookieName,
            cookieSameSite: sameSite, passwordCost: cost,
            transactionLimits: TransactionLimits(
                creations: Int64(root.integer("transactionsPerMinute", default: 20, in: 1...10_000)), window: 60),
            journeyStartsPerMinute: root.integer("journeyStartsPerMinute", default: 600, in: 1...1_000_000),
            connectionsPerAddress: root.optionalInteger("connectionsPerAddress", in: 1...1_000_000),
            drainSeconds: root.integer("drainSeconds", default: 35, in: 1...600), realms: realms, gateway: gateway)
        try options(root, paths, of: &configuration)
        return configuration
    }

    private static func realms(
        _ root: SettingsReader<Void>, _ paths: ConfigurationPaths, isDevelopment: Bool
    ) throws -> [RealmConfiguration] {
        var realms: [RealmConfiguration] = []
        for (key, reader) in root.mappings("realms") {
            // The file's reader takes alpha and /alpha for two keys.
            guard !realms.contains(where: { $0.name == RealmLoader.realmName(key) }) else {
                throw reader.issue(nil, "\(key) is there twice, with a slash in front and without")
            }
            realms.append(try RealmLoader(reader: reader, paths: paths, isDevelopment: isDevelopment).realm(key))
        }
        guard !realms.isEmpty else { throw root.issue("realms", "must name a realm, for example alpha") }
        return realms
    }

    private static func cookie(_ root: SettingsReader<Void>) throws -> (name: String, sameSite: SameSite) {
        let name = root.optionalString("cookieName") ?? WireName.sessionCookie
        guard SessionCookie.isValid(name: name) else {
            throw root.issue("cookieName", "must be a name that a header field can have")
        }
        let sameSites = SameSite.allCases.map(\.rawValue)
        guard let sameSite = SameSite(rawValue: root.optionalString("cookieSameSite") ?? SameSite.lax.rawValue) else {
            throw root.issue("cookieSameSite", "can be one of: \(sameSites.joined(separator: ", "))")
        }
        if sameSite == .lax, root.has("cookiePartitioned") {
            throw root.issue("cookiePartitioned", "belongs to cookieSameSite: None")
        }
        return (name, sameSite)
    }

    /// Reads what may be left out and is not part of the configuration's own initialiser.
    private static func options(
        _ root: SettingsReader<Void>, _ paths: ConfigurationPaths, of configuration: inout ServerConfiguration
    ) throws {
        let isDevelopment = configuration.isDevelopment
        configuration.checksPerAddress = root.optionalInteger("checksPerAddress", in: 1...10_000)
        configuration.trustedProxies = try trustedProxies(root)
        configuration.hosts = root.strings("hosts")
        if let name = configuration.hosts.first(where: { (try? NormalizedHost($0)) == nil }) {
            throw root.issue("hosts", "\(name) is not a host name or an address, without a port")
        }
        if let passwords = root.optionalMapping("passwords") {
            configuration.passwordRules.minLength = passwords.integer(
                "minLength", default: 8, in: (isDevelopment ? 1 : 8)...128)
            passwords.finish()
        }
        if let reader = root.optionalMapping("outbound") {
            configuration.outbound = try OutboundLoader(reader: reader, paths: paths).settings()
        }
        configuration.outbound.allowsPlainLoopback = isDevelopment
        if let reader = root.optionalMapping("notify") {
            configuration.webhook = try WebhookLoader(
                reader: reader, paths: paths, outbound: configuration.outbound
            ).settings()
        }
        if let reader = root.optionalMapping("pages") {
            configuration.pages = try PagesLoader(reader: reader, paths: paths).design()
        }
        configuration.trustFiles = try trustFiles(root, paths)
        if let name = root.optionalString("administrationRealm").map(RealmLoader.realmName) {
            guard let index = configuration.realms.firstIndex(where: { $0.name == name }) else {
                throw root.issue("administrationRealm", "the file has no realm \(name)")
            }
            configuration.realms[index].isAdministrationRealm = true
        }
        if configuration.postgreSQL != nil, root.has("requireDatabase") {
            throw root.issue("requireDatabase", "is about the SQLite file: leave it out beside database.postgresql")
        }
        configuration.requiresDatabase = root.bool("requireDatabase", default: false)
        configuration.clockDifferenceSeconds = root.integer("clockDifferenceSeconds", default: 30, in: 5...3600)
        configuration.isCookiePartitioned = root.bool(
            "cookiePartitioned", default: configuration.cookieSameSite == .none)
        // A browser that was told so of localhost would no longer open what else runs there.
        configuration.sendsHSTS = root.bool("hsts", default: !isDevelopment)
    }

    private static func trustFiles(
        _ root: SettingsReader<Void>, _ paths: ConfigurationPaths
    ) throws -> [String: String] {
        guard let reader = root.optionalMapping("trustFiles") else { return [:] }
        var directories: [String: String] = [:]
        for name in reader.keys {
            guard TrustFileRoute.isName(name) else {
                throw reader.issue(name, "a name has 1 to 64 letters, digits and . _ -, and not only dots")
            }
            let path = paths.resolve(reader.string(name))
            var isDirectory: ObjCBool = false
            guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), isDirectory.boolValue else {
                throw reader.issue(
                    name, "must name a directory with versions of a trust file, as 'assent config sign' fills it")
            }
            directories[name] = path
        }
        reader.finish()
        guard directories.count <= maximumTrustFiles else {
            throw root.issue("trustFiles", "may have \(maximumTrustFiles) names")
        }
        return directories
    }

    /// For how many apps one server serves trust files.
    private static let maximumTrustFiles = 32

    private static func tls(_ root: SettingsReader<Void>, paths: ConfigurationPaths, isDevelopment: Bool) throws -> TLS
    {
        guard let tls = root.optionalMapping("tls") else {
            guard isDevelopment else {
                throw root.issue(
                    nil, "tls is missing: name certificate and privateKey. Only development: true generates a CA")
            }
            return .generated
        }
        let files = TLS.files(
            certificate: paths.resolve(tls.string("certificate")),
            privateKey: paths.resolve(tls.string("privateKey")))
        tls.finish()
        return files
    }

    static func trustedProxies(_ root: SettingsReader<Void>) throws -> TrustedProxies {
        var proxies = TrustedProxies()
        proxies.networks = try root.strings("trustedProxies").map { text in
            guard let network = TrustedProxies.Network(text) else {
                throw root.issue(
                    "trustedProxies",
                    "\(text) is neither an address nor a prefix without bits behind it, for example 192.0.2.0/24")
            }
            return network
        }
        guard let name = root.optionalString("trustedProxyField") else { return proxies }
        guard !proxies.networks.isEmpty else { throw root.issue("trustedProxyField", "belongs to trustedProxies") }
        let fields = TrustedProxies.Field.allCases
        guard let field = fields.first(where: { $0.rawValue.equalsIgnoringASCIICase(name) }) else {
            let names = fields.map(\.rawValue).joined(separator: ", ")
            throw root.issue("trustedProxyField", "can be one of: \(names)")
        }
        proxies.field = field
        return proxies
    }

    static func publicURL(_ reader: SettingsReader<Void>, _ key: String, allowsPath: Bool) throws -> String {
        let text = reader.string(key)
        let url = text.hasSuffix("/") ? String(text.dropLast()) : text
        guard let parts = URLComponents(string: url), parts.scheme == "https", let host = parts.host, !host.isEmpty,
            parts.user == nil, parts.query == nil, parts.fragment == nil, allowsPath || parts.path.isEmpty,
            !parts.path.contains("//")
        else {
            throw reader.issue(
                key,
                "must be an https URL\(allowsPath ? "" : " without a path"), for example https://localhost:8443")
        }
        return url
    }
}

/// Paths of a configuration file, relative to its own directory.
struct ConfigurationPaths: Sendable {
    private let directory: String

    init(file: String) {
        directory = URL(fileURLWithPath: file).deletingLastPathComponent().path
    }

    func resolve(_ path: String) -> String {
        path.hasPrefix("/") ? path : directory + "/" + path
    }
}
