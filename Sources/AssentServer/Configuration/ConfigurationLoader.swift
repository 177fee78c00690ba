import AssentConfiguration
import AssentCore
import AssentEngine
import Foundation
import HTTPTypes

extension ServerConfiguration {
    /// Reads and checks a file.
    ///
    /// Relative paths in it are relative to the file's own directory.
    /// - Throws: ``ConfigurationError`` with file, line and what to do.
    public static func load(file: String) throws -> ServerConfiguration {
        let text: String
        do {
            let data = try Data(contentsOf: URL(fileURLWithPath: file))
            guard data.count <= 1 << 20, let read = String(validating: data, as: UTF8.self) else {
                throw ConfigurationError(file: file, line: nil, "must be UTF-8 of at most 1 MiB")
            }
            text = read
        } catch let error as ConfigurationError {
            throw error
        } catch {
            throw ConfigurationError(file: file, line: nil, "cannot be read: \(error.localizedDescription)")
        }
        return try parse(text, file: file)
    }

    /// Reads and checks the text of a file.
    static func parse(_ text: String, file: String) throws -> ServerConfiguration {
        let root = try YAMLReader.document(file: file, text: text)
        let isDevelopment = try root.bool("development", default: false)
        let paths = ConfigurationPaths(file: file)
        let listen = try root.optionalMapping("listen")
        let host = try listen?.optionalString("host") ?? "127.0.0.1"
        let port = try listen?.optionalInteger("port", in: 0...65_535) ?? 8443
        try listen?.finish()
        if isDevelopment, !["127.0.0.1", "::1", "localhost"].contains(host) {
            throw (listen ?? root).error("host", "development: true listens on loopback only; host must be 127.0.0.1")
        }
        let publicURL = try Self.publicURL(root, "publicURL", allowsPath: true)
        let cookieName = try root.optionalString("cookieName") ?? WireName.sessionCookie
        guard SessionCookie.isValid(name: cookieName) else {
            throw root.error("cookieName", "cookieName must be a name that a header field can have")
        }
        let cost = try root.integer("passwordCost", default: 1 << 17, in: 1 << 10...1 << 20)
        guard cost.nonzeroBitCount == 1 else { throw root.error("passwordCost", "passwordCost must be a power of two") }
        let policy = PasswordPolicy(logN: cost.trailingZeroBitCount)
        if let issue = policy.issues(development: isDevelopment).first { throw root.error("passwordCost", issue) }
        let realms = try root.mappings("realms").map { name, reader in
            try RealmLoader(reader: reader, paths: paths, isDevelopment: isDevelopment).realm(name)
        }
        guard !realms.isEmpty else { throw root.error("realms", "realms must name a realm, for example alpha") }
        var gateway: GatewayConfiguration?
        if let reader = try root.optionalMapping("gateway") { gateway = try Self.gateway(reader, realms: realms) }
        let configuration = ServerConfiguration(
            isDevelopment: isDevelopment, file: file, publicURL: publicURL, host: host, port: port,
            dataDirectory: paths.resolve(try root.string("dataDirectory")),
            masterKeyFile: try root.optionalString("masterKeyFile").map(paths.resolve),
            tls: try tls(root, paths: paths, isDevelopment: isDevelopment), cookieName: cookieName,
            passwordCost: cost,
            transactionLimits: TransactionLimits(
                creations: Int64(try root.integer("transactionsPerMinute", default: 20, in: 1...10_000)), window: 60),
            journeyStartsPerMinute: try root.integer("journeyStartsPerMinute", default: 600, in: 1...1_000_000),
            drainSeconds: try root.integer("drainSeconds", default: 35, in: 1...600), realms: realms, gateway: gateway)
        try root.finish()
        return configuration
    }

    private static func tls(_ root: YAMLReader, paths: ConfigurationPaths, isDevelopment: Bool) throws -> TLS {
        guard let tls = try root.optionalMapping("tls") else {
            guard isDevelopment else {
                throw root.error(
                    nil, "tls is missing: name certificate and privateKey. Only development: true generates a CA")
            }
            return .generated
        }
        let files = TLS.files(
            certificate: paths.resolve(try tls.string("certificate")),
            privateKey: paths.resolve(try tls.string("privateKey")))
        try tls.finish()
        return files
    }

