import AssentConfiguration
import AssentCore
import AssentEngine
import HTTPTypes

/// Reads the section `gateway`, beside the engine or elsewhere.
struct GatewayLoader {
    let realms: RouteRealms
    let paths: ConfigurationPaths

    private func route(_ route: SettingsReader<Void>) throws -> GatewayRoute {
        let name = route.string("name")
        let accepts = try RouteKinds.read(route, name: name)
        let access = try access(route, isPublic: accepts == nil)
        let path = try Self.path(route)
        let upstream = try UpstreamLoader(reader: route, paths: paths).settings()
        var read = GatewayRoute(
            name: name, path: path, upstream: upstream, access: access, accepts: accepts ?? [],
            mediaType: try Self.mediaType(route),
            maxBodyBytes: route.integer("maxBodyBytes", default: 64 << 10, in: 1...16 << 20),
            keepsAuthorization: route.bool("keepAuthorization", default: false),
            scopes: route.strings("scopes"), audience: route.strings("audience"),
            isSenderConstrained: route.bool("senderConstrained", default: false),
            passHeaders: try Self.passHeaders(route), stripHeaders: try Self.headers(route, "stripHeaders"),
            allowedOrigins: Set(try WebOrigins.read(route)), home: try Self.home(route))
        read.identity = try RouteIdentity.read(route)
        read.actions = try RouteActions.read(route, path: path, access: access, realms: realms)
        read.tunnels = try RouteTunnels.read(
            route, upstream: upstream, access: access, handshakes: read.actions.names(of: .get),
            realms: realms.configurations)
        read.streams = try RouteStreams.read(route, access: access)
        read.tunnels?.recheckSeconds = read.streams.recheckSeconds
        read.cacheSeconds = try cacheSeconds(route, isPublic: accepts == nil)
        read.rewrite = try Self.rewrite(route)
        read.requiresSealing = try requiresSealing(route, hasTunnels: read.tunnels != nil)
        route.finish()
        return read
    }

    /// The key `path` of a route, in the form that the paths of requests have when they are compared with it.
    private static func path(_ route: SettingsReader<Void>) throws -> String {
        let path = route.optionalString("path") ?? "/"
        guard path.hasPrefix("/"), path == "/" || !path.hasSuffix("/") else {
            throw route.issue("path", "must begin with a slash and not end with one")
        }
        let canonical: CanonicalResource
        do {
            canonical = try CanonicalResource("https://route.example" + path)
        } catch {
            throw route.issue("path", "\(error): no request with such a path is let in")
        }
        guard canonical.query == nil else { throw route.issue("path", "must not have a query") }
        guard canonical.comparedPath == path else {
            throw route.issue("path", "must be written as requests are compared: \(canonical.comparedPath)")
        }
        return path
    }

    private func cacheSeconds(_ route: SettingsReader<Void>, isPublic: Bool) throws -> Int {
        guard route.has("cacheSeconds") else { return 0 }
        guard realms.isElsewhere else {
            throw route.issue(
                "cacheSeconds", "belongs to a gateway alone: beside the engine each request is decided on")
        }
        guard !route.has("identity") else {
            throw route.issue("cacheSeconds", "cannot stand beside identity: a token is for one request")
        }
        return route.integer("cacheSeconds", default: 0, in: 0...GatewayRoute.longestCache)
    }

    /// The key `payloadEncryption` of a route. To seal is always allowed: it takes nothing from anybody.
    private func requiresSealing(_ route: SettingsReader<Void>, hasTunnels: Bool) throws -> Bool {
        let word = route.string("payloadEncryption", default: "allowed")
        guard ["allowed", "required"].contains(word) else {
            throw route.issue("payloadEncryption", "can be allowed (the default) or required")
        }
        guard word == "allowed" || !hasTunnels else {
            throw route.issue("payloadEncryption", "cannot be required beside websocket: WebSockets are not sealed")
        }
        guard word == "allowed" || !realms.isElsewhere else {
            throw route.issue(
                "payloadEncryption", "cannot be required at a gateway alone: it has no keys to open what is sealed")
        }
        return word == "required"
    }

