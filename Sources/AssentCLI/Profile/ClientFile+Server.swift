import AssentCore
import AssentEngine
import AssentServer
import AssentTokens
import Foundation

extension ClientFile {
    /// The file for a running server's first app, whose installations register, may call in their own name where a
    /// route of the gateway accepts that, and remember their users where the app may.
    static func ofApp(endpoints: Endpoints, configuration: ServerConfiguration) -> ClientFile? {
        for realm in configuration.realms {
            guard let app = realm.apps.first, let redirectURI = app.client.redirectURIs.first,
                var file = ClientFile(endpoints: endpoints, configuration: configuration)
            else { continue }
            let routes = configuration.gateway?.routes.filter { $0.accepts.contains(.device) } ?? []
            let wanted = Set(routes.flatMap(\.scopes))
            let own = app.client.scopes.filter(wanted.contains)
            (file.realm, file.clientID, file.redirectURI) = (realm.name, app.id, redirectURI)
            file.journey = realm.defaultJourney ?? file.journey
            file.scopes = app.client.scopes.filter { !wanted.contains($0) }
            let implicit = configuration.gateway?.routes.filter { $0.accepts.contains(.implicit) } ?? []
            let remembered = (app.implicitScopes ?? []).filter(Set(implicit.flatMap(\.scopes)).contains)
            file.registration = Registration(
                deviceScopes: own, remembersUsers: app.client.grantTypes.contains(.jwtBearer),
                implicitScopes: remembered)
            for index in file.resources.indices {
                if !own.isEmpty { file.resources[index].kinds.insert(.device) }
                if !remembered.isEmpty { file.resources[index].kinds.insert(.implicit) }
            }
            return file
        }
        return nil
    }

    /// The file for a running server's first public client.
    init?(endpoints: Endpoints, configuration: ServerConfiguration) {
        guard let client = configuration.firstPublicClient else { return nil }
        var hosts: [String] = []
        for url in [endpoints.server, endpoints.gateway].compactMap(\.self) {
            if let host = URLComponents(string: url)?.host, !hosts.contains(host) { hosts.append(host) }
        }
        self.init(
            server: endpoints.server, realm: client.realm, cookieName: endpoints.cookieName, clientID: client.id,
            redirectURI: client.redirectURI, scopes: client.scopes, journey: client.journey,
            resources: endpoints.gateway.map { [Resource(origin: $0, credential: "accessToken")] } ?? [],
            resourceBase: endpoints.gateway,
            authority: endpoints.authorityFile, pins: hosts.map { HostPins(host: $0, pins: endpoints.pins) })
        lastGateway = endpoints.gateway.map(ServedGateway.at) ?? ServedGateway.missing
    }

    /// The CA that a server makes for itself, in the directory where it writes a client's file.
    static func generatedAuthority(beside path: String) -> String {
        URL(fileURLWithPath: path).deletingLastPathComponent().appendingPathComponent("authority.pem")
            .standardizedFileURL.path
    }

    /// The file of an earlier start with what the server says now. It begins with what is there, so that a key that the
    /// server does not know, like `payloadEncryption`, is not lost with the next certificate.
    func keeping(_ kept: ClientFile) -> ClientFile {
        var file = kept
        (file.server, file.cookieName) = (server, cookieName)
        let isOperators = hasClientOfOperator(kept)
        if !isOperators {
            (file.realm, file.clientID, file.redirectURI) = (realm, clientID, redirectURI)
            (file.scopes, file.journey) = (scopes, journey)
        }
        file.lastGateway = lastGateway
        file.authority = authority ?? kept.authority
        if let registration {
            var own = kept.registration ?? registration
            (own.deviceScopes, own.remembersUsers) = (registration.deviceScopes, registration.remembersUsers)
            own.implicitScopes = registration.implicitScopes
            (file.registration, file.clientKey) = (own, nil)
        }
        // A trust file says hosts and pins in the place of the server, and not where paths lead.
        guard kept.trust == nil else {
            if movesBase(of: kept) { file.resourceBase = resourceBase }
            return file
        }
        // Behind another gateway nobody knows which of the old origins are the operator's: no credential goes there.
        if hasGateway(of: kept) {
            file.resourceBase = kept.resourceBase ?? resourceBase
            // Whose tokens the gateway gets goes by the client.
            if !isOperators {
                file.resources = kept.resources.map { old in resources.first { $0.origin == old.origin } ?? old }
            }
        } else {
            (file.resources, file.resourceBase) = (resources, resourceBase)
        }
        file.pins = pins(beside: kept, calling: file.resources, issuer: file.issuer)
        return file
    }

    /// Whether the earlier file has a client that the operator has chosen. The server names a public one here. A key
    /// proves no other client than its own, and only installations of an app register.
    private func hasClientOfOperator(_ kept: ClientFile) -> Bool {
        guard registration == nil, kept.clientID != clientID else { return false }
        return kept.clientKey != nil || kept.registration != nil
    }

    /// Whether the gateway is where the earlier file has it. That its origin is in there is not enough: an operator who
    /// moves it may have added the new one before. Paths lead to the old one then. A gateway always brings its base, so
    /// where a file that does not say more lacks both there was none before either.
    private func hasGateway(of kept: ClientFile) -> Bool {
        guard !resources.isEmpty else {
            return kept.lastGateway.map { $0 == .missing } ?? (kept.resourceBase == nil)
        }
        guard resources.allSatisfy({ own in kept.resources.contains { $0.origin == own.origin } }) else { return false }
        // Also where an operator has led the paths to the new one before.
        if case .at(let address)? = kept.lastGateway, !isGateway(at: address) { return false }
        guard let base = kept.resourceBase else { return true }
        return isGateway(at: base)
    }

    /// The server's pins and, from the file that is there, those of other places that are called. One pin alone is the
    /// operator's choice, and stays until the key changes.
    private func pins(beside kept: ClientFile, calling resources: [Resource], issuer: String?) -> [HostPins] {
        let own = pins.map { pinned in
            let isSingle = kept.pins.contains { $0.isSingle && $0.host == pinned.host && $0.pins == pinned.pins }
            return HostPins(host: pinned.host, pins: pinned.pins, isSingle: isSingle)
        }
        func origins(_ urls: [String]) -> Set<Origin> { Set(urls.compactMap { try? Origin($0) }) }
        let served = origins([server] + self.resources.map(\.origin))
        let called = origins(resources.map(\.origin)).subtracting(served)
        // A provider elsewhere may have endpoints at hosts that its description alone names.
        let hasOtherIssuer = !origins([issuer].compactMap(\.self)).isSubset(of: served)
        let others = kept.pins.filter { other in
            !served.contains(where: other.fit) && (hasOtherIssuer || called.contains(where: other.fit))
        }
        let all = own + others
        // In the order in which they are read.
        return all.filter { !$0.isSingle } + all.filter(\.isSingle)
    }
}

extension ClientFile.HostPins {
    /// Whether they are for this origin: by its host, or by its host and port.
    func fit(_ origin: Origin) -> Bool {
        if let name = try? NormalizedHost(host) { return name == origin.host }
        return (try? Origin(headerValue: "https://\(host)")) == origin
    }
}