    private static func publicURL(_ reader: YAMLReader, _ key: String, allowsPath: Bool) throws -> String {
        let text = try reader.string(key)
        let url = text.hasSuffix("/") ? String(text.dropLast()) : text
        guard let parts = URLComponents(string: url), parts.scheme == "https", let host = parts.host, !host.isEmpty,
            parts.user == nil, parts.query == nil, parts.fragment == nil, allowsPath || parts.path.isEmpty,
            !parts.path.contains("//")
        else {
            throw reader.error(
                key,
                "\(key) must be an https URL\(allowsPath ? "" : " without a path"), for example https://localhost:8443")
        }
        return url
    }

    private static func route(_ route: YAMLReader, realms: [RealmConfiguration]) throws -> GatewayRoute {
        let name = try route.string("name")
        let realm = RealmLoader.realmName(try route.string("realm"))
        let policySet = try route.string("policySet")
        guard let known = realms.first(where: { $0.name == realm }) else {
            throw route.error("realm", "there is no realm \(realm)")
        }
        guard known.policySets.contains(where: { $0.name == policySet }) else {
            let names = known.policySets.map(\.name).joined(separator: ", ")
            throw route.error("policySet", "realm \(realm) has no policy set \(policySet); known: \(names)")
        }
        let path = try route.optionalString("path") ?? "/"
        guard path.hasPrefix("/"), path == "/" || !path.hasSuffix("/") else {
            throw route.error("path", "path must begin with a slash and not end with one")
        }
        let upstream = try route.string("upstream")
        guard (try? Origin(headerValue: upstream)) != nil else {
            throw route.error(
                "upstream", "upstream must be scheme, host and port, for example http://127.0.0.1:9080")
        }
        let read = GatewayRoute(
            name: name, path: path, upstream: upstream, realm: realm, policySet: policySet,
            mediaType: try mediaType(route),
            maxBodyBytes: try route.integer("maxBodyBytes", default: 64 << 10, in: 1...16 << 20),
            keepsAuthorization: try route.bool("keepAuthorization", default: false),
            scopes: try route.strings("scopes"), audience: try route.strings("audience"),
            stripHeaders: try stripHeaders(route), allowedOrigins: try allowedOrigins(route))
        try route.finish()
        return read
    }

    /// As browsers write them in `Origin`.
    private static func allowedOrigins(_ route: YAMLReader) throws -> [String] {
        try route.strings("allowedOrigins").map { text in
            guard let origin = try? Origin(headerValue: text) else {
                throw route.error(
                    "allowedOrigins",
                    "\(text) is no origin: scheme, host and port alone, for example https://shop.example")
            }
            return origin.description
        }
    }

    private static func mediaType(_ route: YAMLReader) throws -> String {
        guard let text = try route.optionalString("mediaType") else { return "application/json" }
        guard let type = BoundMediaType(text), type.essence == type.normalised else {
            throw route.error("mediaType", "mediaType is one type without parameters, for example application/json")
        }
        return type.essence
    }

    private static func stripHeaders(_ route: YAMLReader) throws -> Set<String> {
        Set(
            try route.strings("stripHeaders").map { name in
                guard let field = HTTPField.Name(name) else {
                    throw route.error("stripHeaders", "\(name) cannot be the name of a header field")
                }
                return field.canonicalName
            })
    }

    private static func gateway(_ reader: YAMLReader, realms: [RealmConfiguration]) throws -> GatewayConfiguration {
        var routes: [GatewayRoute] = []
        for route in try reader.list("routes") {
            let read = try Self.route(route, realms: realms)
            if let rival = routes.first(where: read.isRival) {
                throw route.error("path", "the route \(rival.name) answers \(rival.path) already; paths ignore case")
            }
            routes.append(read)
        }
        guard !routes.isEmpty else { throw reader.error("routes", "gateway.routes must name a route") }
        let read = GatewayConfiguration(
            publicURL: try Self.publicURL(reader, "publicURL", allowsPath: false),
            port: try reader.integer("port", default: 8444, in: 0...65_535), routes: routes)
        try reader.finish()
        return read
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