    /// Where a browser is led, so nothing but a path of the gateway or a page that nobody can change on the way.
    private static func home(_ route: SettingsReader<Void>) throws -> String? {
        guard let home = route.optionalString("home") else { return nil }
        let url = home.hasPrefix("/") ? "https://gateway.example\(home)" : home
        guard let page = try? CanonicalResource(url), page.scheme == "https", !home.hasPrefix("//") else {
            throw route.issue(
                "home", "must be a path of the gateway, for example /app, or an https URL of an app's page")
        }
        return home
    }

    private static func rewrite(_ route: SettingsReader<Void>) throws -> String? {
        guard let path = route.optionalString("rewrite") else { return nil }
        guard GatewayRoute.canRewrite(to: path) else {
            throw route.issue("rewrite", "must be a path as it is sent, without a slash at its end, for example /api")
        }
        return path
    }

    private func access(_ route: SettingsReader<Void>, isPublic: Bool) throws -> GatewayRoute.Access {
        if isPublic {
            let idle = [
                "realm", "policySet", "scopes", "audience", "maxBodyBytes", "mediaType", "senderConstrained",
                "identity", "cacheSeconds", "actions",
            ]
            if let key = idle.first(where: { route.has($0) }) {
                throw route.issue(key, "a public route has no \(key): nobody is asked who they are")
            }
            return .everybody
        }
        let realm = RealmLoader.realmName(route.string("realm"))
        let policySet = route.string("policySet")
        try realms.check(route, realm: realm, policySet: policySet)
        return .policies(realm: realm, policySet: policySet)
    }

    private static func mediaType(_ route: SettingsReader<Void>) throws -> String {
        guard let text = route.optionalString("mediaType") else { return "application/json" }
        guard let type = BoundMediaType(text), type.essence == type.normalised else {
            throw route.issue("mediaType", "must be one type without parameters, for example application/json")
        }
        return type.essence
    }

    private static func passHeaders(_ route: SettingsReader<Void>) throws -> Set<String> {
        try headers(route, "passHeaders") { name in
            ForwardedFields.canPass(name)
                ? nil
                : "\(name.rawName) cannot pass: it is for one hop, has an underscore, only the gateway says it, or "
                    + "services take another method or path by it"
        }
    }

    private static func headers(
        _ route: SettingsReader<Void>, _ key: String, issue: (HTTPField.Name) -> String? = { _ in nil }
    ) throws -> Set<String> {
        Set(
            try route.strings(key).map { name in
                guard let field = HTTPField.Name(name) else {
                    throw route.issue(key, "\(name) cannot be the name of a header field")
                }
                if let issue = issue(field) { throw route.issue(key, issue) }
                return field.canonicalName
            })
    }

    /// The section `gateway`.
    ///
    /// - Parameters:
    ///   - reader: the section.
    ///   - serverPort: the port of the server beside it; `nil` where there is none.
    /// - Returns: what it says.
    /// - Throws: what is wrong, with its place.
    func gateway(_ reader: SettingsReader<Void>, besides serverPort: Int?) throws -> GatewayConfiguration {
        var routes: [GatewayRoute] = []
        for route in reader.list("routes") {
            let read = try self.route(route)
            if let rival = routes.first(where: read.isRival) {
                throw route.issue("path", "the route \(rival.name) answers \(rival.path) already; paths ignore case")
            }
            routes.append(read)
        }
        guard !routes.isEmpty else { throw reader.issue("routes", "must name a route") }
        if let fault = RouteIdentity.fault(in: routes) { throw reader.issue("routes", fault) }
        let read = GatewayConfiguration(
            publicURL: try ServerConfiguration.publicURL(reader, "publicURL", allowsPath: false),
            port: reader.integer("port", default: 8444, in: 0...65_535), routes: routes)
        guard read.port == 0 || read.port != serverPort else {
            throw reader.issue("port", "is the server's own port: the gateway needs another one")
        }
        reader.finish()
        return read
    }
}
